"""GPUs that are not there, for the tests of what is said about them."""

from __future__ import annotations

from types import SimpleNamespace

from mxopt import machine

GPU_BUILD = {"mxnet-cu112": "1.9.1"}
CPU_BUILD = {"mxnet": "1.9.1"}
DRIVER = "535.129.03"


def gpu(capability=(7, 0), reason="", name="Tesla V100", index=0) -> machine.Gpu:
    return machine.Gpu(index, name, capability, 16 << 30, DRIVER, not reason, reason)


class FakeNvml:
    """As much of ``pynvml`` as is read, for GPUs given as (name, capability[, memory]).

    ``rates`` has an iterator for each GPU, of its utilisation in per cent.
    """

    class NVMLError(Exception):
        pass

    class NVMLError_LibraryNotFound(NVMLError):
        pass

    def __init__(self, *gpus, error=None, lost=None, rates=None):
        self.gpus, self.error, self.lost, self.open = gpus, error, lost, False
        self.rates = rates

    def nvmlInit(self):
        if self.error:
            raise self.error
        self.open = True

    def nvmlShutdown(self):
        self.open = False

    def nvmlDeviceGetCount(self):
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):
        if index == self.lost:
            raise self.NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetName(self, handle):
        return self.gpus[handle][0]

    def nvmlDeviceGetCudaComputeCapability(self, handle):
        return self.gpus[handle][1]

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=[*self.gpus[handle], 16 << 30][2], used=1 << 30)

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{handle}0000000"

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=next(self.rates[handle]) if self.rates else 50)

    def nvmlSystemGetDriverVersion(self):
        return DRIVER
