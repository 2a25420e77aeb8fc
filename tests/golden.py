"""Stored calls with what they gave, to see what another version changes.

python tests/golden.py          # the same calls, stored for the version at hand

Calls are data: `function`, `data` (seed, shape and process of each array, or a call whose
result is passed on), `options`. `CALLS` says how a function is called where this is not
plain, `FIELDS` where its numbers are found; a new layout of results changes only these.
"""

import json
import subprocess
import tempfile
import warnings
from dataclasses import replace
from operator import attrgetter, itemgetter
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

import spectral_moments as sm

HERE = Path(__file__).resolve().parent
STORED = HERE / "golden_v02.json"
RTOL, ATOL = 1e-9, 1e-12  # of a number; of the largest number of its field
DIGITS = 13  # that are stored


def triangle(matrix):
    "A symmetric matrix, each number once."
    return None if matrix is None else matrix[np.triu_indices(len(matrix))]


def each(names, get):
    "Accessors of named parts."
    return {name: get(name) for name in names}


def end(k):
    "One end of the 95% interval."
    return lambda x: x.interval(0.95)[k]


def part(start):
    "Standard errors that are due to axes whose names begin so: one, or one for each."

    def get(x):
        found = [error for name, error in x.parts.items() if name.startswith(start)]
        return (found if len(found) > 1 else found[0]) if found else None

    return get


def undrawn(get):
    "A field as if what is drawn had no error: version 0.2 left that out."
    known = lambda x: {k: axis for k, axis in x.axes.items() if k != "draws"}
    return lambda x: get(replace(x, axes=known(x)))


INTERVAL = {"low95": end(0), "high95": end(1)}
SIDES = {"stderr_rows": part("inputs"), "stderr_columns": part("features")}
MOMENTS = {
    **each(["values", "usable"], attrgetter),
    "stderr": undrawn(attrgetter("stderr")),
    **SIDES,
    "probe_error": lambda x: x.parts["probes"],
    "covariance": undrawn(lambda x: triangle(x.covariance)),
    "expected_stderr": lambda x: x.expected_stderr(50, 70).middle,
    "dimension": lambda x: x.dimension().value,
    "dimension_stderr": lambda x: x.dimension().stderr,
    **{name: undrawn(get) for name, get in INTERVAL.items()},
}
ALIGNMENT = {
    **each(["value", "stderr", "ratio"], attrgetter),
    **SIDES,
    "numerator": lambda x: x.estimate.values[1],
    "numerator_stderr": lambda x: x.estimate.stderr[1],
    "denominators": lambda x: x.estimate.values[::2],
    "denominators_stderr": lambda x: x.estimate.stderr[::2],
    **INTERVAL,
}
TABLE = each(["values", "stderr"], attrgetter)
LAW = {
    "parameters": lambda x: [*x.parameters.values()],
    "stderr": lambda x: [*x.stderr.values()],
    "covariance": lambda x: triangle(x.covariance),
    **each(["orders", "moments", "chi_square", "dof", "p_value", "bent"], attrgetter),
    **INTERVAL,
}
SPECTRUM = {
    "values": attrgetter("values"),
    "stderr": attrgetter("moments.stderr"),
    "linearised": lambda x: triangle(x.linearised),
    "eigenvalues": lambda x: x.eigenvalues(8),
    "low95": lambda x: np.maximum(x.moments.interval()[0], 0),
    "high95": lambda x: x.moments.interval()[1],
}
CHECK = {
    "shapes": attrgetter("shapes"),
    "ratios": lambda x: x.ratios("all_cycles")[0],
    "stderr": lambda x: x.ratios("all_cycles")[1],
    "naive": lambda x: x.ratios("naive")[0],
    "whole": lambda x: x.whole["all_cycles"],
}
PROCESS = {
    "moments": lambda x: x.moments(4),
    "eigenvalues": lambda x: x.eigenvalues(4),
    "sample": lambda x: x.sample(3, 2, random_state=1),
}
PAIR = {
    "moments": lambda x: [x.moment(word) for word in ("aa", "ab", "bb")],
    "alignment": lambda x: x.alignment(),
    "sample": lambda x: np.hstack(x.sample(3, 2, 2, random_state=1)),
}
VALUE = {"value": attrgetter("value"), "stderr": attrgetter("stderr")}
BOUNDS = {"low": itemgetter(0), "high": itemgetter(1)}
PARTS = {"value": itemgetter(0), "gradient": itemgetter(1)}
PLAIN = {"values": lambda x: x}  # an array or a number
#: for each function, the fields of its result and how to reach them
FIELDS = {
    **dict.fromkeys(["estimate", "Stream", "SpectralMoments"], MOMENTS),
    "alignment": ALIGNMENT,
    **dict.fromkeys(["alignments", "AlignmentStream", "watch"], TABLE),
    "cross_moments": {**TABLE, "covariance": lambda x: triangle(x.covariance)},
    **dict.fromkeys(["participation_ratio", "renyi_dimension"], VALUE),
    "power_law": LAW,
    "feasible": SPECTRUM,
    **dict.fromkeys(["spectral_bounds", "eigenvalue_bounds", "operator_norm"], BOUNDS),
    "effective_dimension": BOUNDS,
    "subsample_check": CHECK,
    "dimension_sweep": {"shapes": attrgetter("shapes"), "whole": lambda x: x.whole.value},
    "compare": {
        "rows": lambda x: [[r[k] for k in ("difference", "error", "p")] for r in x.rows]
    },
    "compare_laws": {"parameters": lambda x: [y.exponent for y in x.values()]},
    **dict.fromkeys(["Linear", "PowerLaw", "Discrete", "RBF", "ReLU"], PROCESS),
    **dict.fromkeys(["LinearPair", "RBFPair"], PAIR),
    **dict.fromkeys(["differentiable_dimension", "all_cycles_gradient"], PARTS),
}


def stream(x, *, batches, merge=None, stderr=True, shuffle=0, mergeable=0, **options):
    "The estimate of rows in batches; those from number `merge` on in a second stream."
    rows, options = np.cumsum([0, *batches]), {"n_features": x.shape[-1], **options}
    merge = len(batches) if merge is None else merge
    parts = [sm.Stream(**options), sm.Stream(**options)]
    for k, (start, stop) in enumerate(zip(rows, rows[1:])):
        parts[k >= merge].update(x[..., start:stop, :])
    one = parts[0] if merge == len(batches) else parts[0].merge(parts[1])
    return one.estimate(stderr=stderr)


def alignment_stream(*systems, batches, **options):
    "Alignments of systems whose rows come in batches."
    found, rows = sm.AlignmentStream(**options), np.cumsum([0, *batches])
    for start, stop in zip(rows, rows[1:]):
        found.update(named([x[..., start:stop, :] for x in systems]))
    return found.estimate()


def watch(net, x, *, batches, finite=False, what="dimension", **options):
    "Dimensions or alignments of the layers of a network that is run on batches."
    import torch

    with sm.watch(net, **options) as watched:
        for part in torch.as_tensor(x).split(batches):
            net(part)
    if what == "alignments":
        return watched.alignments()
    found = [x.layer if finite else x.law for x in watched.dimension().values()]
    values, stderr = ([getattr(x, name) for x in found] for name in ("value", "stderr"))
    return SimpleNamespace(values=values, stderr=stderr)


def gradient(function):
    "A function that gives its last number and the gradient of it."

    def value_and_gradient(x, **options):
        x = x.clone().requires_grad_()
        value = function(x, **options)
        value.flatten()[-1].backward()
        return value.detach(), x.grad

    return value_and_gradient


def named(systems):
    return dict(zip("abcdef", systems))


FUNCTIONS = {"log1p": np.log1p, "square": np.square, "cube": lambda s: s**3}
FUNCTIONS |= {"sqrt": np.sqrt, "ridge": lambda s: s / (s + 0.1)}
#: how to call what is not called as function(*data, **options)
CALLS = {
    "Stream": stream,
    "SpectralMoments": lambda x, **o: sm.sklearn.SpectralMoments(**o).fit(x).estimate_,
    "alignments": lambda *x, **o: sm.alignments(named(x), **o),
    "AlignmentStream": alignment_stream,
    "compare": lambda *x: sm.compare(named(x)),
    "spectral_bounds": lambda x, function, **o: sm.spectral_bounds(
        x, FUNCTIONS[function], **o
    ),
    "watch": watch,
    "record": lambda net, x, **o: sm.record(net, inputs=x, **o).values,
    "differentiable_dimension": gradient(lambda x, **o: 1 / sm.inverse_dimension(x, **o)),
    "all_cycles_gradient": gradient(lambda x, **o: sm.all_cycles(x, **o)),
}


def latent(x, w, exponent=1.0):
    "A bilinear process with eigenvalues that fall like a power of the rank."
    return x * np.arange(1.0, x.shape[1] + 1) ** (-exponent / 2) @ w


PROCESSES = {
    "power": latent,
    "flat": lambda x, w: latent(x, w, 0.0) / 4,
    "steep": lambda x, w: latent(x, w, 2.0),
    "offset": lambda x, w: latent(x, w) + 1 + w[0],
    "relu": lambda x, w: np.maximum(latent(x, w), 0),
    "heavy": lambda x, w: np.sinh(latent(x, w)),
    "whole": lambda x, w: np.rint(2 * latent(x, w)),
}


def matrix(
    seed, shape, process="power", *, rank=12, inputs=None, noise=0.5, gaps=0, scale=1
):
    "An array of numbers from seeds; systems with the same `inputs` see the same inputs."
    rng, (P, Q) = np.random.default_rng(seed), shape[-2:]
    given = np.random.default_rng(seed + 1000 if inputs is None else inputs)
    x, w = given.standard_normal((P, rank)), rng.standard_normal((rank, Q))
    phi = scale * PROCESSES[process](x, w)
    if len(shape) == 3:
        phi = phi + scale * noise * rng.standard_normal(shape)
    return np.where(rng.random(phi.shape) < gaps, np.nan, phi)


def network(seed, sizes):
    "Linear layers with a bend between them."
    import torch

    rng, layers = np.random.default_rng(seed), []
    for n, m in zip(sizes, sizes[1:]):
        layer = torch.nn.Linear(n, m, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(rng.standard_normal((m, n)) / n**0.5))
            layer.bias.copy_(torch.as_tensor(0.3 * rng.standard_normal(m)))
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers)


def in_file(x, kind):
    "An array as one that is read from a file, or from what acts like one."
    if kind == "memmap":
        with tempfile.TemporaryFile() as file:  # gone when the map is
            copy = np.memmap(file, dtype=x.dtype, shape=x.shape)
        copy[...] = x
        return copy
    if kind == "h5py":
        import h5py

        file = h5py.File("golden.h5", "w", driver="core", backing_store=False)
        return file.create_dataset("x", data=x)
    import zarr

    return zarr.array(x)


def turned_into(x, kind):
    "Numbers as another kind of array."
    if kind in ("float32", "int64"):
        return x.astype(kind)
    if kind in ("torch", "torch32", "dask", "pandas"):
        import dask.array
        import pandas
        import torch

        if kind == "torch32":
            return torch.as_tensor(x).float()
        makers = {"torch": torch.as_tensor, "pandas": pandas.DataFrame}
        return makers.get(kind, lambda x: dask.array.from_array(x, chunks=7))(x)
    if kind in ("memmap", "h5py", "zarr"):
        return in_file(x, kind)
    makers = {None: np.asarray, "list": np.ndarray.tolist, "fortran": np.asfortranarray}
    return (makers | {"strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2]})[kind](x)


def made(spec):
    "What a call is given: an array, moments, a network, or the result of another call."
    if "function" in spec:
        return result(spec)
    if "moments" in spec:
        m, *errors = (np.array(x) for x in spec.values())
        return sm.from_moments(m, *errors) if errors else m
    if "sizes" in spec:
        return network(**spec)
    spec = dict(spec)
    kind, _ = spec.pop("as", None), spec.pop("lazy", None)
    order = spec.pop("trials", slice(None))
    return turned_into(matrix(**spec)[order], kind)


def result(call):
    "What a call returns, as it is."
    name, data = call["function"], call.get("data", [])
    function = CALLS.get(name) or getattr(sm, name)
    return function(*map(made, data), **call.get("options", {}))


def numbers(x):
    "A list of floats, or one."
    x = np.asarray(x.detach() if hasattr(x, "detach") else x, dtype=float)
    return x.ravel().tolist() if x.ndim else float(x)


def run(call):
    "The numbers of one call, by field; without fields that its result does not have."
    from spectral_moments.engine import arrays

    lazy = any(spec.get("lazy") for spec in call.get("data", []))
    found, limit = {}, 0 if lazy else arrays.LOADED
    with warnings.catch_warnings(), patch.object(arrays, "LOADED", limit):
        warnings.simplefilter("ignore")
        answer = result(call)
        for field, get in FIELDS.get(call["function"], PLAIN).items():
            try:
                value = get(answer)
            except (AttributeError, TypeError, LookupError):
                continue
            if value is not None:
                found[field] = numbers(value)
    return found


def stored_form(x):
    "Numbers for JSON: rounded, and as a word if not finite."
    if isinstance(x, list):
        return [stored_form(y) for y in x]
    return float(f"{x:.{DIGITS}g}") if np.isfinite(x) else str(x)


def size(x):
    "The largest finite number of a field."
    x = np.array(x, dtype=float, ndmin=1)
    return abs(x[np.isfinite(x)]).max(initial=0)


def unit(field, found):
    "The size of a field, or if it is larger, of what it is the error of."
    name, error, _ = field.partition("stderr")
    about = found.get(name.rstrip("_")) or found.get("values") or found.get("value", 0)
    return max(size(found[field]), size(about) if error else 0)


def difference(new, old, scale):
    "Largest relative difference of a field; zero within the tolerance."
    new, old = (np.array(x, dtype=float, ndmin=1) for x in (new, old))
    if new.shape != old.shape:
        return np.inf
    same = (new == old) | (np.isnan(new) & np.isnan(old))
    with np.errstate(all="ignore"):
        gap = abs(new - old)
        same |= gap <= RTOL * abs(old) + ATOL * scale
        return np.nan_to_num(gap / abs(old), nan=np.inf)[~same].max(initial=0)


def read(path):
    "The stored calls."
    return json.loads(path.read_text(encoding="utf-8"))


def write(calls):
    "Run calls and store them for this version."
    home = Path(sm.__file__).resolve().parent
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=home, capture_output=True, text=True, check=True
    ).stdout.strip()
    lines = []
    for call in calls:
        call = {k: v for k, v in call.items() if k != "found"}
        call["found"] = {k: stored_form(x) for k, x in run(call).items()}
        lines.append(json.dumps(call, separators=(",", ":"), allow_nan=False))
    head = f'{{"version":"{sm.__version__}","commit":"{commit}","calls":[\n'
    path = HERE / f"golden_v{''.join(sm.__version__.split('.')[:2])}.json"
    path.write_text(head + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
    print(f"{len(lines)} calls in {path}")


def changes(calls):
    "For each field, and for errors, the calls that differ and by how much."
    found = {}
    for call in calls:
        try:
            new = run(call)
        except Exception as error:  # a call that is refused now is a change like others
            said = f"{type(error).__name__}: {error}"
            found.setdefault("error", {})[call["name"]] = said
            continue
        for field, old in call["found"].items():
            gap = "absent"
            if field in new:
                gap = difference(new[field], old, unit(field, call["found"]))
            if gap:
                found.setdefault(field, {})[call["name"]] = gap
        for field in new.keys() - call["found"]:
            found.setdefault(field, {})[call["name"]] = "new"
    return found


if __name__ == "__main__":
    write(read(STORED)["calls"])
