"""Search in small teams where the question was asked before: who answered comes first, not who asked.

The rooms and questions were written for this test. A file has days (`# 2025-11-03`), messages (`09:02 Mara: text`,
where `[name]` marks one that answers a question) and at its end the questions with the name of their answer. The
weights of ranking were chosen with the rooms of the teams in view, without those of the club and the shop.
"""

import re
from datetime import datetime
from pathlib import Path

import pytest

import roomlore

ROOMS = Path(__file__).parent / "asked_before"
LINE = re.compile(r"(?P<clock>\d\d:\d\d) (?P<sender>[^:]+): (?:\[(?P<name>\w+)\] )?(?P<text>.+)")


def read(room: str) -> tuple[list[roomlore.Message], list[tuple[str, str]]]:
    """Return the room's messages, and each question with the id of the message that answers it."""
    day, messages, questions = "", [], []
    for number, line in enumerate((ROOMS / f"{room}.txt").read_text(encoding="utf-8").splitlines()):
        if line.startswith("# "):
            day = line[2:]
        elif line.startswith("? "):
            _, name, question = line.split(" ", 2)
            questions.append((question, name))
        elif said := LINE.fullmatch(line):
            messages.append(
                roomlore.Message(
                    id=said["name"] or f"line {number}",
                    room_id=room,
                    sender_id=said["sender"],
                    sender_name=said["sender"],
                    text=said["text"],
                    sent_at=datetime.fromisoformat(f"{day}T{said['clock']}+00:00"),
                )
            )
    return messages, questions


async def places(room: str) -> list[int]:
    """Return where each question's answer stands among what is found; 99 where it is not."""
    messages, questions = read(room)
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(messages)
        found = []
        for question, answer in questions:
            hits = (await lore.messages.search(room, question, limit=98, asked_at="newest")).hits
            ids = [hit.message.id for hit in hits]
            found.append(ids.index(answer) + 1 if answer in ids else 99)
    return found


@pytest.mark.parametrize(
    ("room", "questions", "first"),
    [
        ("team_en", 10, 8),
        ("team_zh", 10, 8),
        ("club_en", 6, 4),
        ("shop_zh", 6, 4),
        ("outing_en", 2, 2),
        ("outing_zh", 2, 2),
    ],
)
async def test_the_answer_comes_first_in_most_and_among_ten_in_all(room, questions, first):
    found = await places(room)
    assert len(found) == questions
    assert sum(place == 1 for place in found) >= first, found
    assert max(found) <= 10, found
