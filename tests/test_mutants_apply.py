"""Every mutant follows the code: what it replaces is there once, and its tests exist."""

import pytest

from tests import mutants


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=range(len(mutants.MUTANTS)))
def test_a_mutant_changes_one_place_and_names_tests(mutant):
    text = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutants.changed(text, mutant) != text
    for word in mutant.tests.split():
        assert (mutants.ROOT / word).exists(), word
