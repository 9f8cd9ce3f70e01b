"""`MessageAnalyzer`, and messages under the names of other systems."""

import pytest

from roomlore import InvalidInput, Message, MessageAnalyzer, MessageType
from roomlore.core.records import from_record, with_own_names

WIRE = {
    "message_id": "m1",
    "group_id": "g1",
    "user_id": "ann",
    "content": "@bo 明天几点发布 v1.2？",
    "timestamp": 1_760_000_000,
}


def test_a_message_is_read_in_its_json_form():
    features = MessageAnalyzer({"bo": "Bo"}).analyze_message(WIRE)
    assert features.message_type is MessageType.QUESTION
    assert features.mentions == ("bo",)
    assert {"发布", "v1.2"} <= set(features.keywords)


def test_who_has_spoken_is_known_by_name():
    analyzer = MessageAnalyzer()
    analyzer.analyze_message(Message(id="1", room_id="g", sender_id="u7", sender_name="Bo", text="hello"))
    assert analyzer.analyze_message(Message(id="2", room_id="g", sender_id="ann", text="@Bo ready?")).mentions == (
        "u7",
    )


def test_other_names_mean_the_same():
    own = {"id": "m1", "room_id": "g1", "sender_id": "ann", "text": WIRE["content"], "sent_at": WIRE["timestamp"]}
    assert from_record(with_own_names(WIRE)) == from_record(own)


@pytest.mark.parametrize("both", [{"id": "m1"}, {"text": "a"}, {"sender_id": "ann"}, {"sent_at": None}])
def test_two_names_for_one_field_are_refused(both):
    with pytest.raises(InvalidInput, match="mean the same"):
        with_own_names({**WIRE, **both})
