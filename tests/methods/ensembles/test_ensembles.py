"""Weights of members: what each rule returns where the answer is known."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon, nd

from mxopt.core.errors import PlanError
from mxopt.methods import ensembles

CLASSES = 4


def member(labels, skill, seed):
    """Probabilities of a classifier that is certain of the true class as often as its skill."""
    random = np.random.RandomState(seed)
    said = np.where(random.uniform(size=len(labels)) < skill, labels,
                    random.randint(0, CLASSES, len(labels)))  # fmt: skip
    return 0.7 * np.eye(CLASSES)[said] + 0.3 / CLASSES


@pytest.fixture(scope="module")
def split():
    labels = np.random.RandomState(0).randint(0, CLASSES, 400)
    skills = (0.8, 0.8, 0.7, 0.0)
    return np.stack([member(labels, skill, n) for n, skill in enumerate(skills)]), labels


def accuracy(probabilities, labels):
    return (probabilities.argmax(axis=1) == labels).mean()


def test_a_mean_of_members_errs_less_often_than_any(split):
    probabilities, labels = split
    alone = max(accuracy(one, labels) for one in probabilities)
    assert accuracy(ensembles.combined(probabilities[:3]), labels) > alone
    assert np.allclose(ensembles.combined(probabilities).sum(axis=1), 1)


def test_a_member_of_weight_one_is_the_ensemble(split):
    probabilities, _ = split
    assert np.allclose(ensembles.combined(probabilities, [0, 0, 1, 0]), probabilities[2])
    for wrong in ([1, 0], [0.5, 0.5, 0.5, 0.5]):
        with pytest.raises(PlanError, match="for 4 members"):
            ensembles.combined(probabilities, wrong)


def test_the_log_loss_is_that_of_the_definition():
    probabilities = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
    expected = -(np.log(0.5) + np.log(0.9)) / 2
    assert ensembles.log_loss(probabilities[:2], [0, 1]) == pytest.approx(expected)
    assert np.isfinite(ensembles.log_loss(probabilities, [0, 1, 1]))


def test_weights_by_score_are_in_proportion():
    assert ensembles.by_score([0.9, 0.3]).tolist() == pytest.approx([0.75, 0.25])
    for wrong in ([-1, 2], [0, 0]):
        with pytest.raises(PlanError, match="at least 0"):
            ensembles.by_score(wrong)


@pytest.mark.parametrize("method", ["SLSQP", "Nelder-Mead"])
def test_optimized_weights_leave_out_the_member_that_guesses(split, method):
    probabilities, labels = split
    weights = ensembles.optimized(probabilities, labels, method)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert weights[3] < 0.05
    equal = ensembles.log_loss(ensembles.combined(probabilities), labels)
    assert ensembles.log_loss(ensembles.combined(probabilities, weights), labels) < equal
    # No point of a grid over the simplex of the other three is better.
    grid = np.linspace(0, 1, 21)
    best = min(
        ensembles.log_loss(ensembles.combined(probabilities, [a, b, 1 - a - b, 0]), labels)
        for a in grid for b in grid if a + b <= 1 + 1e-9
    )  # fmt: skip
    found = ensembles.log_loss(ensembles.combined(probabilities, weights), labels)
    assert found < best + 2e-3


def test_equal_members_keep_equal_weights(split):
    probabilities, labels = split
    same = np.stack([probabilities[0]] * 3)
    assert ensembles.optimized(same, labels) == pytest.approx([1 / 3] * 3, abs=1e-3)


def test_the_best_round_of_a_greedy_selection_counts():
    """Two members are each right about half of the samples; a third choice unbalances them."""
    labels = np.array([0, 0, 1, 1])
    sure, unsure = [[0.9, 0.1]] * 2 + [[0.1, 0.9]] * 2, [[0.5, 0.5]] * 4
    members = np.array([[*sure[:2], *unsure[2:]], [*unsure[:2], *sure[2:]]])
    assert ensembles.greedy(members, labels, rounds=2).tolist() == [0.5, 0.5]
    assert ensembles.greedy(members, labels, rounds=3).tolist() == [0.5, 0.5]


def test_greedy_selection_chooses_good_members_and_the_best_round(split):
    probabilities, labels = split
    weights = ensembles.greedy(probabilities, labels)
    assert weights.sum() == pytest.approx(1)
    assert weights[3] == 0
    first = ensembles.greedy(probabilities, labels, rounds=1)
    alone = [ensembles.log_loss(one, labels) for one in probabilities]
    assert first.tolist() == np.eye(4)[int(np.argmin(alone))].tolist()
    with pytest.raises(PlanError, match="rounds=0"):
        ensembles.greedy(probabilities, labels, rounds=0)


def test_networks_together_are_the_mean_of_their_probabilities():
    nets = [gluon.nn.Dense(3, in_units=2) for _ in range(3)]
    for seed, net in enumerate(nets):
        mx.random.seed(seed)
        net.initialize(mx.init.Normal(1.0))
    x = nd.random.normal(shape=(5, 2))
    mean = sum(nd.softmax(net(x), axis=1) for net in nets) / 3
    together = ensembles.Together(nets)
    assert np.allclose(nd.softmax(together(x), axis=1).asnumpy(), mean.asnumpy(), atol=1e-6)
    assert len(list(together.collect_params())) == 6


def test_of_several_outputs_the_first_counts_and_classes_can_lie_elsewhere():
    class Two(gluon.Block):
        def forward(self, x):
            return x, 0 * x

    x = nd.random.normal(shape=(2, 3, 4))
    alone = ensembles.Together([Two()], axis=2)(x)
    assert np.allclose(alone.asnumpy(), nd.log_softmax(x, axis=2).asnumpy(), atol=1e-6)


def test_an_ensemble_of_nothing_is_refused():
    with pytest.raises(PlanError, match="at least one network"):
        ensembles.Together([])
