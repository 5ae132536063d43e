"""The published weights where they are on this machine; nothing is downloaded."""

import pytest

from mxopt.datasets import locate
from mxopt.errors import DataError


@pytest.fixture(scope="session")
def weights():
    try:
        folder = locate("deeplab-mobilenetv2", allow_download=False).path
    except DataError as error:
        pytest.skip(str(error))
    return folder / "deeplabv3_mnv2_pascal_quant.tflite"
