"""Measures digests on labelled rooms: conversations shown, purity, open questions, titles and time.

`python -m bench digest THREADS_DIR` reads the rooms of each set (`*.messages.jsonl` with `*.gold.jsonl`). A digest is
made of each UTC day with three or more conversations of three or more messages; of a room that is labelled in part, of
the labelled part. A conversation counts as shown if a message of it is cited.
"""

import argparse
import json
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import roomlore
from bench.digest_baselines import BASELINES
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.digest.compose import DigestDraft
from roomlore.core.digest.digest import Digest
from roomlore.core.digest.points import is_asking
from roomlore.core.digest.talks import WordRarity, talks_of, title_of
from roomlore.core.models import Entry, Role
from roomlore.core.records import Bad
from roomlore.core.text import words
from roomlore_importers import open_import

_SUFFIX = ".messages.jsonl"
_SETS = ("irc_dev", "gitter", "slack_annot", "team_en", "team_zh")
_BUDGETS = (800, 400)
_MIN, _FEWEST = 3, 3
_AMONG = 20
_GROUPS = 10
_TENANT = "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("threads_dir", type=Path, help="a folder of sets, each with rooms and their labels")
    parser.add_argument("--sets", nargs="+", default=list(_SETS))
    parser.add_argument("--unread", type=int, default=10_000, help="messages of the timed digest")


@dataclass(frozen=True, slots=True)
class Day:
    """The messages of a digest with the gold conversation of each labelled one, by arrival."""

    entries: Sequence[Entry]
    gold: Mapping[int, str]

    @property
    def wanted(self) -> set[str]:
        sizes = Counter(self.gold[e.message.arrival] for e in self.entries if e.message.arrival in self.gold)
        return {name for name, size in sizes.items() if size >= _MIN}

    @property
    def asked(self) -> dict[int, bool]:
        """The arrivals of labelled questions; True if nobody else says something later in the conversation."""
        by_name: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries:
            if entry.message.arrival in self.gold:
                by_name[self.gold[entry.message.arrival]].append(entry)
        return {
            entry.message.arrival: all(later.message.sender_id == entry.message.sender_id for later in members[at:])
            for members in by_name.values()
            for at, entry in enumerate(members)
            if is_asking(entry)
        }


async def run(arguments: argparse.Namespace) -> None:
    tokens = EncodingTokens()
    for name in arguments.sets:
        rooms = [await read_room(path) for path in sorted((arguments.threads_dir / name).glob("*" + _SUFFIX))]
        days = [day for entries, gold in rooms for day in days_of(entries, gold)]
        print(
            f"\n{name}: {len(rooms)} rooms, {len(days)} digests, {sum(len(day.wanted) for day in days)} conversations"
        )
        for budget in _BUDGETS:
            print(f"  {budget} tokens: {_coverage(days, budget, tokens)}")
        print(f"  open questions: {_questions(days)}")
        print(f"  titles: {_titles([entries for entries, _ in rooms])}", flush=True)
    await _timed(arguments)


async def read_room(path: Path) -> tuple[list[Entry], dict[int, str]]:
    """Return the entries of a room, and the gold conversation of its labelled messages by arrival."""
    with path.with_name(path.name.replace(_SUFFIX, ".gold.jsonl")).open(encoding="utf-8") as lines:
        labelled = {row["id"]: row["conv"] for row in map(json.loads, lines) if row["annotated"] and row["conv"]}
    with open_import(path, "jsonl") as export:
        messages = [item.message for item in export if not isinstance(item, Bad)]
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(messages)
        async with lore.storage.reading(_TENANT) as work:
            entries = await work.messages.tail(room_id=messages[0].room_id, limit=len(messages))
    said = [entry for entry in entries if entry.message.role is not Role.SYSTEM]
    return entries, {e.message.arrival: labelled[e.message.id] for e in said if e.message.id in labelled}


def days_of(entries: Sequence[Entry], gold: Mapping[int, str]) -> Iterator[Day]:
    count_spoken = sum(entry.message.role is not Role.SYSTEM for entry in entries)
    if 2 * len(gold) < count_spoken:
        part = [entry for entry in entries if min(gold) <= entry.message.arrival <= max(gold)]
        yield Day(part, gold)
        return
    by_day: defaultdict[object, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_day[entry.message.at.date()].append(entry)
    days = [Day(part, gold) for _, part in sorted(by_day.items(), key=lambda pair: str(pair[0]))]
    yield from (day for day in days if len(day.wanted) >= _FEWEST)


def _coverage(days: Sequence[Day], budget: int, tokens: EncodingTokens) -> str:
    """Return the share of conversations shown, and how pure entries are, beside the baselines."""
    shown = wanted = 0
    pure, pure_of_several = [], []
    others = dict.fromkeys(BASELINES, 0)
    for day in days:
        digest = DigestDraft("room", day.entries, max_tokens=budget, count=tokens.count).finished({})
        assert digest.tokens <= budget, digest.tokens
        arrivals = {entry.message.id: entry.message.arrival for entry in day.entries}
        cited = {day.gold.get(arrivals[i]) for entry in digest.entries for line in entry.lines for i in line.cited}
        wanted += len(day.wanted)
        shown += len(day.wanted & cited)
        for share, several in _purities(digest, arrivals, day.gold):
            pure.append(share)
            pure_of_several += [share] * several
        for name, baseline in BASELINES.items():
            picked = baseline(day.entries, budget, tokens.count)
            others[name] += len(day.wanted & {day.gold.get(entry.message.arrival) for entry in picked})
    beside = ", ".join(f"{name} {share / wanted:.1%}" for name, share in others.items())
    of_several = f"{_mean(pure_of_several):.1%} of {len(pure_of_several)} that cite several"
    return f"shown {shown / wanted:.1%} ({beside}); purity {_mean(pure):.1%} of {len(pure)} entries, {of_several}"


def _purities(digest: Digest, arrivals: Mapping[str, int], gold: Mapping[int, str]) -> Iterator[tuple[float, bool]]:
    """Yield for each entry the share of its labelled cited messages in one conversation, and if there are several."""
    for entry in digest.entries:
        names = [gold.get(arrivals[i]) for line in entry.lines for i in line.cited]
        counts = Counter(name for name in names if name is not None)
        if counts:
            yield max(counts.values()) / counts.total(), counts.total() > 1


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _questions(days: Sequence[Day]) -> str:
    """Return how well questions that nobody answers later in their gold conversation are found."""
    picked: set[tuple[int, int]] = set()
    truth: set[tuple[int, int]] = set()
    count_asked = 0
    for number, day in enumerate(days):
        asked = day.asked
        count_asked += len(asked)
        truth.update((number, arrival) for arrival, is_open in asked.items() if is_open)
        for talk in talks_of(day.entries):
            its = [entry.message.arrival for entry in talk.open_questions]
            picked.update((number, arrival) for arrival in its if arrival in day.gold)
    hits = len(picked & truth)
    precision, recall = hits / max(len(picked), 1), hits / max(len(truth), 1)
    return f"precision {precision:.2f}, recall {recall:.2f} ({len(truth)} open of {count_asked}, {len(picked)} found)"


def _titles(rooms: Sequence[Sequence[Entry]]) -> str:
    """Return how often a title finds its talk among 20 of the room, with all its messages and without that with the
    title's sentence."""
    whole = rest = tried = 0
    for number, entries in enumerate(rooms):
        talks = [talk for talk in talks_of(entries) if len(talk.entries) >= _MIN]
        known = WordRarity.among(talks)
        random.Random(number).shuffle(talks)
        for at in range(0, min(len(talks), _AMONG * _GROUPS) - _AMONG + 1, _AMONG):
            group = talks[at : at + _AMONG]
            texts = [[words(entry.message.text) for entry in talk.entries] for talk in group]
            for place, talk in enumerate(group):
                title = title_of(talk, known)
                title_words = words(title)
                tried += 1
                docs = [[word for text in text for word in text] for text in texts]
                whole += _finds(title_words, docs, place)
                source = max(texts[place], key=lambda text: len(set(text) & set(title_words)))
                docs[place] = [word for text in texts[place] if text is not source for word in text]
                rest += _finds(title_words, docs, place)
    return f"{whole / max(tried, 1):.1%} of {tried} found first, {rest / max(tried, 1):.1%} without their own message"


def _finds(title_words: Sequence[str], docs: Sequence[Sequence[str]], place: int) -> bool:
    """Return True if BM25 puts this document alone first."""
    counts = [Counter(doc) for doc in docs]
    having = Counter(word for count in counts for word in count)
    usual = sum(map(len, docs)) / len(docs) or 1.0
    scores = []
    for doc, count in zip(docs, counts, strict=True):
        size = 1.2 * (0.25 + 0.75 * len(doc) / usual)
        parts = [
            math.log1p((len(docs) - having[word] + 0.5) / (having[word] + 0.5))
            * count[word]
            * 2.2
            / (count[word] + size)
            for word in set(title_words)
        ]
        scores.append(sum(parts))
    best = max(scores)
    return best > 0 and scores[place] == best and scores.count(best) == 1


async def _timed(arguments: argparse.Namespace) -> None:
    """Time a digest of many unread messages, made of the rooms of the first set."""
    messages: list[roomlore.Message] = []
    paths = [p for name in arguments.sets for p in sorted((arguments.threads_dir / name).glob("*" + _SUFFIX))]
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for path in paths:
        with open_import(path, "jsonl") as export:
            for item in export:
                if not isinstance(item, Bad) and len(messages) < arguments.unread:
                    message, at = item.message, begin + timedelta(seconds=20 * len(messages))
                    new = replace(
                        message, id=f"n{len(messages)}", room_id="timed", sent_at=at, reply_to=None, root_id=None
                    )
                    messages.append(new)
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(messages)
        seconds, processor = [], []
        for _ in range(5):
            began, used = time.perf_counter(), time.process_time()
            made = await lore.digest("timed", since=begin, max_tokens=800)
            seconds.append(time.perf_counter() - began)
            processor.append(time.process_time() - used)
    median, most = sorted(seconds)[2], max(seconds)
    print(
        f"\n{made.messages:,} unread: median {median:.2f} s, most {most:.2f} s, of a processor {min(processor):.2f} s"
    )
