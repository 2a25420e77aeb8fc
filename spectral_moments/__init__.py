"""Unbiased spectral moments of kernel integral operators from finite sample matrices.

    est = sm.estimate(phi)      # inputs x features, or trials x inputs x features
    print(est)                  # moments with standard errors and intervals
    est.dimension()             # participation ratio, with its interval
    sm.report(phi, "page.html") # all of it on one page
    sm.compare({"a": x, "b": y}), sm.alignment(x, y), sm.watch(network, "layer")

Files and streams: `load_matrix`, `row_batches`, `Stream`. The spectrum behind the moments:
`feasible`, `eigenvalue_bounds`, `spectral_bounds`, `power_law`. Data with a known answer:
`Linear`, `PowerLaw`, `RBF`. `help(sm.estimate)` tells every option.
"""

__version__ = "0.3.0"

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path


def _stub_table():
    "Public name -> (module, attribute), as the stub beside this file says it."
    stub = _ast.parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in stub.body if isinstance(node, _ast.ImportFrom))
    return {name.asname: (node.module, name.name) for node in imports for name in node.names}


_HOME = _stub_table()
__all__ = [name for name, (module, _) in _HOME.items() if module]


def __getattr__(name):
    "Load a module when a name of it is first used, so that importing stays light."
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOME[name]
    if module is None:
        return _import_module(f"{__name__}.{attribute}")
    from .signatures import documented

    value = getattr(_import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = documented(value)
    return value


def __dir__():
    return sorted({"__version__", *_HOME})
