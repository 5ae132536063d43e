"""Write the archive of street scenes: ``PYTHONPATH=data python -m draw_streets [FILE.zip]``."""

import sys
import tempfile

from packing import pack

from draw_streets import COUNT, generate
from mxopt.data.sources import STAND_INS

if __name__ == "__main__":
    target = sys.argv[1] if sys.argv[1:] else STAND_INS / "streets.zip"
    with tempfile.TemporaryDirectory() as scratch:
        generate(scratch)
        pack(scratch, target)
    print(f"{COUNT} scenes written to {target}")
