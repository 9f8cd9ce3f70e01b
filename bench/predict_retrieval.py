"""Writes, for every query of a folder, the messages that roomlore's own search finds in its room, best first.

The folder's `messages.jsonl` goes through the importer into a fresh store, in its order, and the index is brought in
step; then each query of `queries<suffix>.jsonl` is asked as if its room had just gone quiet. Gold files are never
opened. The output is what `score_retrieval.py` of the evaluation kit reads.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import roomlore
from bench.kept_vectors import KeptEmbedder
from bench.progress import Progress
from roomlore.core.records import Bad
from roomlore.ports.language import Embedder
from roomlore_importers import open_import

LIMIT = 50
BATCH = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set_dir", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--suffix", default="", help="which queries, such as _clean")
    parser.add_argument("--mode", default="hybrid", choices=("hybrid", "lexical"))
    parser.add_argument("--embeddings", type=Path, help="a folder that keeps vectors between runs, outside the project")


async def run(arguments: argparse.Namespace) -> None:
    settings = roomlore.Settings(enable_async_data_collection=False)
    embedder = offline(arguments.embeddings) if arguments.mode == "hybrid" else None
    with TemporaryDirectory() as folder, arguments.out.open("w", encoding="utf-8") as out:
        url = f"sqlite:///{folder}/retrieval.db"
        async with roomlore.open(url, settings=settings, embedder=embedder, background=False) as lore:
            await ingest(lore, arguments.set_dir / "messages.jsonl")
            await index(lore)
            queries = rows(arguments.set_dir / f"queries{arguments.suffix}.jsonl")
            progress = Progress("queries", len(queries))
            for number, query in enumerate(queries):
                ranked = await search(lore, query, arguments.mode, LIMIT)
                out.write(json.dumps({"qid": query["qid"], "ranked": ranked}, ensure_ascii=False) + "\n")
                progress.at(number)
            progress.end(len(queries))


def offline(folder: Path | None) -> Embedder:
    """The model on this machine; `folder`: where its vectors are kept between runs."""
    from roomlore.adapters.embedding import open_offline

    return open_offline() if folder is None else KeptEmbedder(open_offline(), folder)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def messages(path: Path) -> Iterator[roomlore.Message]:
    """As the importer reads them; a line that it cannot read ends the bench."""
    with ExitStack() as opened:
        for item in opened.enter_context(open_import(path, "jsonl")):
            if isinstance(item, Bad):
                raise SystemExit(f"{path.name}, line {item.number}: {item.reason}")
            yield item.message


async def ingest(lore: roomlore.Lore, path: Path) -> None:
    messages_left, done = messages(path), 0
    with path.open("rb") as lines:
        progress = Progress("messages", sum(1 for _ in lines))
    while batch := list(islice(messages_left, BATCH)):
        await lore.messages.add(batch)
        done += len(batch)
        progress.at(done)
    progress.end(done)


async def index(lore: roomlore.Lore) -> None:
    progress, done = Progress("vectors", (await lore.index.status()).waiting), 0
    async for step in lore.index.drain():
        done = step.done
        progress.at(done)
    progress.end(done)


async def search(lore: roomlore.Lore, query: dict[str, str], mode: str, limit: int) -> list[str]:
    """Ids of the messages found; a search that did less than it was asked to ends the bench."""
    answer = await lore.messages.search(
        query["room_id"],
        query["query"],
        limit=limit,
        mode=mode,  # type: ignore[arg-type]
        asked_at="newest",
    )
    if answer.degraded:
        raise SystemExit(f"{query['qid']}: {answer.degraded}")
    return [hit.message.id for hit in answer.hits]
