"""A block applied to the four grids of every second row and every second column."""

from __future__ import annotations

from mxnet import gluon


def space_to_batch(F, x, body):
    """Apply ``body`` to every second row and column, four times, and interleave the results.

    A convolution dilated by 2 does not mix even and odd rows or columns: it equals the convolution
    without dilation on four grids.

    Args:
        F: ``mxnet.nd`` or ``mxnet.sym``.
        x: input of shape (samples, channels, height, width), height and width at least 2.
        body: function or block whose output has the height and width of its input.

    Returns:
        Output of shape (samples, channels of the body, height, width).
    """
    grids = []
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        grid = F.slice(x, (None, None, row, column), (None,) * 4, step=(1, 1, 2, 2))
        # With an odd side the first grid is the largest, and the others are padded to it.
        done = body(grid)
        if grids:
            done = F.pad(done, mode="edge", pad_width=(0, 0, 0, 0, 0, 1, 0, 1))
            done = F.slice_like(done, grids[0], axes=(2, 3))
        grids.append(done)
    joined = F.reshape(F.stack(*grids, axis=0), (-4, 2, 2, 0, 0, 0, 0))
    joined = F.transpose(joined, (2, 3, 4, 0, 5, 1))
    return F.slice_like(F.reshape(joined, (0, 0, -3, -3)), x, axes=(2, 3))


class SpaceToBatchBlock(gluon.HybridBlock):
    """:func:`space_to_batch` as a block.

    Args:
        body: a block of convolutions without dilation.
        **kwargs: arguments of ``gluon.HybridBlock``.
    """

    def __init__(self, body: gluon.HybridBlock, **kwargs):
        super().__init__(**kwargs)
        self.body = body

    def hybrid_forward(self, F, x):
        """Compute the output; input and output have shape (samples, channels, height, width)."""
        return space_to_batch(F, x, self.body)
