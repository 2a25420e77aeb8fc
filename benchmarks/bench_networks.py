"""What it costs to watch a network, and to use its dimension as a loss.

python benchmarks/bench_networks.py
"""

import torch
from common import Report, by, in_turn, sized

import spectral_moments as sm
from spectral_moments.networks import inverse_dimension


def network(width):
    "A network with four hidden layers."
    layers = []
    for _ in range(4):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))


def steps(model, x, y, count, watched):
    "A function that takes steps of training, with or without a watch on the four layers."
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)

    def train():
        for _ in range(count):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            adam.step()

    def watch():
        with sm.watch(model, ["1", "3", "5", "7"], random_state=0):
            train()

    return watch if watched else train


def naive_inverse(phi):
    "One over the naive participation ratio, in plain torch."
    gram = phi.T @ phi if phi.shape[1] <= phi.shape[0] else phi @ phi.T
    return (gram * gram).sum() / gram.diagonal().sum() ** 2


def gradient(loss, phi):
    "A function that computes a loss and its gradient."

    def run():
        phi.grad = None
        loss(phi).backward()

    return run


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    report = Report("networks")
    width, batch, count = sized((256, 128, 100), (32, 16, 4))
    model, x = network(width), torch.randn(batch, width)
    y = torch.randint(10, (batch,))
    plain, watched = in_turn([steps(model, x, y, count, w) for w in (False, True)], 7)
    report.row(
        "a step of training with `watch` on four layers, over one without",
        watched / plain,
        1.5,
        sizes=f"4 layers of {width} units, batch {batch}, {count} steps",
        baseline="the same steps without watching",
        timing="shortest of 7, in turn",
    )
    for shape in sized(((128, 128), (256, 512)), ((16, 16),)):
        phi = torch.randn(shape, requires_grad=True)
        losses = (naive_inverse, inverse_dimension)
        theirs, ours = in_turn([gradient(loss, phi) for loss in losses], 60)
        report.row(
            "the unbiased, centred dimension as a loss, over the naive ratio",
            ours / theirs,
            4,
            sizes=by(*shape) + ", single precision in, summed in double",
            baseline="naive participation ratio in plain torch, with its gradient",
            timing="shortest of 60, in turn",
        )
    report.save()


if __name__ == "__main__":
    main()
