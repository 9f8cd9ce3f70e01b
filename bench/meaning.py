"""Measure how often roomlore is right about meaning, with embeddings and without: right, partly or wrong.

The cases lie in `bench/meaning` and are played through the services: facts are recalled and statements searched in a
store, summaries are made of the chats.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import roomlore
from bench.kept_vectors import KeptEmbedder
from bench.meaning_evolution import CLOCK, evolution, notes, offline_weeks
from bench.meaning_extraction import extraction
from bench.verdicts import Case, Judge, Judged, Verdict, has
from roomlore.adapters.embedding import open_offline
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core import summary
from roomlore.core.errors import BadModelOutput
from roomlore.core.memory.writing import NewMemory
from roomlore.core.summary.sentences import SpeakerText
from roomlore.core.text import sentences
from roomlore.ports.language import Embedder

CASES = Path(__file__).parent / "meaning"
SUMMARY_TOKENS = 512


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=Path, default=CASES, help="a folder of cases; by default those of the project")
    parser.add_argument("--only", nargs="+", choices=sorted(JUDGES), help="functions; all of the folder by default")
    parser.add_argument("--embeddings", type=Path, help="a folder that keeps vectors between runs")
    parser.add_argument("--words", action="store_true", help="without embeddings only")
    parser.add_argument("--show", action="store_true", help="tell every case that is not right")


async def run(arguments: argparse.Namespace) -> None:
    cases: Path = arguments.cases
    names = arguments.only or [name for name in sorted(JUDGES) if (cases / f"{name}.jsonl").exists()]
    verdicts: dict[tuple[str, str], Counter[Verdict]] = defaultdict(Counter)
    for means in ("words alone",) if arguments.words else ("words alone", "embeddings"):
        async with opened(arguments.embeddings if means == "embeddings" else None, means == "embeddings") as lore:
            for name in names if means == "words alone" else sorted({*names} - _WITHOUT_MEANING):
                await _play(lore, cases / f"{name}.jsonl", means, verdicts, show=arguments.show)
    print("| function | cases | right | partly | wrong |\n|---|---|---|---|---|")
    for (name, means), counts in verdicts.items():
        cells = " | ".join(str(counts[verdict]) for verdict in ("right", "partly", "wrong"))
        print(f"| {name}, {means} | {counts.total()} | {cells} |")


@asynccontextmanager
async def opened(kept: Path | None = None, embedded: bool = False) -> AsyncIterator[roomlore.Lore]:
    """Open a store in memory whose clock stands at the case that is played."""
    embedder: Embedder | None = open_offline() if embedded else None
    if embedder and kept:
        embedder = KeptEmbedder(embedder, kept)
    with patch("roomlore.wiring.resources.SystemClock", lambda: CLOCK):
        async with roomlore.open("sqlite://", embedder=embedder, background=False) as lore:
            yield lore


def _cases(file: Path) -> list[Case]:
    return list(map(json.loads, file.read_text(encoding="utf-8").splitlines()))


async def _play(
    lore: roomlore.Lore, file: Path, means: str, verdicts: dict[tuple[str, str], Counter[Verdict]], *, show: bool
) -> None:
    for case in _cases(file):
        CLOCK.at = None
        for judged in await JUDGES[file.stem](lore, case):
            verdicts[f"{file.stem}: {judged.group}", means][judged.verdict] += 1
            if show and judged.verdict != "right":
                print(f"{case['id']} ({means}) {judged.verdict}: {judged.why}")


async def recall(lore: roomlore.Lore, case: Case) -> list[Judged]:
    """Judge a block: every fact of `must` is in it, and none of `must_not_first` comes first."""
    scope = f"user:{case['id']}"
    texts = {fact["id"]: fact["text"] for fact in case["facts"]}
    await lore.memories.add_all(
        [NewMemory(scope=scope, statement=fact["text"], category=fact.get("category", "")) for fact in case["facts"]]
    )
    conversation = [{"role": message["role"], "content": message["text"]} for message in case["conversation"]]
    recollection = await lore.recall.build([scope], conversation, max_tokens=case["max_tokens"])
    shown = [fact.memory.statement for fact in recollection.facts]
    missing = [texts[fact] for fact in case["must"] if texts[fact] not in shown]
    first = [texts[fact] for fact in case["must_not_first"] if shown[:1] == [texts[fact]]]
    return _verdict(case["kind"], len(case["must"]) + len(case["must_not_first"]), [*missing, *first])


async def search(lore: roomlore.Lore, case: Case) -> list[Judged]:
    """Judge what is found above the default threshold; it is partly right if the answer is not the first."""
    group = f"group:{case['id']}"
    await lore.memories.add_all([NewMemory(scope=group, statement=text) for text in case["memories"]])
    await lore.index.catch_up()
    statements = [hit.memory.statement for hit in (await lore.memories.search(group, case["question"])).hits]
    across = case["language"][:2] != case["memories_language"][:2]
    place = "across" if across else case["language"][:2]
    if case["answer"] is None:
        return [
            Judged(f"no answer, {place}", "wrong" if statements else "right", f"{case['question']} -> {statements}")
        ]
    answer = case["memories"][case["answer"]]
    verdict: Verdict = "right" if statements[:1] == [answer] else "partly" if answer in statements else "wrong"
    return [Judged(f"an answer, {place}", verdict, f"{case['question']} -> {statements}, not {answer}")]


async def summaries(lore: roomlore.Lore, case: Case) -> list[Judged]:
    """Judge the stored summary of a chat, by a model if the case has its answer."""
    speaker_texts = [SpeakerText(message["sender"], message["text"]) for message in case["messages"]]
    count = EncodingTokens().count
    text = summary.extract("", speaker_texts, max_tokens=SUMMARY_TOKENS, count=count)
    if "model_summary" in case:
        with suppress(BadModelOutput):
            answer = summary.accepted(case["model_summary"], max_tokens=SUMMARY_TOKENS, count=count)
            text = summary.completed(answer, "", speaker_texts, max_tokens=SUMMARY_TOKENS, count=count)
    missing = [f"lacks {entry['words']}" for entry in case["must"] if not has(text, entry["words"])]
    lines = [line for part in text.splitlines() for line in (part, *sentences(part))]
    broken = [f"has {entry['words']}" for entry in case["must_not"] if any(has(line, entry["words"]) for line in lines)]
    kind = "by a model" if "model_summary" in case else case.get("kind", "extractive")
    return _verdict(kind, len(case["must"]) + len(case["must_not"]), [*missing, *broken])


def _verdict(group: str, parts: int, wrong: Sequence[str]) -> list[Judged]:
    verdict: Verdict = "right" if not wrong else "wrong" if len(wrong) == parts else "partly"
    return [Judged(group, verdict, "; ".join(wrong))]


JUDGES: dict[str, Judge] = {
    "evolution": evolution,
    "extraction": extraction,
    "fortnights": offline_weeks,
    "notes": notes,
    "offline_weeks": offline_weeks,
    "offline_weeks_apart": offline_weeks,
    "recall": recall,
    "search": search,
    "summaries": summaries,
}
_WITHOUT_MEANING = frozenset(
    ("evolution", "extraction", "fortnights", "notes", "offline_weeks", "offline_weeks_apart", "summaries")
)
"""They use no embeddings."""
