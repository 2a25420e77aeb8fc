"""What it costs to watch a network, to ask it, and to use its dimension as a loss.

python benchmarks/bench_networks.py
"""

import time

import torch
from common import Report, by, in_turn, sized

import spectral_moments as sm
from spectral_moments.networks import inverse_dimension

LAYERS = ["1", "3", "5", "7"]


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
        with sm.watch(model, LAYERS):
            train()

    return watch if watched else train


def asking(model, x, count):
    "A function that asks for dimensions with intervals of what was seen in training."
    with sm.watch(model, LAYERS) as seen:
        for _ in range(count):
            model(x)
    return lambda: [both.layer.interval() for both in seen.dimension().values()]


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
    report, clock = Report("networks"), time.process_time
    small, large = ((256, 128, 60), 1.5, None), ((512, 256, 20), 1.15, 1.0)
    for sizes, most_watched, most_asked in sized(
        (small, large), (((32, 16, 4), None, None),)
    ):
        width, batch, count = sizes
        model, x = network(width), torch.randn(batch, width)
        y = torch.randint(10, (batch,))
        run = [steps(model, x, y, count, watched) for watched in (False, True)]
        run.append(asking(model, x, 20))
        plain, watched, asked = in_turn(run, 9, clock)
        common = dict(timing="shortest of 9, in turn, time of the processor")
        common["sizes"] = f"4 layers of {width} units, batch {batch}, {count} steps"
        report.row(
            "a step of training with `watch` on four layers, over one without",
            watched / plain,
            most_watched,
            baseline="the same steps without watching",
            **common,
        )
        report.row(
            "asking four layers for their dimensions, with intervals",
            asked / (plain / count),
            most_asked,
            baseline="one step of training without watching",
            **common,
        )
    for shape in sized(((128, 128), (256, 512)), ((16, 16),)):
        phi = torch.randn(shape, requires_grad=True)
        losses = (naive_inverse, inverse_dimension)
        theirs, ours = in_turn([gradient(loss, phi) for loss in losses], 60, clock)
        report.row(
            "the unbiased, centred dimension as a loss, over the naive ratio",
            ours / theirs,
            4,
            sizes=by(*shape) + ", single precision in, summed in double",
            baseline="naive participation ratio in plain torch, with its gradient",
            timing="shortest of 60, in turn, time of the processor",
        )
    report.save()


if __name__ == "__main__":
    main()
