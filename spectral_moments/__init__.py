"""Unbiased spectral moments of kernel integral operators from finite sample matrices."""

__version__ = "0.2.0"

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
    "WithError": "results",
    "compare": "results",
    "Comparison": "results",
    "feasible": "spectrum",
    "Spectrum": "moment_problem",
    "recover_eigenvalues": "spectrum",
    "eigenvalue_bounds": "moment_problem",
    "spectral_bounds": "moment_problem",
    "Bounds": "moment_problem",
    "renyi_dimension": "spectrum",
    "dimension_sweep": "sweeps",
    "Sweep": "sweeps",
    "plot_dimensions": "sweeps",
    "participation_ratio": "spectrum",
    "effective_dimension": "moment_problem",
    "operator_norm": "moment_problem",
    "power_law": "exponents",
    "compare_laws": "exponents",
    "LawFit": "exponents",
    "alignment": "similarity",
    "alignments": "similarity",
    "cross_moments": "similarity",
    "AlignmentStream": "similarity",
    "Alignment": "similarity",
    "Alignments": "similarity",
    "CrossMoments": "similarity",
    "LinearPair": "similarity",
    "RBFPair": "similarity",
    "variance_bound": "variance",
    "load_matrix": "files",
    "row_batches": "files",
    "from_xarray": "adapters",
    "from_anndata": "adapters",
    "first_moment_powers": "feature_learning",
    "subsample_check": "subsampling",
    "SubsampleCheck": "subsampling",
    "record": "networks",
    "Activations": "networks",
    "watch": "networks",
    "Watch": "networks",
    "Dimensions": "networks",
    "differentiable_dimension": "networks",
}

# modules that are used by their name: sm.sklearn.SpectralMoments, sm.comparison.compare
_MODULES = ("comparison", "recordings", "sklearn")

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _MODULES:
        from importlib import import_module
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import sys
    from importlib import import_module
    import_module(f"{__name__}.{_HOME[name]}")
    document = import_module(f"{__name__}.reference").document  # for help(), from comments
    for other, home in _HOME.items():
        module = sys.modules.get(f"{__name__}.{home}")
        if module is not None and hasattr(module, other):
            globals()[other] = document(other, getattr(module, other))
    return globals()[name]


def __dir__():
    return sorted({*globals(), *_HOME, *_MODULES})
