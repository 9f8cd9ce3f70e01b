"""Fits the two models of `roomlore.core.far` and tells how they do on each set that was left out of the fit.

usage: python -m training.train_far DATA_DIR [--embeddings DIR]

DATA_DIR holds the folders that `ASKED` and `THREADS` name. Prints the weights as they stand in
`roomlore/core/far_weights.py`. Takes some ten minutes where the vectors are kept in `--embeddings`.
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from bench.predict_asked import SharedEmbedder
from bench.predict_retrieval import offline

from roomlore.core.analysis import Participants, analyse
from roomlore.core.far import EVIDENCE, MIN_NEED, NEED, Past, signs
from roomlore.core.models import Entry, Link, LinkKind, Room, StoredMessage, Target
from training.far_questions import NEEDED, NOTHING, PEOPLE, TALKS
from training.far_rooms import Seen, asked, threads

Floats: TypeAlias = npt.NDArray[np.float64]
Sets: TypeAlias = Mapping[str, Sequence[Seen]]

ASKED = {
    "madial_zh": ("retrieval/madial_zh", "", 20),
    "memorybank_cn": ("retrieval/memorybank_cn", "", 20),
    "realtalk": ("retrieval/realtalk", "", 20),
    "locomo": ("retrieval/locomo", "_clean", 20),
    "gatemem": ("asked/gatemem", "", 10),
}
"""Folder, suffix of its questions, and how many messages are shown."""
THREADS = ("bot_en", "bot_zh", "team_en", "team_zh", "gitter", "slack_annot", "irc_dev")
PAUSE, STARTED = NEED.index("pause"), NEED.index("started")
LONGEST = 4_000
"""Minutes of the longest pause that is made up."""
RIDGE = 2.0
STEPS = 60


def logistic(columns: Floats, labels: Floats, weights: Floats) -> Floats:
    """The weights of a logistic regression with a ridge, its constant last, by Newton's method."""
    table = np.column_stack([columns, np.ones(len(columns))])
    ridge = np.full(table.shape[1], RIDGE)
    ridge[-1] = 1e-6
    found = np.zeros(table.shape[1])
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-table @ found))
        slope = table.T @ (weights * (chances - labels)) + ridge * found
        curve = (table * (weights * chances * (1 - chances))[:, None]).T @ table + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-8:
            break
    return found


def chances(model: Floats, columns: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-np.column_stack([columns, np.ones(len(columns))]) @ model))
    return found


def at_pauses(columns: Floats, least: float, rng: np.random.Generator) -> Floats:
    """The same messages after other pauses, of `least` minutes up to days: what is asked tells, not when."""
    made = columns.copy()
    minutes = np.exp(rng.uniform(np.log(least), np.log(LONGEST), len(made)))
    made[:, PAUSE] = np.sqrt(np.minimum(minutes, 1_440) / 1_440)
    made[:, STARTED] = rng.uniform(0.3, 1.0, len(made))
    return made


def own_questions() -> tuple[Floats, Floats]:
    """Signs and labels of our own questions, each put to everybody and to a bot."""
    found, labels = [], []
    people = {name.lower(): name for name in PEOPLE}
    for texts, needed in ((NEEDED.splitlines(), 1.0), (TALKS, 1.0), (NOTHING.splitlines(), 0.0)):
        for text in filter(None, texts):
            for address, more in (("", {}), ("@Nova ", {"nova": "Nova"})):
                found.append(signs(_target(address + text, Participants.of(people | more))))
                labels.append(needed)
    return np.array(found), np.array(labels)


def _target(text: str, people: Participants) -> Target:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    message = StoredMessage(id="asked", room_id="room", sender_id="asker", sent_at=at, text=text, arrival=100)
    entry = Entry(message=message, features=analyse(message, people), link=Link(kind=LinkKind.NEW, thread=100))
    room = Room(tenant="", room_id="room", created_at=at)
    return Target(room=room, entry=entry, window_messages=20, window_tokens=400, previous_at=at)


def fit_need(sets: Sets) -> Floats:
    """From whole sets: those of `ASKED` need something far, those of `THREADS` nothing."""
    rng = np.random.default_rng(0)
    parts: list[tuple[Floats, Floats, float]] = []
    for name, seen in sets.items():
        columns = np.array([one.signs for one in seen])
        if name in ASKED:
            label = np.ones(len(columns))
            parts += [(columns, label, 100), (at_pauses(columns, 1, rng), label, 150)]
        else:
            begun = columns[[one.starts for one in seen]]
            parts.append((columns, np.zeros(len(columns)), 1_000))
            parts += [(made, np.zeros(len(made)), 75) for made in (begun, at_pauses(begun, 20, rng))]
    columns, labels = own_questions()
    parts += [(at_pauses(columns, 0.5, rng), labels, 100) for _ in range(3)]
    return logistic(
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([np.full(len(part[0]), part[2] / len(part[0])) for part in parts]),
    )


def fit_evidence(sets: Sets) -> Floats:
    """From the candidates of the questions of `ASKED`."""
    parts = [table(seen) for name, seen in sets.items() if name in ASKED]
    return logistic(
        np.concatenate([columns for columns, _ in parts]),
        np.concatenate([labels for _, labels in parts]),
        np.concatenate([np.full(len(labels), 20_000 / len(labels)) for _, labels in parts]),
    )


def table(seen: Sequence[Seen]) -> tuple[Floats, Floats]:
    """A row a candidate, and whether it is wanted. Of several that hold the same part the newest is."""
    rows, labels = [], []
    for one in seen:
        newest = {part: arrival for arrival in sorted(one.wanted) for part in one.wanted[arrival]}
        wanted = set(newest.values())
        for arrival, values in one.candidates.items():
            rows.append(values)
            labels.append(float(arrival in wanted))
    return np.array(rows), np.array(labels)


def found_by(need: Floats, evidence: Floats, seen: Sequence[Seen], most: int) -> tuple[float, float]:
    """The share of what is wanted that is shown, and how many messages are."""
    found, sizes = [], []
    needed = chances(need, np.array([one.signs for one in seen]))
    for one, sure in zip(seen, needed.tolist(), strict=True):
        arrivals = list(one.candidates)
        columns = np.array(list(one.candidates.values()))
        mixed = sure * chances(evidence, columns) + (1 - sure) * columns[:, EVIDENCE.index("mate")]
        past = Past(sure, dict(zip(arrivals, mixed.tolist(), strict=True)))
        shown = past.choose(most) if sure >= MIN_NEED else {}
        parts = set().union(*(one.wanted.get(arrival, ()) for arrival in shown))
        found.append(len(parts) / one.parts)
        sizes.append(len(shown))
    return float(np.mean(found)), float(np.mean(sizes))


def report(sets: Sets, by_words: Sets) -> None:
    """Each set by models that were fitted without it."""
    for name, seen in sets.items():
        rest = {other: those for other, those in sets.items() if other != name}
        need = fit_need(rest)
        needed = chances(need, np.array([one.signs for one in seen]))
        line = f"{name}: searched for {np.mean(needed >= MIN_NEED):.1%}, sure {np.mean(needed >= 0.5):.1%}"
        if name in ASKED:
            evidence = fit_evidence(rest)
            for mode, those in (("hybrid", seen), ("lexical", by_words[name])):
                found, size = found_by(need, evidence, those, ASKED[name][2])
                line += f"; {mode}: found {found:.1%}, size {size:.1f}"
        else:
            begun = needed[[one.starts for one in seen]]
            line += f"; of starters {np.mean(begun >= MIN_NEED):.1%}, {np.mean(begun >= 0.5):.1%}"
        print(line, flush=True)


async def collect(data: Path, embeddings: Path | None) -> tuple[Sets, Sets]:
    """All sets, and those of `ASKED` once more by words alone."""
    embedder = SharedEmbedder(offline(embeddings))
    sets: dict[str, Sequence[Seen]] = {}
    by_words: dict[str, Sequence[Seen]] = {}
    for name, (folder, suffix, _) in ASKED.items():
        sets[name] = await asked(data / folder, suffix, embedder)
        by_words[name] = await asked(data / folder, suffix, None)
    await embedder.shared.close()
    for name in THREADS:
        sets[name] = await threads(rooms_of(data / "threads" / name))
    return sets, by_words


def rooms_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.messages.jsonl"))


def show(sets: Sets) -> None:
    for title, names, model in (("NEED", NEED, fit_need(sets)), ("EVIDENCE", EVIDENCE, fit_evidence(sets))):
        print(f"{title}_WEIGHTS = (")
        for name, weight in zip((*names, "constant"), model.tolist(), strict=True):
            print(f"    {weight:.2f},  # {name}")
        print(")")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embeddings", type=Path, help="a folder that keeps vectors between runs")
    arguments = parser.parse_args()
    sets, by_words = asyncio.run(collect(arguments.data, arguments.embeddings))
    report(sets, by_words)
    show(sets)


if __name__ == "__main__":
    main()
