"""The tool of tests that go over a table: what it tells, and that nothing it has seen is lost."""

import inspect
from collections.abc import Callable

import pytest

from roomlore_testkit.case_table import all_cases

FAILED = pytest.fail.Exception


def go(*cases: Callable[[], object], then: Callable[[], object] = lambda: None) -> None:
    """Check each as one case, and call `then` after the last."""
    with all_cases() as case:
        for number, check in enumerate(cases):
            with case("number", number):
                check()
        then()


def passes() -> None:
    """A case without a failure."""


def raises(error: BaseException) -> Callable[[], None]:
    def check() -> None:
        raise error

    return check


LOST = AssertionError("lost")


def test_a_table_without_a_failure_passes():
    ran: list[int] = []
    go(lambda: ran.append(0), lambda: ran.append(1), then=lambda: ran.append(2))
    assert ran == [0, 1, 2]


def test_every_case_that_failed_is_told_with_its_line():
    with pytest.raises(FAILED) as raised:
        go(raises(ValueError("odd")), passes, raises(LOST))
    source, first = inspect.getsourcelines(go)
    line = first + next(place for place, text in enumerate(source) if "check()" in text)
    told, *rest = str(raised.value).splitlines()
    assert told == "2 of 3 cases failed:"
    assert rest[::2] == ["number 0", "number 2"]
    assert [one.startswith(f"  line {line}, ") for one in rest[1::2]] == [True, True]
    assert [one.partition(": ")[2] for one in rest[1::2]] == ["ValueError: odd", "AssertionError: lost"]


def test_a_table_without_a_case_fails():
    with pytest.raises(FAILED, match="empty"):
        go()


@pytest.mark.parametrize("leave", [pytest.fail, pytest.skip, pytest.xfail])
def test_a_case_cannot_end_the_test(leave):
    with pytest.raises(FAILED, match="2 of 3 cases failed") as raised:
        go(lambda: leave("reason 1"), lambda: leave("reason 2"), passes)
    assert "reason 1" in str(raised.value)
    assert "reason 2" in str(raised.value)


@pytest.mark.parametrize("error", [ValueError("between"), KeyboardInterrupt("between")])
def test_an_error_between_the_cases_goes_on_with_what_failed_before(error):
    with pytest.raises(type(error), match="between") as raised:
        go(raises(LOST), then=raises(error))
    (note,) = raised.value.__notes__
    assert note.startswith("1 of 1 cases failed:\nnumber 0\n")
    assert "AssertionError: lost" in note


def test_an_error_between_the_cases_goes_on_alone_if_none_has_failed():
    with pytest.raises(ValueError, match="between") as raised:
        go(passes, then=raises(ValueError("between")))
    assert not hasattr(raised.value, "__notes__")


def test_a_skip_between_the_cases_hides_no_failure():
    with pytest.raises(FAILED, match="1 of 1 cases failed"):
        go(raises(LOST), then=lambda: pytest.skip("no more"))


def test_a_skip_before_a_failure_is_a_skip():
    with pytest.raises(pytest.skip.Exception, match="no more"):
        go(then=lambda: pytest.skip("no more"))


def test_an_interruption_inside_a_case_ends_the_test():
    with pytest.raises(KeyboardInterrupt):
        go(raises(KeyboardInterrupt()), passes)


def test_a_name_is_one_line_of_bounded_length():
    with pytest.raises(FAILED) as raised, all_cases() as case, case("a\nb\ud800", "茶" * 900):
        raise LOST
    _, name, _ = str(raised.value).splitlines()
    assert name.startswith(r"a\nb\ud800 茶")
    assert len(name) < 250
    assert name.encode()
