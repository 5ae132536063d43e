"""Multiply-adds and bytes, against counts by hand."""

import mxnet as mx
import pytest
from mxnet import gluon, nd

from mxopt import kernels
from mxopt.kernels import operators as ops
from mxopt.measure.operations import multiply_adds, operators

nn = gluon.nn


def counted(block, *shapes):
    block.initialize()
    return operators(block, *(nd.ones(shape) for shape in shapes))


def test_a_convolution_with_groups():
    [conv] = counted(nn.Conv2D(8, 3, padding=1, strides=2, groups=2, in_channels=4), (5, 4, 6, 8))
    # 5 images x 8 channels x 3 x 4 places, each the sum of 2 channels x 9 products
    assert (conv.kind, conv.multiply_adds) == ("Convolution", 5 * 8 * 3 * 4 * 2 * 9)
    assert conv.bytes == 4 * (5 * 4 * 6 * 8 + 8 * 2 * 9 + 8 + 5 * 8 * 3 * 4)


def test_dense_layers_and_products():
    dense, relu = counted(nn.Dense(7, activation="relu", in_units=12), (3, 12))
    assert (dense.multiply_adds, relu.multiply_adds) == (3 * 12 * 7, 0)
    assert relu.bytes == 4 * 2 * 3 * 7

    class Products(gluon.HybridBlock):
        def hybrid_forward(self, F, a, b):
            return F.dot(F.batch_dot(a, b, transpose_b=True).sum(axis=0), F.ones((6, 2)))

    found = counted(Products(), (2, 5, 4), (2, 6, 4))
    assert [one.multiply_adds for one in found if one.multiply_adds] == [2 * 5 * 6 * 4, 5 * 2 * 6]


def test_a_whole_network():
    net = gluon.model_zoo.vision.mobilenet0_25()
    net.initialize(mx.init.Xavier())
    # Howard et al., "MobileNets" (2017), table 6: 41 million for a width of 0.25
    assert 40e6 < multiply_adds(net, nd.ones((1, 3, 224, 224))) < 42e6


@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
def test_attention_of_both_forms():
    class Attention(gluon.HybridBlock):
        def hybrid_forward(self, F, words, others, lengths, other_lengths):
            draws = F.ones(64)
            both = F.concat(others, others, dim=2)
            read = ops.attention(F, words, both, lengths, other_lengths, draws, heads=2)
            three = F.concat(read, read, read, dim=2)
            return ops.self_attention(F, three, lengths, draws, heads=2)

    lengths = nd.array([5, 5, 5]), nd.array([7, 7, 7])
    # three samples, each with its row, or all in one row
    for rows, words in ((3, 5), (1, 15)):
        shapes = (rows, words, 8), (rows, words // 5 * 7, 8)
        found = operators(Attention(), *map(nd.ones, shapes), *lengths)
        nd.waitall()  # an error would be raised in a later test
        across, own = (one for one in found if one.kind == "mxopt_attention")
        # scores of each pair of words, and their product with the values: 8 multiplications each
        assert across.multiply_adds == 2 * 3 * 5 * 7 * 8
        assert own.multiply_adds == 2 * 3 * 5 * 5 * 8


@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
@pytest.mark.parametrize(("stride", "places"), [(1, 6 * 8), (2, 3 * 4)])
def test_an_inverted_residual_is_its_three_convolutions(stride, places):
    class Block(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            parameters = [F.ones(shape) for shape in ((12, 2, 1, 1), 12, (12, 1, 3, 3), 12,
                                                      (4, 12, 1, 1), 4)]  # fmt: skip
            return ops.inverted_residual(F, x, *parameters, stride=stride)

    [block] = [one for one in counted(Block(), (5, 2, 6, 8)) if one.multiply_adds]
    assert block.multiply_adds == 5 * (6 * 8 * 2 * 12 + places * (12 * 9 + 12 * 4))


@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
def test_convolutions_by_kernels_count_the_products_that_they_need():
    class All(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            one, three = F.ones((4, 2, 1, 1)), F.ones((5, 2, 3, 3))
            found = ops.seen_taps(F, x, one, three, dilations=(1, 6), mean=True)
            near, far = (ops.winograd(F, x, three, dilation=dilation) for dilation in (1, 3))
            return found[1] + near + far

    found = counted(All(), (3, 2, 6, 8))
    # Dilated by 6, a tap beside the centre sees none of 6 rows, and 2 of 8 columns.
    taps = 3 * (2 * 4 * 6 * 8 + 2 * 5 * 6 * (2 + 8 + 2))
    assert [one.multiply_adds for one in found if one.kind == "mxopt_seen_taps"] == [taps]
    # Dilated by 3, there are windows of outputs that begin at each of 3 rows, and of 3 columns.
    windows = [2 * 2, 3 * 3]
    assert [one.multiply_adds for one in found if one.kind == "mxopt_winograd"] == [
        3 * each * 36 * 2 * 5 for each in windows
    ]


@pytest.mark.skipif(not kernels.available(), reason="no compiler for mxopt's kernels")
def test_kernels_are_the_layers_that_they_replace():
    class Layers(gluon.HybridBlock):
        def hybrid_forward(self, F, image, words, labels):
            pooled = ops.pooled_convolution(F, image, F.ones((3, 2, 3, 3)), F.ones(3))
            hidden = ops.dense(F, words, F.ones((7, 4)), F.ones(7))
            loss = ops.cross_entropy(F, hidden, F.ones((9, 7)), labels, F.ones(9))
            return pooled.sum() + loss.sum()

    found = counted(Layers(), (5, 2, 6, 8), (10, 4), (10,))
    nd.waitall()  # an error would be raised in a later test
    kinds = {one.kind: one.multiply_adds for one in found if one.multiply_adds}
    assert kinds == {
        "mxopt_pooled_convolution": 5 * 3 * 6 * 8 * 2 * 9,
        "mxopt_dense": 10 * 4 * 7,
        "mxopt_cross_entropy": 10 * 7 * 9,
    }
