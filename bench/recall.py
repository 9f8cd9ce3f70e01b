"""Recall of facts: what of a question's gold is in the block, how often the block changes, and what it costs.

`--data` is a folder of sets, or one of them: `messages.jsonl`, `queries.jsonl`, `gold.jsonl`.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bench import recall_churn, recall_speed
from bench.predict_retrieval import offline
from bench.progress import Progress
from bench.recall_data import RoomOfFacts, rooms_of, say, sets_of
from bench.recall_methods import OURS, RIVALS, SHOWN_BESIDE, Asked, Order, PlainTfidf
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.recall.ranking import FactSet, fill
from roomlore.core.search.hits import Vectors
from roomlore.ports.language import Embedder

BUDGETS = (256, 512, 1024, 2048)
NOISE = 0.5
Shares = Mapping[str, Sequence[float]]
"""For each method the mean share of gold in the block, in points, by budget."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help="a folder of sets; without one only speed is measured")
    parser.add_argument("--most", type=int, help="questions a room; all by default")
    parser.add_argument("--seed", type=int, default=0, help="of the confidences")
    parser.add_argument("--embeddings", type=Path, help="measures vectors too; a folder that keeps them between runs")
    parser.add_argument("--only", choices=("quality", "churn", "speed"), help="one part alone")


async def run(arguments: argparse.Namespace) -> None:
    wanted = {arguments.only} if arguments.only else {"quality", "churn", "speed"}
    sets = sets_of(arguments.data) if arguments.data else {}
    if sets and "quality" in wanted:
        await quality(sets, arguments)
    if sets and "churn" in wanted:
        recall_churn.report(sets, seed=arguments.seed)
    if "speed" in wanted:
        recall_speed.report()


async def quality(sets: Mapping[str, Path], arguments: argparse.Namespace) -> None:
    embedder = offline(arguments.embeddings) if arguments.embeddings else None
    methods = {name: order for name, order in OURS.items() if embedder or name == "tfidf"} | RIVALS | SHOWN_BESIDE
    shares_by_set: dict[str, Shares] = {}
    try:
        for name, folder in sets.items():
            shares_by_set[name] = await measure(folder, methods, embedder, arguments)
    finally:
        if embedder:
            await embedder.close()
    show(shares_by_set, methods)
    judge(shares_by_set)


async def measure(
    folder: Path, methods: Mapping[str, Order], embedder: Embedder | None, arguments: argparse.Namespace
) -> Shares:
    shares: dict[str, list[list[float]]] = defaultdict(list)
    rooms = list(rooms_of(folder, most=arguments.most, seed=arguments.seed))
    progress, done = Progress(folder.name, sum(len(room.questions) for room in rooms)), 0
    for room in rooms:
        for question, gold in await asked_of(room, embedder):
            for name, order in methods.items():
                shares[name].append([share(question, gold, order, budget) for budget in BUDGETS])
            done += 1
            progress.at(done)
    progress.end(done)
    return {name: (100 * np.mean(each, axis=0)).tolist() for name, each in shares.items()}


async def asked_of(room: RoomOfFacts, embedder: Embedder | None) -> list[tuple[Asked, frozenset[str]]]:
    facts = FactSet(room.facts, count=EncodingTokens().count)
    plain = PlainTfidf(facts)
    cosines = await cosines_of(facts, [question.text for question in room.questions], embedder) if embedder else None
    return [
        (
            Asked(facts, plain.similarities(question.text), question.text, None if cosines is None else cosines[at]),
            question.gold,
        )
        for at, question in enumerate(room.questions)
    ]


async def cosines_of(facts: FactSet, texts: Sequence[str], embedder: Embedder) -> Vectors:
    passages = await embedder.embed([memory.statement for memory in facts.memories], kind="passage")
    return (await embedder.embed(texts, kind="query")) @ passages.T


def share(question: Asked, gold: frozenset[str], order: Order, budget: int) -> float:
    facts = question.facts
    taken = fill(order(question, budget), facts.tokens, budget - facts.frame)
    return len(gold & {facts.memories[place].memory_id for place in taken}) / len(gold)


def show(found: Mapping[str, Shares], methods: Mapping[str, Order]) -> None:
    heads = [f"{name} {budget}" for name in (*found, "mean") for budget in BUDGETS]
    print("\nShare of gold in the block, in points, by set and budget in tokens\n")
    print(f"| | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for method in methods:
        cells = [value for shares in found.values() for value in shares[method]] + mean(found, method)
        print(f"| {method} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")


def mean(shares_by_set: Mapping[str, Shares], method: str) -> list[float]:
    means: list[float] = np.mean([shares[method] for shares in shares_by_set.values()], axis=0).tolist()
    return means


def judge(shares_by_set: Mapping[str, Shares]) -> None:
    """The lines that the figures must keep to."""
    print()
    for name, shares in shares_by_set.items():
        for rival in RIVALS:
            least = min(a - b for a, b in zip(shares["tfidf"], shares[rival], strict=True))
            say(least > 0, f"{name}: ahead of {rival} at every budget, by {least:.1f} at least")
    at_512 = {name: mean(shares_by_set, name)[BUDGETS.index(512)] for name in ("tfidf", *RIVALS)}
    for rival, points in (("confidence", 20), ("recency", 20), ("literal formula", 8)):
        ahead = at_512["tfidf"] - at_512[rival]
        say(ahead >= points, f"mean at 512 tokens: {ahead:.1f} points over {rival}, {points} wanted")
    if all("hybrid" in shares for shares in shares_by_set.values()):
        least = min(
            a - b for shares in shares_by_set.values() for a, b in zip(shares["hybrid"], shares["tfidf"], strict=True)
        )
        say(least >= -NOISE, f"hybrid behind tfidf by {max(0.0, -least):.1f} points at most")
