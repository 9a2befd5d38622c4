"""`python -m vecfill` is the command `vecfill`."""

import sys

from vecfill.cli import main

if __name__ == "__main__":
    sys.exit(main())
