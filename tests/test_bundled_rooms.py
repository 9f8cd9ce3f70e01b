"""The labelled rooms keep the form that the bench and the scorer expect; so does the bundled demo chat."""

import json
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from roomlore.samples import DEMO_QUESTIONS, DEMO_ROOM, demo_path

ROOMS = {
    "zh_room/dev_group": 240,
    "zh_room/neighbours": 90,
    "zh_room/hobby": 70,
    "zh_bot/study_help": 230,
    "zh_bot/weekend": 180,
    "zh_bot/shop": 180,
    "zh_team/studio": 230,
    "zh_team/family": 240,
    "en_bot/makers": 140,
    "en_team/bakery": 160,
}
SAMPLE = [room for room in ROOMS if room.startswith("zh_room/")]
WITH_A_BOT = [room for room in ROOMS if "_bot/" in room]
SMALL_TEAMS = [room for room in ROOMS if "_team/" in room]
DATA = Path(__file__).parents[1] / "bench" / "data"
ROLES = {"user", "assistant", "system", "tool"}

Rows = list[dict[str, Any]]


def rows(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def messages_of(room: str) -> Rows:
    return rows(DATA / f"{room}.messages.jsonl")


def gold_of(room: str) -> Rows:
    return rows(DATA / f"{room}.gold.jsonl")


def assert_well_formed(messages: Rows) -> None:
    ids = [m["id"] for m in messages]
    times = [datetime.fromisoformat(m["sent_at"]) for m in messages]
    assert len(set(ids)) == len(ids)
    assert all(at.tzinfo for at in times)
    assert times == sorted(times)
    assert {m["role"] for m in messages} <= ROLES
    place = {i: n for n, i in enumerate(ids)}
    for m in messages:
        assert "reply_to" not in m or place[m["reply_to"]] < place[m["id"]], m


def test_the_folders_hold_these_rooms_and_no_other() -> None:
    for kind in ("messages", "gold"):
        suffix = f".{kind}.jsonl"
        assert {f"{p.parent.name}/{p.name.removesuffix(suffix)}" for p in DATA.glob(f"*/*{suffix}")} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_messages_are_well_formed(room: str) -> None:
    messages = messages_of(room)
    assert_well_formed(messages)
    assert len(messages) >= ROOMS[room]
    assert {m["room_id"] for m in messages} == {room.split("/")[1]}
    assert {i for m in messages for i in m.get("mentions", [])} <= {m["sender_id"] for m in messages}


@pytest.mark.parametrize("room", ROOMS)
def test_gold_names_the_same_messages(room: str) -> None:
    assert [g["id"] for g in gold_of(room)] == [m["id"] for m in messages_of(room)]


@pytest.mark.parametrize("room", ROOMS)
def test_parents_are_earlier_and_in_the_same_conversation(room: str) -> None:
    conv: dict[str, str] = {}
    for g in gold_of(room):
        others = [p for p in g["parents"] if p != g["id"]]
        assert all(conv[p] == g["conv"] for p in others), g
        assert g["conv"] is None or bool(others) == (g["conv"] in conv.values()), g
        assert g["conv"] is None or others or g["parents"] == [g["id"]], g
        conv[g["id"]] = g["conv"]


@pytest.mark.parametrize("room", ROOMS)
def test_a_platform_reply_agrees_with_its_label(room: str) -> None:
    parents = {g["id"]: g["parents"] for g in gold_of(room)}
    assert all(m["reply_to"] in parents[m["id"]] for m in messages_of(room) if "reply_to" in m)


@pytest.mark.parametrize("room", SAMPLE)
def test_platform_replies_are_few_in_the_sample(room: str) -> None:
    messages = messages_of(room)
    assert 0 < sum("reply_to" in m for m in messages) < 0.15 * len(messages)


@pytest.mark.parametrize("room", ROOMS)
def test_a_platform_thread_begins_its_conversation(room: str) -> None:
    gold = {g["id"]: g for g in gold_of(room)}
    for m in (one for one in messages_of(room) if "root_id" in one):
        assert gold[m["root_id"]]["parents"] == [m["root_id"]], m
        assert gold[m["root_id"]]["conv"] == gold[m["id"]]["conv"], m


@pytest.mark.parametrize("room", WITH_A_BOT)
def test_a_bot_answers_people_only_and_in_their_conversations(room: str) -> None:
    bots = {m["id"] for m in messages_of(room) if m["role"] == "assistant"}
    answered = [p for g in gold_of(room) if g["id"] in bots for p in g["parents"]]
    assert len({m["sender_id"] for m in messages_of(room) if m["id"] in bots}) == 1
    assert len(bots) > 30
    assert not bots & set(answered)


def test_replies_of_the_bots_come_with_always_sometimes_and_never_a_platform_reply() -> None:
    shares = {}
    for room in WITH_A_BOT:
        own = ["reply_to" in m for m in messages_of(room) if m["role"] == "assistant"]
        shares[room] = "all" if all(own) else "some" if any(own) else "none"
    assert set(shares.values()) == {"all", "some", "none"}, shares


@pytest.mark.parametrize("room", SMALL_TEAMS)
def test_a_team_has_no_bot_and_everybody_is_in_much_of_it(room: str) -> None:
    messages = messages_of(room)
    assert {m["role"] for m in messages} == {"user"}
    people = Counter(m["sender_id"] for m in messages)
    assert 4 <= len(people) <= 6
    assert min(people.values()) > 0.1 * len(messages)


@pytest.mark.parametrize("room", [*WITH_A_BOT, *SMALL_TEAMS])
def test_an_empty_text_has_a_caption(room: str) -> None:
    empty = [m for m in messages_of(room) if not m["text"]]
    assert empty
    assert all(m["metadata"]["caption"] for m in empty)


@pytest.mark.parametrize("room", ROOMS)
def test_people_are_scored_after_the_lead_in_and_nobody_else_is(room: str) -> None:
    gold = gold_of(room)
    people = [m["role"] == "user" for m in messages_of(room)]
    first = next(n for n, g in enumerate(gold) if g["annotated"])
    assert first < 0.1 * len(gold)
    assert [g["annotated"] for g in gold[first:]] == people[first:]


@pytest.mark.parametrize("room", ROOMS)
def test_conversations_are_interleaved(room: str) -> None:
    convs = [g["conv"] for g in gold_of(room) if g["conv"]]
    switches = sum(a != b for a, b in pairwise(convs))
    assert switches >= len(set(convs))  # one after the other would give one less


@pytest.mark.parametrize("room", [*WITH_A_BOT, *SMALL_TEAMS])
def test_conversations_overlap(room: str) -> None:
    convs = [g["conv"] for g in gold_of(room)]
    assert sum(a != b for a, b in pairwise(convs)) > 0.5 * len(convs)


def test_the_demo_chat_is_well_formed() -> None:
    messages = rows(demo_path())
    assert_well_formed(messages)
    assert len(messages) >= 120
    assert {m["room_id"] for m in messages} == {DEMO_ROOM}
    assert len({m["sent_at"][:10] for m in messages}) == 1


def test_the_demo_chat_has_a_bot_replies_and_mentions() -> None:
    messages = rows(demo_path())
    people = {m["sender_id"] for m in messages}
    assert any(m["role"] == "assistant" for m in messages)
    assert any("reply_to" in m for m in messages)
    assert {i for m in messages for i in m.get("mentions", [])} <= people


def test_members_ask_the_demo_questions_and_need_what_was_said_hours_before() -> None:
    messages = rows(demo_path())
    people = {(m["sender_id"], m["sender_name"]) for m in messages if m["role"] == "user"}
    bots = {(m["sender_id"], m["sender_name"]) for m in messages if m["role"] == "assistant"}
    sent = {m["id"]: datetime.fromisoformat(m["sent_at"]) for m in messages}
    for question in DEMO_QUESTIONS:
        assert (question.sender_id, question.sender_name) in people
        assert question.mentions == tuple(i for i, name in bots if f"@{name}" in question.text)
        assert question.needed
        assert all(sent[one] < sent[messages[-1]["id"]] - timedelta(hours=2) for one in question.needed)
    assert [bool(question.mentions) for question in DEMO_QUESTIONS].count(True) == 1
    assert [question.text.isascii() for question in DEMO_QUESTIONS].count(True) == 2
