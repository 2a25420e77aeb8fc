"`python -m spectral_moments`: the command of the chapter on the command line."

import sys

from .io.command_line import main

if __name__ == "__main__":
    sys.exit(main())
