import faults
import pytest


def test_the_page_is_what_the_tests_say_today():
    """If it is not, run ``python tests/faults.py``."""
    assert faults.PAGE.read_text(encoding="utf-8") == faults.page()


def test_every_mark_stands_on_a_test_that_looks_for_its_words():
    found = faults.faults()
    assert len(found) >= 30
    assert [fault.test for fault in found if not fault.asks] == []
    assert {fault.area for fault in found} == set(faults.AREAS)
    assert len({fault.happens for fault in found}) == len(found)


def test_words_that_are_not_seen_fail_the_test():
    sees = faults.Sees("half ... line 2")
    sees("half a record: line 2 (cut)")
    with pytest.raises(AssertionError):
        sees("half a record: line 3")
    with pytest.raises(pytest.fail.Exception), sees.raised(OSError):
        pass
