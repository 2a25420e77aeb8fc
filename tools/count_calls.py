"""Count what a call goes through: functions of the package, and switches of module.

python tools/count_calls.py           # a table
python tools/count_calls.py --json    # the same as one line of JSON

Each call is made once before it is counted, so that caches are warm. Only Python functions
of the package count; what is compiled, or runs in another thread, is not seen.

functions: distinct functions that have a name, not <genexpr>, <lambda> or comprehensions
names: distinct pairs of module and name, where all <genexpr> of a module are one, likewise
    <lambda> and each kind of comprehension
switches: how often a function starts, or a generator goes on, in another module than the
    one before it; nameless functions included, returns not
modules: distinct modules
"""

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np

import spectral_moments as sm

HOME = Path(sm.__file__).resolve().parent
P, Q = 40, 30  # inputs, features


def entered_codes(call):
    "The code objects of the package in the order in which a call enters them."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
        entered = []
        sys.setprofile(
            lambda frame, event, _: event == "call" and entered.append(frame.f_code)
        )
        try:
            call()
        finally:
            sys.setprofile(None)
    return [code for code in entered if Path(code.co_filename).is_relative_to(HOME)]


def counts(call):
    "The numbers of one call, by name."
    codes = entered_codes(call)
    modules = [code.co_filename for code in codes]
    return {
        "functions": len({code for code in codes if not code.co_name.startswith("<")}),
        "names": len({(code.co_filename, code.co_name) for code in codes}),
        "switches": sum(a != b for a, b in zip(modules, modules[1:])),
        "modules": len(set(modules)),
    }


def matrices():
    "A matrix, three trials of it with one entry in twenty missing, and another system."
    rng = np.random.default_rng(0)
    x = rng.standard_normal((P, Q))
    trials = x + 0.5 * rng.standard_normal((3, P, Q))
    trials[rng.random(trials.shape) < 0.05] = np.nan
    return x, trials, rng.standard_normal((P, Q // 2))


def watched():
    "A function that watches a network of two layers on three batches."
    import torch

    torch.manual_seed(0)
    linear, batches = torch.nn.Linear, torch.randn(3, P, 20)
    net = torch.nn.Sequential(linear(20, Q), torch.nn.ReLU(), linear(Q, Q))

    def call():
        with sm.watch(net, ["0", "2"], random_state=0) as found:
            for batch in batches:
                net(batch)
        return found.dimension()

    return call


def calls():
    "Name and function of each call; options are given, as defaults may change."
    x, trials, y = matrices()
    seed = dict(random_state=0)
    return {
        "estimate": lambda: sm.estimate(x, 4, center=False, **seed),
        "trials, gaps": lambda: sm.estimate(trials, 3, center=True, trials=True, **seed),
        "alignment": lambda: sm.alignment(x, y, center=True, **seed),
        "watch": watched(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    given = parser.parse_args()
    found = {name: counts(call) for name, call in calls().items()}
    if given.json:
        return print(json.dumps({"version": sm.__version__, **found}))
    print(f"{sm.__version__:14}" + "".join(f"{head:>11}" for head in found["estimate"]))
    for name, numbers in found.items():
        print(f"{name:14}" + "".join(f"{number:11}" for number in numbers.values()))


if __name__ == "__main__":
    main()
