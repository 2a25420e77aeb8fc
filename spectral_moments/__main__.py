"`python -m spectral_moments`: the command `spectral-moments`."

import sys

from .io.command_line import main

if __name__ == "__main__":
    sys.exit(main())
