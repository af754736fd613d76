"""`python -m cones` is `cones`."""

import sys

from cones.cli import main

if __name__ == "__main__":
    sys.exit(main())
