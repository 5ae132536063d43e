"""Matrix products in PyTorch, of the same size as in ``benchmarks.arms.multiply``."""

import json
import sys
import time

import torch


def main() -> None:
    """Run the job and print its figures."""
    job = json.load(sys.stdin)
    size = job["size"]
    a, b = torch.rand(size, size), torch.rand(size, size)
    durations = []
    for _ in range(job["rounds"] + 1):
        start = time.perf_counter()
        torch.mm(a, b)
        durations.append(time.perf_counter() - start)
    print(json.dumps({"gflop_per_second": 2 * size**3 / min(durations[1:]) / 1e9}))


if __name__ == "__main__":
    main()
