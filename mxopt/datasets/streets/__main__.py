"""Write the stand-in into a folder: ``python -m mxopt.datasets.streets data/streets``."""

import sys

from mxopt.datasets.streets import COUNT, generate

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name one folder: python -m mxopt.datasets.streets data/streets")
    generate(sys.argv[1])
    print(f"{COUNT} scenes written to {sys.argv[1]}")
