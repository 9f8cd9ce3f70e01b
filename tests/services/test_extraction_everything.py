"""Everything said with an agent is read once, with its time, and what is made of it is used in replies."""

from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from extraction_rig import CHINESE, ENGLISH, MODEL, conversations, extracted, memories, opened, reply, with_times
from roomlore import Message, Settings
from roomlore_testkit.model_server import Asked, ModelServer

WEDNESDAY = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def says(number: int, text: str, *, of: str = "u1", room: str = "r", **more) -> Message:
    return Message(id=f"s{number}", room_id=room, sender_id=of, sender_name=of, text=text, **more)


async def test_a_person_who_writes_in_pieces_is_read_whole():
    pieces = ["在吗", "我想订个包间", "周五六个人", "对了我对海鲜过敏，帮我记一下", "有大桌吗"]
    async with ModelServer(default=CHINESE.summary) as server, opened(server) as lore:
        for n in range(5):
            await lore.messages.add([says(10 * n + k, f"{piece} {n}") for k, piece in enumerate(pieces)])
            await lore.messages.add(reply(n, f"好的 {n}"))
        await extracted(lore)
        assert conversations(server)[0].splitlines() == [
            line for n in range(5) for line in (*(f"u1: {piece} {n}" for piece in pieces), f"bot: 好的 {n}")
        ]
        assert len((await memories(lore))[0].sources) == 30


async def test_in_a_group_only_what_is_said_with_the_agent_is_read():
    async with ModelServer(default=ENGLISH.summary) as server, opened(server, extract_every=2) as lore:
        await lore.messages.add([
            says(1, "Who takes the minutes today?", of="Ben", sent_at=WEDNESDAY),
            says(2, "I will.", of="Cleo", reply_to="s1", sent_at=WEDNESDAY + timedelta(minutes=1)),
            says(3, "When is the museum open?", of="Anna", mentions=("bot",), sent_at=WEDNESDAY + timedelta(hours=1)),
            reply(1, "From ten.", reply_to="s3", sent_at=WEDNESDAY + timedelta(minutes=61)),
            says(4, "I come by wheelchair.", of="Anna", sent_at=WEDNESDAY + timedelta(minutes=62)),
            reply(2, "There is a lift.", reply_to="s3", sent_at=WEDNESDAY + timedelta(minutes=63)),
        ])  # fmt: skip
        await extracted(lore)
        assert conversations(server) == [
            "Anna: When is the museum open?\nbot: From ten.\nAnna: I come by wheelchair.\nbot: There is a lift."
        ]


async def test_what_is_answered_long_after_is_read_with_its_answer_and_only_then():
    async with ModelServer(default=ENGLISH.summary) as server, opened(server, extract_every=1) as lore:
        await lore.messages.add([
            says(1, "Where is the key?", of="Ben", sent_at=WEDNESDAY - timedelta(days=1)),
            says(2, "Hello bot", of="Anna", mentions=("bot",), sent_at=WEDNESDAY),
            reply(1, "Hello.", reply_to="s2", sent_at=WEDNESDAY),
        ])  # fmt: skip
        await extracted(lore)
        await lore.messages.add(reply(2, "Under the mat.", reply_to="s1", sent_at=WEDNESDAY + timedelta(hours=1)))
        await extracted(lore)
        assert conversations(server) == ["Anna: Hello bot\nbot: Hello.", "Ben: Where is the key?\nbot: Under the mat."]


@pytest.mark.parametrize(
    ("zone", "first"), [("UTC", "[Wed 2026-03-04 12:00] u1: "), ("Asia/Shanghai", "[Wed 2026-03-04 20:00] u1: ")]
)
async def test_each_line_has_its_time(zone, first):
    async with ModelServer(default=ENGLISH.summary) as server, opened(server, extract_every=1, time_zone=zone) as lore:
        await lore.messages.add([
            says(1, "See you next Wednesday.", sent_at=WEDNESDAY),
            reply(1, "Fine.", sent_at=WEDNESDAY + timedelta(minutes=2)),
        ])  # fmt: skip
        await extracted(lore)
        lines = with_times(server.requests[0]).splitlines()
        assert lines[0] == f"{first}See you next Wednesday."
        assert lines[1].startswith(first[:16])
        assert "date" in server.requests[0].prompt


async def test_a_short_message_leaves_its_space_to_a_long_one():
    async with ModelServer(default=ENGLISH.summary) as server, opened(server, extract_every=1) as lore:
        long = "word " * 2000 + "the code is 4711"
        await lore.messages.add([says(n, "ok") for n in range(20)])
        await lore.messages.add([says(99, long), reply(1, "Noted.")])
        await extracted(lore)
        assert "the code is 4711" in conversations(server)[0]


@pytest.mark.parametrize("fact", ["小林对海鲜过敏。", "Anna comes on 11 March."])
async def test_what_a_person_told_is_in_the_reply_after_next_in_the_same_room(fact):
    def note(asked: Asked) -> str:
        return fact if fact in asked.prompt else "NO_MEMORY"

    async with ModelServer(note) as notes, ModelServer(default="Fine.") as talks:
        given = Settings(
            models={
                MODEL: {"internal": True, "providers": [{"name": "notes", "model_id": "tiny"}]},
                "chat": {"providers": [{"name": "talks", "model_id": "tiny"}]},
            },
            providers={"notes": {"base_url": notes.url}, "talks": {"base_url": talks.url}},
            durable_work="process",
            extract_every=1,
        )
        async with roomlore.open("sqlite://", settings=given) as lore:
            for n in range(3):
                for room in ("r", "other"):
                    text = fact if (n, room) == (0, "r") else f"Hello {n}"
                    await lore.replies.reply(says(n, text, room=room), agent_id="bot", model_id="chat")
                    await extracted(lore)
        told = [f"- [agent:bot] {fact}" in str(asked.body) for asked in talks.requests]
        assert told[4]
        assert not any([told[0], *told[1::2]])
