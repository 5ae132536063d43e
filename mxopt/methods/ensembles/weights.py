"""Weights of an ensemble's members, from their probabilities on the validation split.

Probabilities are NumPy arrays (members, samples, classes) whose last axis adds up to 1, labels are
(samples,) integers. Weights are (members,), at least 0, and add up to 1.
"""

from __future__ import annotations

import numpy as np

from mxopt.core.errors import PlanError

# The smallest probability whose logarithm is taken.
_LEAST = 1e-12


def combined(probabilities: np.ndarray, weights=None) -> np.ndarray:
    """Return the weighted mean of the members' probabilities: (samples, classes).

    Args:
        probabilities: (members, samples, classes).
        weights: (members,); equal ones if not given.

    Raises:
        PlanError: there are not as many weights as members, or they do not add up to 1.
    """
    probabilities = np.asarray(probabilities)
    if weights is None:
        return probabilities.mean(axis=0)
    weights = np.asarray(weights, float)
    if weights.shape != probabilities.shape[:1] or not np.isclose(weights.sum(), 1):
        raise PlanError(
            f"{weights.size} weights with a sum of {weights.sum():g} for {len(probabilities)} "
            "members; give one for each, with a sum of 1"
        )
    return np.tensordot(weights, probabilities, axes=1)


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean negative logarithm of the true classes' probabilities.

    Args:
        probabilities: (samples, classes).
        labels: (samples,).
    """
    true = np.take_along_axis(probabilities, np.asarray(labels)[:, None], axis=1)
    return float(-np.log(np.maximum(true, _LEAST)).mean())


def by_score(scores) -> np.ndarray:
    """Return weights in proportion to the members' scores.

    Args:
        scores: (members,), such as validation accuracies; higher is better.

    Raises:
        PlanError: a score is negative, or all are 0.
    """
    scores = np.asarray(scores, float)
    if (scores < 0).any() or not scores.any():
        raise PlanError(f"scores {scores.tolist()} must be at least 0, and not all 0")
    return scores / scores.sum()


def optimized(probabilities: np.ndarray, labels: np.ndarray, method: str = "SLSQP") -> np.ndarray:
    """Return the weights with the smallest log loss on these samples.

    Args:
        probabilities: (members, samples, classes), of samples that no member was trained on.
        labels: (samples,).
        method: a minimiser of SciPy. ``SLSQP`` searches the simplex itself; any other, such as
            ``Nelder-Mead``, searches numbers whose softmax are the weights.

    Returns:
        (members,); equal weights if none that were found are better.
    """
    from scipy.optimize import minimize

    members = len(probabilities)
    equal = np.full(members, 1 / members)

    def loss(weights):
        return log_loss(np.tensordot(weights, probabilities, axes=1), labels)

    if method == "SLSQP":
        sum_of_one = {"type": "eq", "fun": lambda weights: weights.sum() - 1}
        done = minimize(
            loss, equal, method=method, bounds=[(0, 1)] * members, constraints=[sum_of_one]
        )
        found = np.clip(done.x, 0, 1)
    else:
        done = minimize(lambda logits: loss(_softmax(logits)), np.zeros(members), method=method)
        found = _softmax(done.x)
    found = found / found.sum()
    return found if loss(found) < loss(equal) else equal


def _softmax(logits):
    powers = np.exp(logits - np.max(logits))
    return powers / powers.sum()


def greedy(probabilities: np.ndarray, labels: np.ndarray, rounds: int = 20) -> np.ndarray:
    """Return weights by forward selection with replacement.

    Each round adds the member that makes the mean of all chosen ones best (Caruana et al.,
    "Ensemble Selection from Libraries of Models", 2004). The best mean of all rounds counts.

    Args:
        probabilities: (members, samples, classes), of samples that no member was trained on.
        labels: (samples,).
        rounds: how many members are chosen, counting one that is chosen again.

    Raises:
        PlanError: ``rounds`` is less than 1.
    """
    if rounds < 1:
        raise PlanError(f"rounds={rounds} must be at least 1")
    counts, total = np.zeros(len(probabilities)), np.zeros(probabilities.shape[1:])
    best, chosen = np.inf, counts
    for number in range(1, rounds + 1):
        losses = [log_loss((total + member) / number, labels) for member in probabilities]
        member = int(np.argmin(losses))
        total, counts = total + probabilities[member], counts.copy()
        counts[member] += 1
        if losses[member] < best:
            best, chosen = losses[member], counts
    return chosen / chosen.sum()
