"""What MXNet uses and NumPy changed since 1.23: results and parameters behave as before."""

import mxnet as mx
import numpy
import pytest
import scipy.sparse
from mxnet import np

VALUES = [[3.0, 1.0, 2.0], [0.5, -4.0, 8.0]]


@pytest.fixture(autouse=True)
def numpy_semantics():
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


@pytest.mark.parametrize("name", ["alltrue", "sometrue", "product", "cumproduct", "msort", "trapz"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_restored_functions_take_both_kinds_of_array(name):
    function = getattr(numpy, name)
    expected = function(numpy.array(VALUES))
    got = function(np.array(VALUES))
    numpy.testing.assert_allclose(numpy.asarray(got, dtype=float), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_restored_functions_reach_the_operator_of_mxnet():
    assert isinstance(numpy.product(np.array(VALUES)), np.ndarray)
    assert isinstance(numpy.round_(np.array(VALUES), 0), np.ndarray)
    assert numpy.in1d(np.array([1.0, 5.0]), [5.0]).tolist() == [False, True]


@pytest.mark.parametrize("name", ["mirr", "npv", "pmt", "ppmt", "pv", "rate"])
def test_financial_functions_raise_as_they_did(name):
    with pytest.raises(RuntimeError, match="numpy_financial"):
        getattr(np.fallback, name)(1, 2, 3, 4)


@pytest.mark.parametrize("name", ["percentile", "quantile", "nanpercentile", "nanquantile"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_interpolation_is_taken(name):
    point = 40 if "percentile" in name else 0.4
    values = numpy.array([1.0, 2.0, 3.0, 4.0])
    expected = getattr(numpy, name)(values, point, method="lower")
    assert getattr(numpy, name)(values, point, interpolation="lower") == expected
    assert float(getattr(np, name)(np.array(values), point, interpolation="lower")) == expected


def test_factorisations_return_what_numpy_returns():
    square = numpy.array([[4.0, 1.0], [1.0, 3.0]])
    for name in ("eig", "eigh", "qr"):
        got = getattr(np.linalg, name)(np.array(square))
        expected = getattr(numpy.linalg, name)(square)
        assert type(got) is type(expected)
        assert all(isinstance(part, np.ndarray) for part in got)
    q, r = np.linalg.qr(np.array(square))
    numpy.testing.assert_allclose((q @ r).asnumpy(), square, rtol=1e-5)


@pytest.mark.parametrize("name", ["broadcast_arrays", "meshgrid", "atleast_1d", "atleast_2d"])
def test_several_arrays_come_in_numpys_container(name):
    ones, two = numpy.ones(2), numpy.ones(2)
    got = getattr(np, name)(np.array(ones), np.array(two))
    assert type(got) is type(getattr(numpy, name)(ones, two))


def test_pad_by_name_of_mode():
    padded = np.pad(np.array([[1.0, 2.0]]), ((1, 0), (1, 1)), mode="constant")
    assert padded.tolist() == [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0]]


@pytest.mark.filterwarnings("error")
def test_moveaxis_is_silent():
    assert mx.nd.moveaxis(mx.nd.ones((1, 2, 3)), 0, 2).shape == (2, 3, 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_records_with_several_labels_and_images_can_be_packed():
    header = mx.recordio.IRHeader(0, [1.0, 2.0], 7, 0)
    unpacked, content = mx.recordio.unpack(mx.recordio.pack(header, b"content"))
    assert (unpacked.label.tolist(), content) == ([1.0, 2.0], b"content")
    image = numpy.arange(48, dtype=numpy.uint8).reshape(4, 4, 3)
    packed = mx.recordio.pack_img(header, image, img_fmt=".png")
    assert (mx.recordio.unpack_img(packed)[1] == image).all()


def test_arrays_of_mxnet_become_arrays_of_numpy():
    values = numpy.array(VALUES, dtype="float32")
    for array in (mx.nd.array(values), np.array(values)):
        assert numpy.array_equal(numpy.asarray(array), values)
        assert numpy.asarray(array, dtype="float64").dtype == numpy.float64
    assert numpy.array([mx.nd.ones((2,)), mx.nd.ones((2,))]).shape == (2, 2)


@pytest.mark.skipif(numpy.__version__ < "2", reason="an older NumPy ignores the wish not to copy")
def test_an_array_cannot_be_had_without_a_copy():
    with pytest.raises(ValueError, match="copy"):
        numpy.array(mx.nd.ones((2,)), copy=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_integers_beyond_the_type_wrap():
    assert mx.nd.array([-1, 256], dtype="uint8").asnumpy().tolist() == [255, 0]
    assert np.array([-1, 256], dtype="uint8").tolist() == [255, 0]
    row = mx.nd.zeros((2,), dtype="uint8")
    row[:] = [300, -1]
    assert row.asnumpy().tolist() == [44, 255]


def test_numbers_of_numpy_may_be_parameters():
    two, three = numpy.int64(2), numpy.int32(3)
    assert mx.nd.random.uniform(shape=(two, three)).shape == (2, 3)
    assert mx.nd.tile(mx.nd.ones((2,)), reps=[two]).shape == (4,)
    assert mx.nd.slice_axis(mx.nd.arange(4), axis=0, begin=two, end=None).shape == (2,)
    pooled = mx.sym.Pooling(mx.sym.var("x", shape=(1, 1, two, 4)), kernel=(two, two), stride=(2, 2))
    assert pooled.infer_shape()[1] == [(1, 1, 1, 2)]
    assert mx.sym.Variable is mx.sym.var


def test_iterators_take_numbers_of_numpy(tmp_path):
    path = tmp_path / "rows.csv"
    numpy.savetxt(path, numpy.arange(12).reshape(4, 3), delimiter=",")
    iterator = mx.io.CSVIter(
        data_csv=str(path), data_shape=(numpy.int64(3),), batch_size=numpy.int64(2)
    )
    assert next(iterator).data[0].shape == (2, 3)


def test_orthogonal_weights():
    weight = mx.nd.zeros((3, 4))
    mx.init.Orthogonal(scale=1)._init_weight("weight", weight)
    product = mx.nd.dot(weight, weight.T).asnumpy()
    numpy.testing.assert_allclose(product, numpy.eye(3), atol=1e-5)


@pytest.mark.filterwarnings("error")
def test_making_arrays_is_silent():
    assert mx.nd.array([1.0, 2.0]).shape == (2,)
    csr = mx.nd.sparse.csr_matrix(scipy.sparse.csr_matrix(numpy.eye(3)))
    assert (csr.stype, mx.nd.sparse.array(csr).asnumpy().trace()) == ("csr", 3.0)
