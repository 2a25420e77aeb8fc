# The public names and where they are defined: `public_names.py` reads this table, and so do
# editors and type checkers. Types and docstrings are in the modules themselves.

from .estimation import estimate as estimate
from .estimation import participation_ratio as participation_ratio
from .results import compare as compare
from .similarity import alignment as alignment
from .similarity import alignments as alignments
from .io.report import report as report
from .io.files import load as load
from .stream import Stream as Stream
from .engine.data import Recording as Recording
from .networks import Watch as watch
from .networks import record as record
from .networks import inverse_dimension as inverse_dimension
from .spectrum.feasible import feasible as feasible
from .spectrum.bounds import eigenvalue_bounds as eigenvalue_bounds
from .spectrum.bounds import function_bounds as function_bounds
from .spectrum.functions import spectral_function as spectral_function
from .spectrum.power_laws import power_law as power_law
from .spectrum.submatrices import dimension_by_size as dimension_by_size
from .results import Estimate as Estimate
from .results import Quantity as Quantity
from .checks import ArgumentError as ArgumentError
from .results import from_moments as from_moments
from .estimators import naive as naive
from .estimators import kong_valiant as kong_valiant
from .estimators import increasing as increasing
from .estimators import all_cycles as all_cycles
from .processes import Linear as Linear
from .processes import PowerLaw as PowerLaw
from .processes import RBF as RBF
from . import diagnostics as diagnostics
from . import engine as engine
from . import errors as errors
from . import estimation as estimation
from . import estimators as estimators
from . import io as io
from . import networks as networks
from . import noise as noise
from . import processes as processes
from . import results as results
from . import similarity as similarity
from . import sklearn as sklearn
from . import spectrum as spectrum
from . import stream as stream
from . import teaching as teaching

__version__: str
