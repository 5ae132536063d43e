"""``python -m mxopt`` is the command ``mxopt``."""

import sys

from mxopt.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
