"""Matrix products in PyTorch, of the same size as in ``benchmarks.products.multiply``.

With ``library`` ``onednn`` they are computed by the function that ``torch.compile`` calls for
inference, which has no gradient.
"""

import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from child import read_job
from facts import check_loaded, facts


def main() -> None:
    """Run the job and print its figures."""
    job = read_job()
    check_loaded(job.get("given", {}))
    size = job["size"]
    a, b = torch.rand(size, size), torch.rand(size, size)
    durations = []
    for _ in range(job["rounds"] + 1):
        start = time.perf_counter()
        if job.get("library") == "onednn":
            torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
        else:
            torch.mm(a, b)
        durations.append(time.perf_counter() - start)
    rate = 2 * size**3 / min(durations[1:]) / 1e9
    print(json.dumps({"gflop_per_second": rate, "version": torch.__version__, "facts": facts()}))


if __name__ == "__main__":
    main()
