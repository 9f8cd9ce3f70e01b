"""Writes, for every question of a folder, the context that roomlore would show if it were asked in its room.

Each room goes through the importer into a store of its own, in its order. A question is put to a copy of that store as
a message: right after the message `asked_after`, before any later one is there, or a day after the room's newest. One
context is taken with default settings, and the copy is thrown away, so no question knows of another. Gold files are
never opened. The output is what `score_asked.py` of the evaluation kit reads.
"""

import argparse
import json
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import roomlore
from bench.predict_retrieval import BATCH, messages, offline, rows
from bench.progress import Progress
from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.language import Embedder, TextKind

ASKER = "asker"
LATER = timedelta(days=1)
SOON = timedelta(minutes=1)
QUESTION_ID = "question asked by the bench"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set_dir", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--suffix", default="", help="which questions, such as _clean")
    parser.add_argument("--k", type=int, default=20, help="at most so many messages are selected")
    parser.add_argument("--mode", default="hybrid", choices=("hybrid", "lexical"))
    parser.add_argument("--embeddings", type=Path, help="a folder that keeps vectors between runs, outside the project")


async def run(arguments: argparse.Namespace) -> None:
    embedder = SharedEmbedder(offline(arguments.embeddings)) if arguments.mode == "hybrid" else None
    questions = rows(arguments.set_dir / f"queries{arguments.suffix}.jsonl")
    progress, done = Progress("questions", len(questions)), 0
    with arguments.out.open("w", encoding="utf-8") as out:
        for room in rooms(by_room(arguments.set_dir / "messages.jsonl"), questions):
            async for question in put(room, embedder):
                context = await build(question, arguments.k)
                shown = [candidate.message.id for candidate in context.messages]
                out.write(json.dumps({"qid": question.qid, "selected": shown}, ensure_ascii=False) + "\n")
                done += 1
                progress.at(done)
    progress.end(done)
    if embedder is not None:
        await embedder.shared.close()


async def build(question: "Asked", k: int) -> roomlore.Context:
    """Return the context of a question; one that is degraded ends the bench."""
    context = await question.lore.context.build(question.room_id, QUESTION_ID, max_messages=k)
    if context.degraded:
        raise SystemExit(f"{question.qid}: {context.degraded}")
    return context


class SharedEmbedder:
    """The port `Embedder` over one that outlives the stores it is used with."""

    def __init__(self, shared: Embedder) -> None:
        self.shared = shared

    @property
    def model(self) -> EmbeddingModel:
        return self.shared.model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        return await self.shared.embed(texts, kind=kind)

    async def close(self) -> None:
        """Leaves the shared one open."""


@dataclass(frozen=True, slots=True)
class AskedRoom:
    """A room's messages, and its questions by how many of the messages are there when they are asked."""

    messages: Sequence[roomlore.Message]
    questions: Sequence[tuple[int, dict[str, str]]]


def by_room(path: Path) -> dict[str, list[roomlore.Message]]:
    found: dict[str, list[roomlore.Message]] = {}
    for message in messages(path):
        found.setdefault(message.room_id, []).append(message)
    return found


def rooms(messages_by_room: dict[str, list[roomlore.Message]], questions: Sequence[dict[str, str]]) -> list[AskedRoom]:
    """Return the rooms that are asked something, in the order of their first question."""
    questions_by_room: dict[str, list[tuple[int, dict[str, str]]]] = {}
    places = {
        (room_id, message.id): place
        for room_id, room in messages_by_room.items()
        for place, message in enumerate(room, 1)
    }
    for question in questions:
        room_id, after = question["room_id"], question.get("asked_after")
        there = len(messages_by_room[room_id]) if after is None else places[room_id, after]
        questions_by_room.setdefault(room_id, []).append((there, question))
    return [
        AskedRoom(messages_by_room[room_id], sorted(those, key=lambda placed: placed[0]))
        for room_id, those in questions_by_room.items()
    ]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was put to a copy of its room, as the message `QUESTION_ID`. `there`: how many messages are
    before it."""

    qid: str
    room_id: str
    lore: roomlore.Lore
    there: int


async def put(room: AskedRoom, embedder: Embedder | None) -> AsyncIterator[Asked]:
    """Put each question of the room, in the order in which they are asked; each to a copy of its own."""
    filled = 0
    with TemporaryDirectory() as folder:
        store, copy = Path(folder, "room.db"), Path(folder, "asked.db")
        for there, together in groupby(room.questions, key=lambda placed: placed[0]):
            async with _opened(store, embedder) as lore:
                for start in range(filled, there, BATCH):
                    await lore.messages.add(room.messages[start : min(start + BATCH, there)])
                async for _ in lore.index.drain():
                    pass
            filled = there
            for _, question in together:
                shutil.copy(store, copy)
                async with _opened(copy, embedder) as lore:
                    await lore.messages.add(as_message(question, room.messages[:there]))
                    yield Asked(question["qid"], question["room_id"], lore, there)


@asynccontextmanager
async def _opened(path: Path, embedder: Embedder | None) -> AsyncIterator[roomlore.Lore]:
    settings = roomlore.Settings(enable_async_data_collection=False, fallback_on_error=False)
    url = f"sqlite:///{path}"
    async with roomlore.open(url, settings=settings, embedder=embedder, background=False) as lore:
        yield lore


def as_message(question: Mapping[str, str], said: Sequence[roomlore.Message]) -> roomlore.Message:
    """Return the question as its asker would say it after these messages.

    It comes a minute after the last one if it follows a certain message, else a day after the newest.
    """
    if question.get("asked_after"):
        sent_at = said[-1].sent_at and said[-1].sent_at + SOON
    else:
        times = [message.sent_at for message in said if message.sent_at]
        sent_at = max(times) + LATER if times else None
    return roomlore.Message(
        id=QUESTION_ID,
        room_id=question["room_id"],
        sender_id=question.get("sender_id", ASKER),
        sender_name=question.get("sender_name", ""),
        sent_at=sent_at,
        text=question["query"],
    )
