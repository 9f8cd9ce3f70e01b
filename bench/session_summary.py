"""Measure what a summary keeps of a long conversation: the extractive summary beside plain ones, on the same rounds.

Each room of the folders given is played in order as one conversation with a model's window. When the budget of the
summary and what was said since fill three quarters of the window, everything but the last turns goes into the
summary, as the session service does it. At the end each question whose gold messages lie before the window is asked
what of them is still there. See docs/explanation/summaries.md for the measures and why they are these.
"""

import argparse
import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from bench.summary_baselines import BASELINES, Maker, lines_of
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.summary import extract
from roomlore.core.summary.sentences import SpeakerText
from roomlore.core.text import sentences, words

THRESHOLD = 0.75
LAST = 16
MIN_WORDS = 3
TIMED = 12_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", type=Path, nargs="+", help="folders with messages.jsonl, queries and gold")
    parser.add_argument("--suffix", default="", help="which gold, such as _clean, where a folder has it")
    parser.add_argument("--budget", type=int, nargs="+", default=[512], help="tokens of the summary")
    parser.add_argument("--window", type=int, nargs="+", default=[2_000, 4_000, 16_000], help="tokens of the window")
    parser.add_argument("--only", nargs="+", help="names of the makers to run")


class Spoken(NamedTuple):
    id: str
    said: SpeakerText
    tokens: int


@dataclass(slots=True)
class Tally:
    """Of one maker of summaries on one set."""

    information: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)
    early: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    rounds: int = 0


class Question(NamedTuple):
    words: frozenset[str]
    gold: frozenset[str]


class Room:
    """The messages of one room with what each holds: its words and its sentences' words, weighted by rarity."""

    def __init__(self, spoken: Sequence[Spoken], questions: Sequence[Question]) -> None:
        self.spoken = spoken
        self.questions = questions
        self._words = {spoken_line.id: frozenset(words(spoken_line.said.text)) for spoken_line in spoken}
        self._texts = {spoken_line.id: spoken_line.said.text for spoken_line in spoken}
        counts = Counter(word for held in self._words.values() for word in held)
        self.rarity = {word: math.log1p((len(spoken) - n + 0.5) / (n + 0.5)) for word, n in counts.items()}

    def weight(self, held: Iterable[str]) -> float:
        return sum(self.rarity.get(word, 0.0) for word in held)

    def ask(self, tally: Tally, summary: str, covered: Sequence[Spoken], window: Sequence[Spoken]) -> None:
        """Adds what the summary of the messages `covered` and the window still tell about each question."""
        before = {spoken_line.id for spoken_line in covered}
        early = {spoken_line.id for spoken_line in covered[: len(covered) // 3]}
        kept = [frozenset(words(sentence)) for sentence in summary_sentences(summary)]
        there = frozenset().union(*kept, *(self._words[spoken_line.id] for spoken_line in window))
        for question in self.questions:
            gold = [held for id_ in question.gold & before if len(held := self._words[id_]) >= MIN_WORDS]
            if gold:
                whole = sum(map(self.weight, gold))
                tally.information.append(sum(self.weight(held & there) for held in gold) / whole)
                tally.held.append(float(any(self._stands(held, kept) for held in gold)))
                nearest = [self._nearest(id_, question) for id_ in question.gold & before]
                tally.evidence.append(float(any(self._stands(held, kept) for held in nearest if held)))
                if question.gold & before <= early:
                    tally.early.append(tally.evidence[-1])

    def _stands(self, held: frozenset[str], kept: Sequence[frozenset[str]]) -> bool:
        return any(self.weight(held & kept_words) >= self.weight(held) / 2 for kept_words in kept)

    def _nearest(self, id_: str, question: Question) -> frozenset[str]:
        """The words of that sentence of a gold message that shares most with the question."""
        held = [
            sentence_words
            for text in sentences(self._texts[id_])
            if len(sentence_words := frozenset(words(text))) >= MIN_WORDS
        ]
        return max(held, key=lambda one: (self.weight(one & question.words), self.weight(one)), default=frozenset())


def summary_sentences(summary: str) -> list[str]:
    return [sentence for _, text in lines_of(summary) for sentence in sentences(text)]


def rooms_of(folder: Path, suffix: str, count: Callable[[Sequence[str]], list[int]]) -> list[Room]:
    suffix = suffix if (folder / f"gold{suffix}.jsonl").exists() else ""
    spoken: dict[str, list[Spoken]] = defaultdict(list)
    rows = read(folder / "messages.jsonl")
    sizes = count([f"{row['sender_id']}: {row['text']}" for row in rows])
    for row, tokens in zip(rows, sizes, strict=True):
        spoken[row["room_id"]].append(Spoken(row["id"], SpeakerText(row["sender_id"], row["text"]), tokens))
    gold = {row["qid"]: frozenset(row["gold"]) for row in read(folder / f"gold{suffix}.jsonl")}
    questions_by_room: dict[str, list[Question]] = defaultdict(list)
    for row in read(folder / f"queries{suffix}.jsonl"):
        questions_by_room[row["room_id"]].append(Question(frozenset(words(row["query"])), gold[row["qid"]]))
    return [Room(spoken_lines, questions_by_room[room]) for room, spoken_lines in spoken.items()]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def play(room: Room, make: Maker, tally: Tally, *, window: int, budget: int) -> None:
    """One conversation. The rounds depend on the budget, not on what a maker used of it, so all makers share them."""
    summary, since, before = "", list[Spoken](), list[Spoken]()
    for spoken_line in room.spoken:
        since.append(spoken_line)
        if budget + sum(other.tokens for other in since) < THRESHOLD * window:
            continue
        cut = len(since) - last_turns(since, window)
        if cut:
            summary = make(summary, [each.said for each in since[:cut]], [each.said for each in before], budget)
            before += since[:cut]
            del since[:cut]
            tally.rounds += 1
    if before:
        tally.tokens += EncodingTokens().count([summary])
        room.ask(tally, summary, before, since)


def last_turns(since: Sequence[Spoken], window: int) -> int:
    """Return how many messages stay: eight turns, or fewer if they fill more than a quarter of the window."""
    stay = total = 0
    while stay < min(LAST, len(since)) and (total := total + since[-1 - stay].tokens) <= window / 4:
        stay += 1
    return stay


def extracted(previous: str, texts: Sequence[SpeakerText], before: Sequence[SpeakerText], budget: int) -> str:
    return extract(previous, texts, max_tokens=budget, count=EncodingTokens().count)


MAKERS: dict[str, Maker] = {"extract": extracted, **BASELINES}


def milliseconds(rooms: Sequence[Room], budget: int) -> float:
    """Median processor time of a summary of 12,000 tokens of new turns upon an earlier summary."""
    took, summary, texts, tokens = list[float](), "", list[SpeakerText](), 0
    for spoken_line in (one for room in rooms for one in room.spoken):
        texts.append(spoken_line.said)
        tokens += spoken_line.tokens
        if tokens >= TIMED and len(took) < 10:
            started = time.process_time()
            summary = extracted(summary, texts, (), budget)
            took.append(1_000 * (time.process_time() - started))
            texts, tokens = [], 0
    return median(took) if took else math.nan


async def run(arguments: argparse.Namespace) -> None:
    makers = {name: make for name, make in MAKERS.items() if not arguments.only or name in arguments.only}
    for budget in arguments.budget:
        for window in arguments.window:
            print(f"\nsummary {budget} tokens, window {window:,} tokens\n")
            print("| set | questions, rounds | maker | information | held | evidence | early | tokens |")
            print("|---|---|---|---|---|---|---|---|")
            for folder in arguments.sets:
                compare(rooms_of(folder, arguments.suffix, EncodingTokens().count), folder.name, makers, window, budget)
    for folder in arguments.sets:
        took = milliseconds(rooms_of(folder, arguments.suffix, EncodingTokens().count), arguments.budget[0])
        print(f"{folder.name}: {took:.0f} ms for {TIMED:,} tokens")


def compare(rooms: Sequence[Room], name: str, makers: dict[str, Maker], window: int, budget: int) -> None:
    for maker, make in makers.items():
        tally = Tally()
        for room in rooms:
            play(room, make, tally, window=window, budget=budget)
        if tally.information:
            shares = [
                fmean(each) for each in (tally.information, tally.held, tally.evidence, tally.early or [math.nan])
            ]
            shown = " | ".join(f"{100 * share:.1f}" for share in shares)
            size = f"{len(tally.information)}, {tally.rounds}"
            print(f"| {name} | {size} | {maker} | {shown} | {fmean(tally.tokens):.0f} |", flush=True)
