"""CPU kernels: operators of our own, compiled for the machine (:mod:`mxopt.kernels`)."""

from mxopt.methods.method import Method


class CpuKernels(Method):
    """An option of the recipe ``translation``; for MobileNetV2 it is a rewrite of the graph."""

    options = {"translation": ("kernels", "packed")}

    def network(self, run, net):
        """Let kernels read parameters without copies, unless gradients are added to."""
        if run.plan.grad_accumulation == 1:
            net.apply(_write_gradients)
        return net


def _write_gradients(block) -> None:
    if hasattr(block, "write_gradients"):
        block.write_gradients()
