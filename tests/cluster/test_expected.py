from pathlib import Path

import pytest

from mxopt.cluster import expected
from mxopt.cluster.expected import Work, exchange_seconds, host_bytes, times_faster

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"


def test_bytes_of_one_server_of_many_and_of_one_host():
    assert host_bytes(10, hosts=1) == 0
    assert host_bytes(10, hosts=5, servers=1) == 4 * 40  # the sum to four others
    assert host_bytes(10, hosts=5) == pytest.approx(2 * 40 * 4 / 5)  # as a ring


def test_seconds_and_what_they_cost():
    work = Work("w", parameters=125_000_000, operations=2 * expected.SPEED)  # 2 s, and 8e9 bits
    assert exchange_seconds(work, hosts=2, gigabits=1) == pytest.approx(4.0)
    assert times_faster(work, 2, 1) == pytest.approx((2 * 2 / 6, 2 * 2 / 4))
    assert times_faster(work, 2, 100) == pytest.approx((2 * 2 / 2.04, 2))
