"""What cites no message is not taken for something that the group said."""

from dataclasses import replace

import pytest

from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.guards import without_unsupported
from roomlore.core.evolution.prompt import handles_of, message_handles
from roomlore.core.evolution.requests import Answer, Operation
from roomlore.core.memory.memory import Source
from roomlore.testing import memory

ASKS = read_answer('{"action": "create", "evidence": ["c…"], "statement": "…"}')
ASKS_NOTHING = read_answer('{"action": "create", "statement": "…", "change_reason": "…"}')
KNOWN = ("They meet on Saturdays at nine at the shed", "每周日早上七点在南门集合骑车")
OFFERED = handles_of(memory(f"id{n}", statement=text) for n, text in enumerate(KNOWN))
MESSAGES = message_handles(Source("room", f"id{n}") for n in range(1, 4))


def left(*operations, examples=ASKS):
    answer = Answer(tuple(replace(operation, line=n) for n, operation in enumerate(operations, 1)), ())
    return without_unsupported(answer, examples, offered=OFFERED, messages=MESSAGES)


def said(kind, statement, *evidence, handles=()):
    return Operation(line=1, kind=kind, handles=handles, statement=statement, evidence=evidence)


UNFOUNDED = {
    "create": said("create", "I am the leader of the team."),
    "create, zh": said("create", "阿泽是群主"),
    "no handle": said("create", "大家都喜欢骑车", "旧信息", "新信息"),
    "not shown": said("create", "They like tea", "c9"),
    "a memory": said("create", "They like tea", "m1"),
    "update": said("update", "Stan decides everything", handles=("m1",)),
    "update, zh": said("update", "阿泽决定一切", handles=("m2",)),
    "another hour": said("update", "They meet on Saturdays at ten at the shed", handles=("m1",)),
    "one hour more, zh": said("update", "上午七点在南门集合骑车、晚上八点到南门集合骑车", handles=("m2",)),
    "merge": said("update", "Everything changed", handles=("m1", "m2")),
}
FOUNDED = {
    "create": said("create", "They like tea", "c1"),
    "one of two": said("create", "大家都喜欢喝茶", "c9", "Ｃ２"),
    "update": said("update", "Stan decides everything", "c3", handles=("m1",)),
    "same": said("update", KNOWN[0], handles=("m1",)),
    "reworded": said("update", "On Saturdays at nine they meet at the shed", handles=("m1",)),
    "reworded, zh": said("update", "大家每周日早上七点在南门集合骑车", handles=("m2",)),
    "merge": said("update", "They meet on Saturdays at nine at the shed and ride", handles=("m1", "m2")),
    "merge of five": said(
        "update",
        "They meet on Saturdays, talk about films, dine on Sundays and like cats",
        handles=("m1", "m2"),
    ),
    "delete": Operation(line=1, kind="delete", handles=("m1",)),
    "keep": Operation(line=1, kind="keep", handles=("m1",)),
}


@pytest.mark.parametrize("name", UNFOUNDED)
def test_something_new_needs_a_message(name):
    read = left(UNFOUNDED[name], FOUNDED["create"])
    assert [operation.statement for operation in read.operations] == ["They like tea"]
    assert [(one.line, one.reason) for one in read.rejected] == [
        (1, "It gives no message as evidence, and says something new.")
    ]


NEVER_CITING = {
    "create": (said("create", "They like tea"), 1),
    "create, zh": (said("create", "阿泽是群主"), 1),
    "related": (said("update", "They meet on Saturdays at ten at the shed", handles=("m1",)), 1),
    "related, zh": (said("update", "每周日早上七点在南门集合骑车，雨天改室内", handles=("m2",)), 1),
    "unrelated": (said("update", "Stan decides everything", handles=("m1",)), 0),
    "unrelated, zh": (said("update", "阿泽决定一切", handles=("m2",)), 0),
    "merge": (said("update", "Everything changed", handles=("m1", "m2")), 0),
}


@pytest.mark.parametrize("name", NEVER_CITING)
def test_of_a_model_that_cites_nothing_at_all_what_stays_with_its_memory_is_taken(name):
    operation, taken = NEVER_CITING[name]
    read = left(operation)
    assert (len(read.operations), len(read.rejected)) == (taken, 1 - taken)


@pytest.mark.parametrize("name", FOUNDED)
def test_what_rests_on_a_message_or_on_what_is_remembered_is_taken(name):
    read = left(FOUNDED[name])
    assert (len(read.operations), read.rejected) == (1, ())


@pytest.mark.parametrize("name", UNFOUNDED)
def test_a_prompt_that_asks_for_no_evidence_gets_none(name):
    assert len(left(UNFOUNDED[name], examples=ASKS_NOTHING).operations) == 1
