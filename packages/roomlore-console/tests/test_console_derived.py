"""Forms of the console that follow from the table of verbs: what is read of their fields."""

from types import SimpleNamespace

import pytest

from roomlore.verbs.facts import ADD, CHANGE
from roomlore_console.derived import sent, shown
from roomlore_console.frame import tongue


def page(language: str = "en", **typed: str):
    return SimpleNamespace(form=typed, tongue=tongue(language))


def given(verb, name: str, **typed: str):
    return sent(page(**typed), [verb[name]]).given


def test_nothing_takes_away_what_a_change_clears():
    assert given(CHANGE, "confidence", confidence=" ") == {"confidence": None}
    assert given(CHANGE, "category", category="") == {"category": ""}
    assert given(CHANGE, "tags", tags="") == {"tags": ()}


def test_a_form_that_pages_have_no_field_for_is_an_error():
    with pytest.raises(TypeError, match="no field"):
        shown(page(), [ADD["sources"]], {})
