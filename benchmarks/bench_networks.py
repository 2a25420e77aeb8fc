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


def steps(model, x, y, count):
    "A function that takes steps of training, so small that every call is the same work."
    adam = torch.optim.Adam(model.parameters(), lr=1e-12)

    def train():
        for _ in range(count):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            adam.step()

    return train


def watched(model, train, exact=None):
    "The same steps with a watch on the four layers, which goes on from call to call."
    seen = sm.watch(model, LAYERS, exact=exact)

    def watch():
        with seen:
            train()

    return watch


def asking(model, x):
    "A function that asks, and its preparation: new inputs, so that nothing is known yet."
    seen = sm.watch(model, LAYERS)

    def look():
        with seen:
            for _ in range(4):
                model(x)

    return look, lambda: [both.layer.interval() for both in seen.dimension().values()]


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
    for (width, batch), most_watched, most_asked in sized(
        (((256, 128), 1.15, 1.0), ((512, 256), 1.15, 1.0)), (((32, 16), None, None),)
    ):
        count, rounds = 8, 30  # 1024 inputs or more: what waits is summed in every call
        model, x = network(width), torch.randn(batch, width)
        train = steps(model, x, torch.randint(10, (batch,)), count)
        look, ask = asking(model, x)
        run = [train, watched(model, train), watched(model, train, exact=True), look, ask]
        plain, seen, exact, _, asked = in_turn(run, rounds, clock)
        common = dict(timing=f"shortest of {rounds}, in turn, time of the processor")
        common["sizes"] = f"4 layers of {width} units, batch {batch}, {count} steps"
        for ratio, how, most in ((seen, "", most_watched), (exact, ", all inputs", None)):
            report.row(
                f"a step of training with `watch` on four layers{how}, over one without",
                ratio / plain,
                most,
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
