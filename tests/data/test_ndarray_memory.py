import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon, nd

from mxopt.core.errors import DataError
from mxopt.data import ndarray_memory as host


def test_a_view_is_the_array_s_own_memory_and_keeps_it():
    array, memory = host.empty((2, 3), np.float32)
    memory[...] = [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal((array * 2).asnumpy(), 2 * memory)
    del array
    mx.nd.ones((2, 3)).wait_to_read()  # would take the memory if it were free
    np.testing.assert_array_equal(memory, [[1, 2, 3], [4, 5, 6]])


def test_a_view_waits_for_what_is_being_computed_and_begins_where_a_slice_does():
    square = nd.ones((700, 700))
    for _ in range(4):
        square = nd.dot(square, square) / 700
    np.testing.assert_allclose(host.view(square[3:5]), np.ones((2, 700)), rtol=1e-5)


@pytest.mark.parametrize("context", [None, host.SHARED, mx.cpu(1)])
@pytest.mark.parametrize(
    "samples",
    [
        [nd.array([[1, 2]], dtype="uint8"), nd.array([[3, 4]], dtype="uint8")],
        [(nd.array([1.5]), 3), (nd.array([2.5]), 4)],
        [(np.float32([1, 2]), 1.5), (np.float32([3, 4]), 2.5)],
    ],
)
def test_batches_are_gluon_s(samples, context):
    expected = gluon.data.dataloader.default_batchify_fn(samples)
    found = host.batchify(samples, context)
    pairs = zip(expected, found) if isinstance(expected, list) else [(expected, found)]
    for theirs, mine in pairs:
        assert mine.dtype == theirs.dtype
        assert mine.context == (context or mx.cpu())
        np.testing.assert_array_equal(mine.asnumpy(), theirs.asnumpy())


def test_samples_of_several_shapes_make_no_batch():
    with pytest.raises(DataError, match=r"shapes \[\(2,\), \(3,\)\]; crop or pad"):
        host.batchify([nd.zeros((2,)), nd.zeros((3,))])


def test_an_earlier_batch_is_filled_anew_where_the_next_one_fits():
    first = host.batchify([(nd.array([1.0, 2.0]), 3), (nd.array([4.0, 5.0]), 6)])
    second = host.batchify([(nd.array([7.0, 8.0]), 9), (nd.array([1.0, 2.0]), 3)], into=first)
    assert all(new is old for new, old in zip(second, first))
    np.testing.assert_array_equal(second[0].asnumpy(), [[7, 8], [1, 2]])
    np.testing.assert_array_equal(second[1].asnumpy(), [9, 3])
    smaller = host.batchify([(nd.array([1.0, 2.0]), 3)], into=second)
    assert [array.shape for array in smaller] == [(1, 2), (1,)]
