"""Unbiased spectral moments of kernel integral operators from finite sample matrices."""

__version__ = "0.1.0"

# Public name -> the module that defines it, loaded when the name is first used, so that
# `import spectral_moments` stays light. This table is all the code that is not in a notebook.
_HOME = {
    "Linear": "operators",
    "Discrete": "operators",
    "PowerLaw": "operators",
    "RBF": "rbf",
    "ReLU": "rbf",
    "naive": "estimation",
    "kong_valiant": "estimation",
    "increasing": "estimation",
    "all_cycles": "estimation",
    "sketched": "estimation",
    "Stream": "stream",
    "estimate": "estimation",
    "Estimate": "results",
    "EstimateWarning": "results",
    "compare": "results",
    "feasible": "spectrum",
    "Spectrum": "spectrum",
    "recover_eigenvalues": "spectrum",
    "eigenvalue_bounds": "spectrum",
    "spectral_bounds": "spectrum",
    "renyi_dimension": "spectrum",
    "dimension_sweep": "spectrum",
    "plot_dimensions": "spectrum",
    "participation_ratio": "spectrum",
    "effective_dimension": "spectrum",
    "operator_norm": "spectrum",
    "power_law": "exponents",
    "alignment": "similarity",
    "alignments": "similarity",
    "cross_moments": "similarity",
    "AlignmentStream": "similarity",
    "Alignment": "similarity",
    "record": "networks",
    "watch": "networks",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__():
    return sorted({*globals(), *_HOME})
