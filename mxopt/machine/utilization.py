"""How busy GPUs are, from NVML, while a program runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from mxopt.machine.nvidia import survey_gpus

# NVML gives the share of its last period, from a sixth of a second to a second by GPU. What it
# gives before one has passed is of the time before: on an H200, 100 % of work that had just ended.
SECONDS, PERIOD = 0.2, 1.0


class Utilization:
    """Reads GPUs' utilisation in a thread, while it is entered.

    Utilisation is NVML's: the share of the time in which any kernel ran on the GPU. It says that a
    GPU waits, and not how much of it a kernel uses. Samples of 0 % are kept: they are the waiting.

    >>> busy = Utilization([0])                                     # doctest: +SKIP
    >>> with busy:                                                  # doctest: +SKIP
    ...     train()
    >>> busy.figures()                                              # doctest: +SKIP
    {'gpu_utilization': 87.5}

    Args:
        indices: numbers of GPUs among those that MXNet can use; none reads nothing.
        seconds: time between two readings.
        skipped: time before the first one.
        packages: as for :func:`survey_gpus`.
        nvml: as for :func:`survey_gpus`.
    """

    def __init__(
        self,
        indices: Sequence[int],
        seconds: float = SECONDS,
        packages=None,
        nvml=None,
        skipped: float = PERIOD,
    ):
        self._samples: list[float] = []
        self._seconds, self._skipped, self._nvml, self._gpus = seconds, skipped, nvml, []
        if not indices:
            return
        if nvml is None:
            try:
                import pynvml
            except ImportError:
                return
            self._nvml = pynvml
        usable = [gpu for gpu in survey_gpus(packages, nvml)[0] if gpu.usable]
        self._gpus = [usable[index].index for index in indices if index < len(usable)]

    def __enter__(self):
        if self._gpus:
            self._end = threading.Event()
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_):
        if self._gpus:
            self._end.set()
            self._thread.join()

    def _read(self) -> None:
        nvml = self._nvml
        try:
            nvml.nvmlInit()
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in self._gpus]
            self._end.wait(self._skipped)
            while not self._end.wait(self._seconds):
                rates = [nvml.nvmlDeviceGetUtilizationRates(handle).gpu for handle in handles]
                self._samples.append(sum(rates) / len(rates))
            nvml.nvmlShutdown()
        except nvml.NVMLError:
            return  # a driver that cannot tell is no reason to stop a training

    def figures(self) -> dict[str, float]:
        """Return ``gpu_utilization``, the mean over all readings and GPUs in per cent.

        Nothing is returned where nothing was read.
        """
        if not self._samples:
            return {}
        return {"gpu_utilization": sum(self._samples) / len(self._samples)}
