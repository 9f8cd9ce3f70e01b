"""Asks a bot about what was said in its room, after pauses, and counts the contexts that hold all that is needed.

The rooms in `bench/data/paused` were written by somebody who did not know the code. Each has questions with the
messages that are needed to answer them; those of `plain` rooms use the words that come to mind, those of `large` ones
other words than the talk. Every question is put to a copy of its room 1 minute to 3 days after the last
message, with "@helper" in front and without, and one context is taken with default settings. The last 12 messages are
counted beside it.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean

import roomlore
from bench.progress import Progress
from roomlore import Message, Role

ROOMS = Path(__file__).with_name("data") / "paused"
BOT = "helper"
PAUSES = {"1 min": 1, "30 min": 30, "4 h": 240, "1 day": 1_440, "3 days": 4_320}
WINDOW = 12
_QUESTION = "question"


@dataclass(frozen=True, slots=True)
class Question:
    """`needed`: ids of the messages without which it cannot be answered."""

    sender_id: str
    text: str
    needed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Room:
    name: str
    messages: Sequence[Message]
    questions: Sequence[Question]


@dataclass(slots=True)
class Tally:
    """Of the contexts of one kind: the share of the needed messages that each has, how many messages and tokens it has,
    and the tokens of the last 12 messages and whether those are complete."""

    found: list[float] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    window_complete: list[bool] = field(default_factory=list)
    window_tokens: list[int] = field(default_factory=list)

    @property
    def complete(self) -> float:
        """The share of contexts that have all."""
        return fmean(share == 1 for share in self.found)


Results = dict[tuple[str, str, bool], Tally]
"""By kind of room ('small', 'plain', 'large'), pause, and whether the bot was called."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rooms", type=Path, default=ROOMS)
    parser.add_argument("--missed", action="store_true", help="print the questions whose context lacks something")


async def run(arguments: argparse.Namespace) -> None:
    results = await ask(list(read(arguments.rooms)), tell_missed=arguments.missed)
    print("| rooms, pause | complete | with @ | needed found | last 12: complete | shown | tokens, to the last 12 |")
    print("|---|---|---|---|---|---|---|")
    for kind in ("small", "plain", "large"):
        for pause in PAUSES:
            plain, called = results[kind, pause, False], results[kind, pause, True]
            if not plain.shown:
                continue
            shown, tokens = plain.shown + called.shown, plain.tokens + called.tokens
            share_found = fmean(plain.found + called.found)
            ratio = fmean(tokens) / fmean(plain.window_tokens + called.window_tokens)
            print(
                f"| {kind}, {pause} | {plain.complete:.0%} | {called.complete:.0%} | {share_found:.0%} "
                f"| {fmean(plain.window_complete):.0%} | {fmean(shown):.1f} | {ratio:.2f} |"
            )


def read(folder: Path) -> Iterator[Room]:
    """Read every room of a folder: lines `number | time | sender | text`, then `? sender | question | numbers`."""
    for path in sorted(folder.glob("*.txt")):
        messages, questions = [], []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("?"):
                sender, text, numbers = line[1:].split("|")
                needed = frozenset(numbers.split())
                questions.append(Question(sender.strip(), text.strip(), needed))
            elif line and not line.startswith("#"):
                number, at, sender, text = (part.strip() for part in line.split("|", 3))
                sent_at = datetime.fromisoformat(at).replace(tzinfo=UTC)
                role = Role.ASSISTANT if sender == BOT else Role.USER
                messages.append(
                    Message(id=number, room_id=path.stem, sender_id=sender, text=text, role=role, sent_at=sent_at)
                )
        known = {message.id for message in messages}
        for question in questions:
            if not question.needed or not question.needed <= known:
                raise SystemExit(f"{path.name}: {question.text!r} needs messages that are not there")
        yield Room(path.stem, messages, questions)


async def ask(rooms: Sequence[Room], *, tell_missed: bool = False) -> Results:
    """Put every question, and return what came of it."""
    results: Results = defaultdict(Tally)
    progress, count_asked = Progress("questions", sum(len(room.questions) for room in rooms)), 0
    for room in rooms:
        kind = room.name.partition("_")[0]
        async with roomlore.open("sqlite://", background=False) as lore:
            for question in room.questions:
                for pause, minutes in PAUSES.items():
                    for called in (False, True):
                        shown = await _put(lore, room, question, minutes, results[kind, pause, called], called=called)
                        if tell_missed and not question.needed <= shown:
                            missed = " ".join(sorted(question.needed - shown, key=int))
                            print(f"{room.name}, {pause}{', called' * called}: {question.text} misses {missed}")
                count_asked += 1
                progress.at(count_asked)
    progress.end(count_asked)
    return results


async def _put(
    lore: roomlore.Lore, room: Room, question: Question, minutes: int, tally: Tally, *, called: bool
) -> set[str]:
    """Ask in a copy of the room. Return the ids of the messages that are shown."""
    copy = f"{room.name} {question.text} {minutes} {called}"
    text = f"@{BOT} {question.text}" if called else question.text
    newest = room.messages[-1].sent_at
    assert newest is not None
    last = Message(
        id=_QUESTION,
        room_id=copy,
        sender_id=question.sender_id,
        text=text,
        sent_at=newest + timedelta(minutes=minutes),
    )
    await lore.messages.add([*(replace(message, room_id=copy) for message in room.messages), last])
    context = await lore.context.build(copy, _QUESTION)
    window = await lore.context.build(copy, _QUESTION, strategy="recent", max_messages=WINDOW)
    shown = {shown_message.message.id for shown_message in context.messages}
    tally.found.append(len(question.needed & shown) / len(question.needed))
    tally.shown.append(len(shown))
    tally.tokens.append(context.tokens)
    tally.window_complete.append(question.needed <= {shown_message.message.id for shown_message in window.messages})
    tally.window_tokens.append(window.tokens)
    return shown
