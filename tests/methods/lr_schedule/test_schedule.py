import math

import pytest

from mxopt.core.plan import Plan
from mxopt.methods.lr_schedule.schedule import learning_rate


def test_learning_rate_schedules():
    def rates(**switches):
        plan = Plan(learning_rate=1.0, epochs=4, **switches)
        return [learning_rate(plan, step, 2) for step in range(8)]

    assert rates() == [1.0] * 8
    assert rates(schedule="poly") == pytest.approx([(1 - s / 8) ** 0.9 for s in range(8)])
    cosine = rates(schedule="cosine", warmup_epochs=1)
    assert cosine[:3] == [0.5, 1.0, 1.0]
    assert cosine[5] == pytest.approx((1 + math.cos(math.pi / 2)) / 2)
    assert cosine == sorted(cosine[:2]) + sorted(cosine[2:], reverse=True)


def test_the_inverse_square_root_falls_from_the_end_of_the_warm_up_on():
    plan = Plan(learning_rate=1.0, epochs=4, warmup_epochs=1, schedule="inverse_sqrt")
    rates = [learning_rate(plan, step, 4) for step in range(16)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[15] == pytest.approx(0.5)
    assert rates[3:] == sorted(rates[3:], reverse=True)
