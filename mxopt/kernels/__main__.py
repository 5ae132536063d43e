"""Compile the operators and print where the library is: ``python -m mxopt.kernels``."""

import sys

from mxopt.core.errors import DeviceError
from mxopt.kernels.build import build

try:
    print(build())
except DeviceError as error:
    sys.exit(f"mxopt: {error}")
