import os
from pathlib import Path

import mxopt  # noqa: F401  (before any test module imports MXNet)

# Child processes of the tests import tests/toy.py as a user's module is imported: from the path.
_here = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join([_here, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("OMP_NUM_THREADS", "1")
