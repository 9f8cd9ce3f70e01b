"""What a message of an export is to the stored one that has its id and another content."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from roomlore.core.models import StoredMessage
from roomlore.core.reimport import Again, compared, metadata_after

NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)
ONE, TWO = NINE + timedelta(hours=1), NINE + timedelta(hours=2)
STORED = StoredMessage(id="1", room_id="r", sender_id="ann", text="at nine 九点", sent_at=NINE, arrival=7)


def again(**told: object) -> StoredMessage:
    return replace(STORED, arrival=0, **({"text": "at ten 十点"} | told))


@pytest.mark.parametrize(
    ("was", "edited", "wanted"),
    [
        (None, ONE, Again.EDITED),
        (ONE, TWO, Again.EDITED),
        (TWO, ONE, Again.OLDER),
        (ONE, None, Again.OLDER),
        (ONE, ONE, Again.OTHER),
        (None, None, Again.OTHER),
    ],
)
def test_the_time_of_the_edit_decides(was, edited, wanted):
    assert compared(replace(STORED, edited_at=was), again(edited_at=edited)) is wanted


def test_the_same_version_is_the_same_whatever_its_sender_is_called():
    stored = replace(STORED, edited_at=ONE, sender_name="Ann")
    assert compared(stored, again(text=STORED.text, edited_at=ONE, sender_name="Anna")) is Again.SAME


@pytest.mark.parametrize("other", [{"sender_id": "bo"}, {"sent_at": ONE}])
def test_another_sender_or_time_is_another_message(other):
    for stored in (STORED, replace(STORED, text="[forgotten] said so"), replace(STORED, edited_at=TWO)):
        assert compared(stored, again(edited_at=TWO + timedelta(hours=1), **other)) is Again.OTHER


def test_a_time_that_was_estimated_tells_nothing():
    stored = replace(STORED, sent_at=TWO, sent_at_estimated=True)
    assert compared(stored, again(sent_at=None, edited_at=TWO)) is Again.EDITED
    assert compared(stored, again(edited_at=TWO)) is Again.EDITED


@pytest.mark.parametrize(
    "held", [{"text": "> [forgotten]\nyes"}, {"text": "嗯，[已删除]"}, {"metadata": {"quoted": {"text": "[已删除]"}}}]
)
def test_what_was_redacted_stays_so_whatever_the_export_says(held):
    for edited in (None, TWO):
        assert compared(replace(STORED, **held), again(edited_at=edited)) is Again.REDACTED


def test_a_mark_that_its_sender_wrote_does_not_keep_an_edit_away():
    stored = replace(STORED, text="Status: [forgotten] 状态：[已删除]")
    assert compared(stored, again(text="Status: [forgotten]. 状态：[已删除]。", edited_at=ONE)) is Again.EDITED
    assert compared(stored, again(text="Status: [forgotten], says Anna", edited_at=ONE)) is Again.REDACTED


def test_what_an_earlier_importer_kept_as_words_is_the_same_message():
    poll = {"caption": "Which day? 哪天", "attachments": [{"type": "poll", "caption": "Sat (2), 周日 (1)"}]}
    stored = replace(STORED, text="", metadata={"caption": "Which day? 哪天 Sat 周日"})
    assert compared(stored, again(text="", metadata=poll)) is Again.SAME
    assert compared(stored, again(text="", metadata=poll | {"caption": "Which week?"})) is Again.OTHER
    assert compared(stored, again(text="Which day?", metadata=poll)) is Again.OTHER
    assert compared(stored, again(text="", metadata={})) is Again.OTHER
    made_of_the_line = {"id": f"x{7:024x}"}
    assert compared(replace(stored, **made_of_the_line), again(**made_of_the_line)) is Again.SAME


def test_what_was_said_of_the_same_attachments_stays():
    told = {"type": "picture", "name": "map.jpg"}
    stored = replace(STORED, metadata={"attachments": [told | {"description": "地图"}], "pinned": True})
    assert metadata_after(stored, again(metadata={"attachments": [told]})) == {
        "attachments": [told | {"description": "地图"}]
    }
    other = {"attachments": [told | {"name": "other.jpg"}]}
    assert metadata_after(stored, again(metadata=other)) == other
    assert metadata_after(stored, again(metadata={})) == {}
