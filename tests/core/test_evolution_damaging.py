"""What a model asks for does not lose anything true of a memory, as far as words tell."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.evolution.guards import OperationGuard, without_losses
from roomlore.core.evolution.prompt import handles_of
from roomlore.core.evolution.requests import Answer, Operation, is_quiet
from roomlore.core.evolution.wording import Conversation, is_related
from roomlore.testing import START, memory

KNOWN = (
    "每周日早上七点在南门集合骑车",
    "不戴头盔不能跟队",
    "They meet at the shed on Saturdays at nine",
    "No sprays in the garden, slugs are picked by hand",
)
LINES = {
    "c1": "老蒋: 从这周起周日改成六点半在南门集合，不再是七点",
    "c2": "思琪: 新来的同学也记得戴头盔，不戴不能跟队",
    "c3": "Mira: Fine: from now on the Saturday meeting is at ten, no longer at nine.",
    "c4": "Stan: what a match last night!!",
    "c5": "Mira: No sprays in our garden, Stan, we pick slugs by hand",
    "c6": "小雨: 骑完还是去河边那家店吃豆腐脑吧",
}
OFFERED = handles_of(memory(f"id{n}", statement=text) for n, text in enumerate(KNOWN))


def left(*operations, quiet=False, asked=True, lines=None, given=None):
    given = any(operation.evidence for operation in operations) if given is None else given
    conversation = Conversation(LINES if lines is None else lines, KNOWN)
    guard = OperationGuard(offered=OFFERED, conversation=conversation, quiet=lambda _: quiet, asked=asked, given=given)
    return without_losses(Answer(tuple(replace(one, line=n) for n, one in enumerate(operations, 1)), ()), guard)


def update(statement, *evidence, handles=("m1",)):
    return Operation(line=1, kind="update", handles=handles, statement=statement, evidence=evidence)


def create(statement, *evidence):
    return Operation(line=1, kind="create", statement=statement, evidence=evidence)


def delete(handle, *evidence):
    return Operation(line=1, kind="delete", handles=(handle,), evidence=evidence)


FOLLOWED = {
    "another hour, zh": update("每周日早上六点半在南门集合骑车", "c1"),
    "another hour": update("They meet at the shed on Saturdays at ten", "c3", handles=("m3",)),
    "confirmed": update(KNOWN[1] + "。", "c2", handles=("m2",)),
    "more of it": update("不戴头盔不能跟队，新来的也一样", "c2", handles=("m2",)),
    "merged": update("They meet at the shed on Saturdays at nine, no sprays in the garden", "c3", handles=("m3", "m4")),
    "new": create("骑完去河边那家店吃豆腐脑", "c6"),
    "no longer so": delete("m3", "c3"),
    "no longer so, zh": delete("m1", "c1"),
    "kept": Operation(line=1, kind="keep", handles=("m1",)),
    "not offered": update("They like tea", "c4", handles=("m9",)),
}
REFUSED = {
    "nothing of it": (update("固定活动、约定和禁忌。", "c4", handles=("m2",)), "no message speaks of it"),
    "hour dropped, zh": (update("每周日早上在南门集合骑车", "c6"), "drops the number '7'"),
    "hour invented": (update("They meet at the shed on Saturdays at eleven", "c4", handles=("m3",)), "number '9'"),
    "day invented, zh": (update("每周二早上七点在南门集合骑车", "c6"), "drops the day 'sun'"),
    "turned, zh": (update("不戴头盔能跟队", "c2", handles=("m2",)), "no longer denies"),
    "turned": (update("Sprays in the garden, slugs are picked by hand", "c5", handles=("m4",)), "no longer denies"),
    "denied": (update("They do not meet at the shed on Saturdays at nine", "c4", handles=("m3",)), "It denies".lower()),
    "worn": (update("不戴头盔", "c2", handles=("m2",)), "m2 stays"),
    "merge that forgets": (update(KNOWN[2], "c3", handles=("m3", "m4")), "leaves out what m4 says"),
    "merge without the hour": (
        update("They meet at the shed on Saturdays, no sprays in the garden", "c5", handles=("m3", "m4")),
        "m3 stays: it drops the number '9'",
    ),
    "a create in its place": (create("They meet at the shed on Saturdays", "c4"), "m3 stays: it drops the number '9'"),
    "delete for nothing": (delete("m4", "c4"), "no message that is given as evidence speaks of it"),
    "delete for nothing, zh": (delete("m2", "c6"), "no message that is given as evidence speaks of it"),
    "delete what is said": (delete("m2", "c2"), "a message still says it"),
    "delete what is said, en": (delete("m4", "c5"), "a message still says it"),
}
BESIDE = {
    "zh": update("骑完去河边那家店吃豆腐脑", "c6", handles=("m2",)),
    "en": update("They talk of the match of last night", "c4", handles=("m4",)),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_loses_nothing_is_followed_as_it_is(name):
    read = left(FOLLOWED[name])
    assert (read.operations, read.rejected) == ((FOLLOWED[name],), ())


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_lose_something_is_refused_with_the_reason(name):
    operation, why = REFUSED[name]
    read = left(operation)
    assert read.operations == ()
    assert [why in one.reason for one in read.rejected] == [True], read.rejected


@pytest.mark.parametrize("name", BESIDE)
def test_an_update_of_something_else_is_a_memory_of_its_own_and_the_old_one_stays(name):
    operation = BESIDE[name]
    read = left(operation)
    assert read.operations == (replace(operation, kind="create", handles=()),)
    assert [
        f"It says something else than {operation.handles[0]}, which stays" in one.reason for one in read.rejected
    ] == [True]


def test_an_update_that_says_what_another_memory_says_does_not_take_its_place_either():
    coffee = {"c4": LINES["c4"], "c7": "Priya: I bring coffee to the shed"}
    operation = update("They meet at the shed on Saturdays", "c7", handles=("m4",))
    read = left(operation, create("They like tea", "c4"), lines=coffee)
    assert [one.statement for one in read.operations] == ["They like tea"]
    assert "m3 stays: it drops the number '9'" in read.rejected[0].reason


def test_a_create_that_says_what_is_known_and_more_is_left_to_be_its_next_version():
    operation = create("They meet at the shed on Saturdays at nine in the garden", "c3")
    assert left(operation).operations == (operation,)


@pytest.mark.parametrize("handle", ["m1", "m3"])
def test_what_was_quiet_for_long_may_be_deleted_without_a_message(handle):
    operation, unrelated = delete(handle), {"c4": LINES["c4"]}
    assert left(operation, lines=unrelated, given=True).operations == ()
    assert left(operation, lines=unrelated, given=True, quiet=True).operations == (operation,)


def test_not_even_then_where_messages_say_it():
    assert left(delete("m2"), quiet=True, lines={"c2": LINES["c2"]}).operations == ()


@pytest.mark.parametrize(("days", "quiet"), [(0, False), (13, False), (14, True), (21, True)])
def test_after_two_weeks_it_tells_something_that_nobody_spoke_of_it(days, quiet):
    """As in the third scenario of the design: three weeks without a word."""
    one = memory("a", strength=0.9, supported_at=START)
    assert is_quiet(one, START + timedelta(days=days), 0.2, 30.0) is quiet
    assert is_quiet(replace(one, strength=0.1), START, 0.2, 30.0)


@pytest.mark.parametrize("operation", [delete("m4"), update("Saturdays at ten they meet at the shed", handles=("m3",))])
def test_a_prompt_that_asks_for_no_evidence_gets_none(operation):
    lines = {key: LINES[key] for key in ("c1", "c3", "c4")}
    assert left(operation, asked=False, lines=lines).operations == (operation,)


def test_an_answer_without_any_evidence_is_held_against_what_it_is_about():
    """Models that know a format without evidence change and delete too."""
    moved = update("They meet at the shed on Saturdays at ten", handles=("m3",))
    unrelated = {"c4": LINES["c4"]}
    assert left(moved, lines=unrelated).operations == (moved,)
    assert left(moved, create("They like tea", "c4")).operations[0].kind == "create"
    assert left(delete("m3"), lines=unrelated).operations == (delete("m3"),)
    assert left(delete("m4")).operations == ()
    assert left(update("They like tea", handles=("m3",)), lines=unrelated).operations == ()


TEXTS = st.sampled_from(
    [
        *KNOWN,
        "固定活动、约定和禁忌。",
        "每周日骑车",
        "Stan is the owner",
        "They meet at ten",
        "不",
        "",
        "!",
        "周五三点",
        "7",
    ]
)
OPERATIONS = st.builds(
    Operation,
    line=st.just(1),
    kind=st.sampled_from(["keep", "update", "create", "delete"]),
    handles=st.lists(st.sampled_from(["m1", "M2", "m3", "m4", "m9", "x"]), max_size=3).map(tuple),
    statement=TEXTS,
    evidence=st.lists(st.sampled_from([*LINES, "c9", "m1", ""]), max_size=3).map(tuple),
)


@given(st.lists(OPERATIONS, max_size=6), st.booleans(), st.booleans())
def test_whatever_is_asked_no_memory_gives_way_to_something_else(operations, quiet, asked):
    read = left(*operations, quiet=quiet, asked=asked)
    conversation = Conversation(LINES, KNOWN)
    assert len(read.operations) + len(read.rejected) >= len(operations)
    for operation in read.operations:
        for handle in operation.handles if operation.kind == "update" else ():
            if (known := OFFERED.get(handle.lower())) is not None:
                assert is_related(conversation.of(known.statement), conversation.of(operation.statement))
    again = replace(read, rejected=())
    assert left(*again.operations, quiet=quiet, asked=asked).operations == again.operations or len(
        read.operations
    ) < len(operations)
