"""JSON of what is none: nothing raises, and nothing takes long."""

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roomlore.adapters.json_repair import MAX_CHARACTERS, repaired

LONGEST = MAX_CHARACTERS
ODD = [
    '{"a": ' * (LONGEST // 6),
    "[" * LONGEST,
    "{" * LONGEST,
    '"' * LONGEST,
    "\\" * LONGEST,
    "'" * LONGEST,
    '{"a":"' + '\\"' * (LONGEST // 2),
    "{a:" * (LONGEST // 3),
    "//" * (LONGEST // 2),
    "/*" * (LONGEST // 2),
    '{"a": "b" "c" ' * (LONGEST // 14),
    "{'a': 'it's', " * (LONGEST // 14),
    '{"记": "“”", ' * (LONGEST // 12),
]


@pytest.mark.parametrize(
    "text",
    [
        "{action: keep, old_id: m1}",
        '{"action": "keep", "old_id": "m1",}',
        "{'action': 'keep', 'old_id': 'm1'}",
        '{"action": "keep" "old_id": "m1"}',
        '{"action": "keep", "old_id": "m1"',
    ],
)
def test_what_is_nearly_json_becomes_json(text):
    assert json.loads(repaired(text)) == {"action": "keep", "old_id": "m1"}


def test_chinese_stays_as_it_is():
    assert repaired("{'statement': '每周五讨论新番'}") == '{"statement": "每周五讨论新番"}'


@settings(max_examples=150)
@example("")
@example("\x00")
@example("\ud800")
@example('{"a": "\ud800"')
@given(st.text(st.characters() | st.sampled_from("{}[]\"',:\\/*# \n“”：，｛｝"), max_size=200))
def test_no_text_raises(text):
    assert isinstance(repaired(text), str)


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_no_text_takes_long(text):
    begun = time.process_time()
    repaired(text)
    assert time.process_time() - begun < 5


def test_what_is_too_long_is_not_tried():
    assert repaired("{'a': '" + "b" * MAX_CHARACTERS + "'}") == ""
