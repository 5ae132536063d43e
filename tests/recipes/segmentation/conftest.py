"""The published weights where they are on this machine; nothing is downloaded."""

import pytest

from mxopt.core.errors import DataError
from mxopt.data import locate


@pytest.fixture(scope="session")
def weights():
    try:
        folder = locate("deeplab-mobilenetv2", allow_download=False).path
    except DataError as error:
        pytest.skip(str(error))
    return folder / "deeplabv3_mnv2_pascal_quant.tflite"
