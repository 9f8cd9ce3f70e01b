"""The labelled Chinese rooms keep the form that the bench and the scorer expect; so does the bundled demo chat."""

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from roomlore.samples import DEMO_QUESTIONS, DEMO_ROOM, demo_path

ROOMS = {"dev_group": 240, "neighbours": 90, "hobby": 70}
FOLDER = Path(__file__).parents[1] / "bench" / "data" / "zh_room"
ROLES = {"user", "assistant", "system", "tool"}

Rows = list[dict[str, Any]]


def rows(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def messages_of(room: str) -> Rows:
    return rows(FOLDER / f"{room}.messages.jsonl")


def gold_of(room: str) -> Rows:
    return rows(FOLDER / f"{room}.gold.jsonl")


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


def test_the_folder_holds_these_rooms_and_no_other() -> None:
    assert {p.name.split(".")[0] for p in FOLDER.glob("*.jsonl")} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_messages_are_well_formed(room: str) -> None:
    messages = messages_of(room)
    assert_well_formed(messages)
    assert len(messages) >= ROOMS[room]
    assert {m["room_id"] for m in messages} == {room}


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
    replies = [m for m in messages_of(room) if "reply_to" in m]
    assert all(m["reply_to"] in parents[m["id"]] for m in replies)
    assert 0 < len(replies) < 0.15 * len(parents)


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


def test_the_demo_questions_come_late_and_ask_the_bot() -> None:
    messages = rows(demo_path())
    bots = {m["sender_id"] for m in messages if m["role"] == "assistant"}
    asked = [m for m in messages[len(messages) * 3 // 4 :] if m["id"] in DEMO_QUESTIONS]
    assert [m["id"] for m in asked] == list(DEMO_QUESTIONS)
    assert all(bots & set(m["mentions"]) for m in asked)
    assert len({m["sender_id"] for m in asked}) == len(asked)
