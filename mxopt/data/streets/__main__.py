"""Write the stand-in into a folder: ``python -m mxopt.data.streets data/streets``."""

import sys

from mxopt.data.streets import COUNT, generate

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name one folder: python -m mxopt.data.streets data/streets")
    generate(sys.argv[1])
    print(f"{COUNT} scenes written to {sys.argv[1]}")
