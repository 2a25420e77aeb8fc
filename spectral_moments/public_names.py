"""Public names are loaded when they are first used; old names warn or say what replaced them."""

import ast
import pkgutil
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

RENAMED = {  # 0.3 -> 1.0; these still work, with a DeprecationWarning
    "load_matrix": "load",
    "load_recording": "load",
    "row_batches": "io.files.row_batches",
    "dimension_sweep": "dimension_by_size",
    "spectral_bounds": "function_bounds",
    "Watch": "watch",
    "cka": "alignment",
    "operator_norm": "spectrum.bounds.largest_eigenvalue_bounds",
    "variance_bound": "teaching.variance.variance_bound",
    "noise_check": "noise.noise_check",
    "noise_moments": "noise.noise_moments",
    "Process": "processes.Process",
    "Discrete": "processes.Discrete",
    "ReLU": "processes.ReLU",
    "LinearPair": "processes.LinearPair",
    "Comparison": "results.Comparison",
    "LawFit": "spectrum.power_laws.DecayFit",
}
REMOVED = {  # 0.3 -> what to do instead
    "sketched": "sm.estimate takes random blocks of rows where a matrix is large",
    "compare_estimators EstimatorTable": "see studies/comparison.py in the repository",
    "from_xarray from_anndata": "pass array.to_numpy() and groups=, as in the recipes",
    "RBFPair": "see studies/alignment.py in the repository",
    "shards": "use sm.load, which takes a list of files",
    "shape_bounds ShapeBounds": "use sm.alignment, or est.derive for a function of moments",
    "cross_moments": "use sm.alignment, or sm.estimation.estimate_words for single words",
    "ceiling": "use sm.alignments(systems).ceiling(), of one system sm.alignment of half means",
    "AlignmentStream": "use sm.alignments of a sample of rows",
    "recover_eigenvalues": "use sm.feasible; the paper's recovery is in its chapter",
    "renyi_dimension": "use sm.estimate(phi, n).derive(f, 'reciprocal')",
    "effective_dimension": "use sm.spectral_function(phi, ('ridge', value))",
    "plot_dimensions": "plot the quantities of sm.compare({name: phi, ...})",
    "local_dimension LocalDimension": "select the rows and use sm.estimate",
    "by Classes": "use sm.compare({label: phi[labels == label], ...})",
    "cvpca": "use sm.power_law for the decay of the eigenvalues",
    "compare_laws": "use sm.power_law, which tests its fit",
    "subsample_check SubsampleCheck": "use sm.dimension_by_size",
    "EstimateWarning": "remove the filters, and read est.notes",
    "callbacks": "the recipes have ten lines for Lightning and for torchmetrics",
}


NEEDED = {"networks": "torch", "sklearn": "sklearn"}  # module -> package and extra


def read_stub():
    "Return public name -> (module, attribute) from the stub of the package."
    stub = Path(__file__).with_name("__init__.pyi").read_text(encoding="utf-8")
    found = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom):
            found |= {name.asname: (node.module, name.name) for name in node.names}
    return found


STUB = read_stub()
PUBLIC = [name for name, (module, _) in STUB.items() if module]


def load_module(path):
    "Import a module of this package, and all modules in it."
    module = import_module(f"{__package__}.{path}")
    for inside in pkgutil.iter_modules(getattr(module, "__path__", ())):
        import_module(f"{module.__name__}.{inside.name}")
    return module


def old_name(name):
    "Return what a name of 0.3 means now, with a warning, or say what replaced it."
    if name in RENAMED:
        message = f"sm.{name} is now sm.{RENAMED[name]}"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        path, _, attribute = RENAMED[name].rpartition(".")
        return getattr(import_module(f"{__package__}.{path}".rstrip(".")), attribute)
    for names, instead in REMOVED.items():
        if name in names.split():
            raise AttributeError(f"sm.{name} was removed in version 1.0: {instead}")
    raise AttributeError(f"module {__package__!r} has no attribute {name!r}")


def missing_package(name):
    "Return the package that a name needs and that is not installed, or None."
    package = NEEDED.get(STUB[name][0] or name)
    return package if package and find_spec(package) is None else None


def lazy_attribute(name):
    "Return a public name or a module of the package: its `__getattr__`."
    if name not in STUB:
        return old_name(name)
    if package := missing_package(name):
        remedy = f"pip install 'spectral_moments[{package}]'"
        raise ImportError(f"sm.{name} needs {package}; {remedy}")
    module, attribute = STUB[name]
    if module is None:
        return load_module(attribute)
    from .signatures import documented

    value = documented(getattr(import_module(f"{__package__}.{module}"), attribute))
    setattr(import_module(__package__), name, value)
    return value


def public_directory():
    "Return what `dir()` and `help()` list: what can be used here."
    return ["__version__", *sorted(name for name in STUB if not missing_package(name))]
