"""Forms of the console that follow from the table of verbs: what is read of fields that no page has yet."""

from datetime import UTC, datetime
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from roomlore.verbs.facts import ADD, CHANGE
from roomlore.verbs.memories import SEARCH
from roomlore_console.derived import sent, shown
from roomlore_console.frame import tongue

NOW = datetime(2026, 5, 8, 12, tzinfo=UTC)


def page(language: str = "en", **typed: str):
    lore = SimpleNamespace(now=lambda: NOW)
    return SimpleNamespace(form=typed, tongue=tongue(language), zone=ZoneInfo("Asia/Shanghai"), lore=lore)


def given(verb, name: str, **typed: str):
    return sent(page(**typed), [verb[name]]).given


def test_a_day_counts_in_the_zone_of_the_reader():
    assert given(ADD, "valid_from", valid_from="2026-05-08") == {"valid_from": datetime(2026, 5, 7, 16, tzinfo=UTC)}
    assert given(ADD, "valid_until", valid_until="2026-05-08") == {"valid_until": datetime(2026, 5, 8, 16, tzinfo=UTC)}
    typed = given(ADD, "valid_until", valid_until="2026-05-08T09:30")
    assert typed == {"valid_until": datetime(2026, 5, 8, 1, 30, tzinfo=UTC)}
    assert given(ADD, "valid_until", valid_until="") == {"valid_until": None}


@pytest.mark.parametrize(("language", "said"), [("en", "Give a day or a time"), ("zh", "请填日期或时间")])
@pytest.mark.parametrize("typed", ["soon", "yesterday or today", "2026-13-01", "9" * 65])
def test_what_is_no_time_comes_back(language, said, typed):
    form = sent(page(language, valid_from=typed), [ADD["valid_from"]])
    assert form.given is None
    assert form.fields[0].problem.startswith(said)
    assert form.fields[0].typed == typed


def test_a_flag_that_is_off_is_not_sent():
    assert given(SEARCH, "include_ended") == {"include_ended": False}
    assert given(SEARCH, "include_ended", include_ended="1") == {"include_ended": True}
    assert shown(page(), [SEARCH["include_ended"]], {}).fields[0].typed == ""


def test_nothing_takes_away_what_a_change_clears():
    assert given(CHANGE, "confidence", confidence=" ") == {"confidence": None}
    assert given(CHANGE, "category", category="") == {"category": ""}
    assert given(CHANGE, "tags", tags="") == {"tags": ()}


def test_a_form_that_pages_have_no_field_for_is_an_error():
    with pytest.raises(TypeError, match="no field"):
        shown(page(), [ADD["sources"]], {})
