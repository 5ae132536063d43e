"""Write the archive of garments: ``PYTHONPATH=data python -m draw_garments [FILE.zip]``."""

import sys
import tempfile

from packing import pack

from draw_garments import COUNTS, generate
from mxopt.data.sources import STAND_INS

if __name__ == "__main__":
    target = sys.argv[1] if sys.argv[1:] else STAND_INS / "garments.zip"
    with tempfile.TemporaryDirectory() as scratch:
        generate(scratch)
        pack(scratch, target)
    print(f"{sum(COUNTS.values()):,} garments written to {target}")
