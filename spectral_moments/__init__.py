"""Unbiased spectral moments of kernel integral operators from finite sample matrices.

    est = sm.estimate(phi)          # matrix inputs x features: moments with their errors
    est.dimension()                 # participation ratio, with its confidence interval
    sm.report(phi, "page.html")     # all of it on one page

Dimension       estimate participation_ratio compare dimension_by_size from_moments
Similarity      alignment alignments
Spectrum        power_law spectral_function feasible eigenvalue_bounds function_bounds
Networks        watch record inverse_dimension
Data            load Stream Recording report
Estimators      naive kong_valiant increasing all_cycles
Known answers   Linear PowerLaw RBF
Results         Estimate Quantity ArgumentError

Everything else by its module, for instance sm.processes.Discrete, sm.noise.noise_check.
help(sm.estimate) explains every option.
"""

__version__ = "1.0.0"

from .public_names import lazy_attribute as __getattr__  # noqa: F401
from .public_names import public_directory as __dir__  # noqa: F401
