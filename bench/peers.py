"""Times roomlore and other stores beside each other (`bench.peer_speed`), and compares what mem0 and roomlore find.

Quality: for each of `--sets` (`FOLDER` or `FOLDER:_suffix`) both answer every query with the same model, the same text
("sender: text") and the prefixes that the model wants; the gold is opened when both have answered.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import roomlore
from bench import predict_retrieval
from bench.peer_process import KINDS, Peer, Told, peer
from bench.peer_speed import LIMIT, compare_speed, text_of
from bench.progress import Progress
from roomlore.ports.language import Embedder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=numbers, default=[1_000, 10_000, 50_000], help="messages in 50 rooms, rising")
    parser.add_argument("--adds", type=int, default=500, help="messages added one a call at each size")
    parser.add_argument("--search-seconds", type=float, default=60, help="a store's searches of a size take about this")
    parser.add_argument("--stores", nargs="*", default=list(KINDS), choices=KINDS, help="what to compare with")
    parser.add_argument(
        "--sets", nargs="*", default=[], help="folders with messages, queries and gold: FOLDER[:_suffix]"
    )
    parser.add_argument("--embeddings", type=Path, help="a folder that keeps vectors between runs, outside the project")
    parser.add_argument("--environments", type=Path, default=Path("out"), help="where the stores are installed")


def numbers(given: str) -> list[int]:
    return [int(number) for number in given.split(",")]


async def run(arguments: argparse.Namespace) -> None:
    kinds = [KINDS[name] for name in arguments.stores]
    packages = dict.fromkeys(package for kind in kinds for package in kind.packages)
    print(f"versions: {', '.join(packages) or 'of this Python'}\n")
    await compare_speed(kinds, arguments.environments, arguments.sizes, arguments.adds, arguments.search_seconds)
    for name in arguments.sets:
        folder, _, suffix = name.partition(":")
        await compare_quality(arguments.environments, Path(folder), suffix, arguments.embeddings)


async def compare_quality(environments: Path, folder: Path, suffix: str, kept: Path | None) -> None:
    queries = predict_retrieval.rows(folder / f"queries{suffix}.jsonl")
    embedder = predict_retrieval.offline(kept)
    settings = roomlore.Settings(enable_async_data_collection=False)
    with TemporaryDirectory() as store:
        url = f"sqlite:///{store}/peers.db"
        async with (
            roomlore.open(url, settings=settings, embedder=embedder, background=False) as lore,
            peer(KINDS["mem0"], environments, embedder.model.dimensions) as mem0,
        ):
            await predict_retrieval.ingest(lore, folder / "messages.jsonl")
            await predict_retrieval.index(lore)
            await tell(mem0, list(predict_retrieval.messages(folder / "messages.jsonl")), embedder)
            ours = [await predict_retrieval.search(lore, query, "hybrid", LIMIT) for query in queries]
            vectors = await embedder.embed([query["query"].strip() for query in queries], kind="query")
            theirs = [
                (await mem0.search(query["room_id"], query["query"], vector, LIMIT))[1]
                for query, vector in zip(queries, vectors, strict=True)
            ]
    gold = {row["qid"]: set(row["gold"]) for row in predict_retrieval.rows(folder / f"gold{suffix}.jsonl")}
    for name, ranked in (("mem0", theirs), ("roomlore", ours)):
        print(f"R@{LIMIT} on {folder.name}{suffix}, {name}: {recall(queries, ranked, gold):.1%}", flush=True)


async def tell(mem0: Peer, messages: Sequence[roomlore.Message], embedder: Embedder) -> None:
    """mem0's own `add`, one message a call."""
    pairs = [(message, text_of(message)) for message in messages]
    vectors = await embedder.embed([text for _, text in pairs], kind="passage")
    progress = Progress("mem0's messages", len(pairs))
    for number, ((message, text), vector) in enumerate(zip(pairs, vectors, strict=True)):
        await mem0.add(Told(message, text, vector))
        progress.at(number)


def recall(queries: Sequence[dict[str, str]], ranked: Sequence[Sequence[str]], gold: dict[str, set[str]]) -> float:
    """Share of the messages that answer a query among those found, mean over queries."""
    pairs = zip(queries, ranked, strict=True)
    shares = [len(gold[query["qid"]] & set(ranked_ids)) / len(gold[query["qid"]]) for query, ranked_ids in pairs]
    return sum(shares) / len(shares)
