"""Fit what group memories without a model are made by: which messages hold, and what a later one replaces.

Writes `core/evolution/offline/nets.json`, and tells how well each net does on chats that it was not fitted on. The
chats are in `training/chats` and `bench/meaning`: `holds` names the messages that say what holds, `replaces` pairs a
later message with the one that it corrects.
"""

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench.verdicts import Case, has
from numpy.typing import NDArray

from roomlore.core.evolution.offline import holding, succession
from roomlore.core.evolution.offline.finding import Finder, Settled
from roomlore.core.evolution.offline.nets import Net
from roomlore.core.evolution.offline.reading import Line, read
from roomlore.core.models import StoredMessage

_ROOT = Path(__file__).parent.parent
_FOLDERS = (_ROOT / "training" / "chats", _ROOT / "bench" / "meaning", _ROOT / "bench" / "meaning" / "others")
_NETS = _ROOT / "src" / "roomlore" / "core" / "evolution" / "offline" / "nets.json"
_PARTS = 8
_NEWTON_STEPS, _STEPS, _RATE = 25, 400, 0.02
_HIDDEN, _NETS_JOINED, _PENALTY = 12, 3, 3.0
Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Example(NamedTuple):
    """The signs of a message, or of a pair, and True if it holds, or replaces. `case`: the chat that it is from;
    `choice`: the message and all that it may replace make one."""

    case: str
    choice: str
    signs: tuple[float, ...]
    right: bool
    text: str


class Table(NamedTuple):
    """Examples as arrays. `choices`: the number of the choice that each is a candidate of."""

    signs: Floats
    right: Floats
    choices: Places

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "Table":
        _, choices = np.unique([example.choice for example in examples], return_inverse=True)
        signs = np.array([example.signs for example in examples])
        return cls(signs, np.array([example.right for example in examples], float), choices)

    def rows(self, chosen: NDArray[np.bool_]) -> "Table":
        _, choices = np.unique(self.choices[chosen], return_inverse=True)
        return Table(self.signs[chosen], self.right[chosen], choices)


class _Walk(Finder):
    """A reading in which what is replaced is known."""

    def __init__(self, case: Case, lines: Sequence[Line], holds: Net) -> None:
        super().__init__(lines, {}, deleted=())
        self._case, self._judge = case["id"], holds
        self._pairs = {(new, old) for new, old in case["replaces"]}
        self.pairs: list[Example] = []

    def likely(self, at: int, *, answers: bool) -> float:
        if any(self._lines[at].message_id in pair for pair in self._pairs):
            return 1.0
        return 1 / (1 + math.exp(-float(self._judge.scores(self.signs_of(at, answers=answers))[0])))

    def _replaced(self, new: Settled, asked: str, *, answers: bool) -> Settled | None:
        olds = [old for old in self._settled if not (old.over or old is new)]
        replaced = None
        for old, signs in zip(olds, self.signs(olds, new, asked, answers=answers), strict=True):
            assert new.line
            assert old.line
            right = (new.line.message_id, old.line.message_id) in self._pairs
            replaced = old if right else replaced
            choice = f"{self._case} {new.line.message_id}"
            self.pairs.append(Example(self._case, choice, signs, right, f"{new.text} <= {old.text}"))
        return replaced


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*", default=_FOLDERS, help="folders of chats")
    parser.add_argument("--apart", action="store_true", help="measure on chats left out, which takes longer")
    parser.add_argument("--show", action="store_true", help="tell what is judged wrongly on chats left out")
    arguments = parser.parse_args()
    cases = list(_cases(arguments.folders))
    messages = [example for case in cases for example in _messages(case)]
    holds = _holding_net(Table.of(messages))
    pairs = [example for case in cases if "replaces" in case for example in _pairs(case, holds)]
    replaces = _succession_net(Table.of(pairs))
    if arguments.apart or arguments.show:
        _report("holding", messages, show=arguments.show)
        _report("succession", pairs, show=arguments.show)
    write({"holding": holds, "succession": replaces})


def write(nets: Mapping[str, Net]) -> None:
    """Write nets into the file, beside the others there."""
    rows = json.loads(_NETS.read_text("utf-8"))
    for name, judge in nets.items():
        rows[name] = {part: np.round(numbers, 3).tolist() for part, numbers in asdict(judge).items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(judge)}" for name, judge in rows.items())
    _NETS.write_text(f"{{\n{lines}\n}}\n", "utf-8")


def _cases(folders: Sequence[Path]) -> Iterator[Case]:
    for file in sorted(file for folder in folders for file in folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            case = json.loads(line)
            if "messages" in case and {"holds", "replaces"} & case.keys():
                yield case


def _messages(case: Case) -> Iterator[Example]:
    """Yield each message of a chat that says what holds; not those that held once, if it is not said which."""
    if "holds" not in case:
        return
    wanted = {message for hold in case["holds"] for message in hold.get("messages", ())}
    wanted |= {
        message["id"]
        for message in case["messages"]
        for hold in case["holds"]
        if "messages" not in hold and has(message["text"], hold["words"])
    }
    wanted |= {message for pair in case.get("replaces", ()) for message in pair}
    finder = Finder(lines := _lines(case), {}, deleted=())
    for at, line in enumerate(lines):
        right = line.message_id in wanted
        if right or not any(has(line.text, gone["words"]) for gone in case["outdated"]):
            signs = finder.signs_of(at, answers=finder.asked(at)[1])
            yield Example(case["id"], f"{case['id']} {line.message_id}", signs, right, line.text)


def _pairs(case: Case, holds: Net) -> Sequence[Example]:
    walk = _Walk(case, lines := _lines(case), holds)
    for at in range(len(lines)):
        walk.read(at)
    return walk.pairs


def _lines(case: Case) -> tuple[Line, ...]:
    told = [
        StoredMessage(
            id=message["id"],
            room_id=case["id"],
            sender_id=message["sender"],
            sender_name=message["sender"],
            text=message["text"],
            sent_at=datetime.fromisoformat(message["at"]),
            arrival=number,
        )
        for number, message in enumerate(case["messages"], start=1)
    ]
    zone = datetime.fromisoformat(case["messages"][0]["at"]).tzinfo
    assert zone
    return read([(f"c{message.arrival}", message, True) for message in told], zone=zone, people={})


def _report(name: str, examples: Sequence[Example], *, show: bool) -> None:
    table = Table.of(examples)
    cases = sorted({example.case for example in examples})
    np.random.default_rng(0).shuffle(cases)
    apart = np.zeros(table.right.size)
    for part in np.array_split(cases, _PARTS):
        held = np.isin([example.case for example in examples], part)
        judge = _TRAINED[name](table.rows(~held))
        apart[held] = _likely(judge.scores(table.signs[held]), table.rows(held).choices)
    least = {"holding": holding.LEAST, "succession": succession.LEAST}[name]
    print(f"{name}: {table.right.sum():.0f} of {table.right.size:,}; on chats left out:")
    for threshold in sorted({0.2, 0.3, 0.4, 0.5, 0.6, least}):
        taken = apart >= threshold
        print(
            f"from {threshold}: found {taken[table.right == 1].mean():.3f}, wrong {(taken & (table.right == 0)).sum()}"
        )
    evidence = {"holding": holding.EVIDENCE, "succession": succession.EVIDENCE}[name]
    for at in np.argsort(apart) if show else ():
        if (apart[at] >= least) != bool(table.right[at]):
            named = [f"{sign}={value:.2f}" for sign, value in zip(evidence, table.signs[at], strict=True) if value]
            print(f"{apart[at]:.2f} {examples[at].right} {examples[at].case} {examples[at].text} {named[1:]}")


def _holding_net(table: Table) -> Net:
    weights = logistic(table.signs, table.right, 1.0)
    return Net(hidden=np.zeros((0, weights.size + 1)), out=np.zeros(0), direct=weights)


def logistic(signs: Floats, right: Floats, penalty: float) -> Floats:
    """Return the weights of a logistic regression, fitted by Newton's method."""
    weights, penalties = np.zeros(signs.shape[1]), np.full(signs.shape[1], penalty)
    penalties[0] = 1e-3
    for _ in range(_NEWTON_STEPS):
        likely = 1 / (1 + np.exp(-signs @ weights))
        slope = signs.T @ (likely - right) + penalties * weights
        curve = (signs.T * (likely * (1 - likely))) @ signs + np.diag(penalties)
        weights -= np.linalg.solve(curve, slope)
    return weights


def _succession_net(table: Table) -> Net:
    """Return the mean of some nets that choose one candidate or none."""
    nets = [_chooser(table, seed) for seed in range(_NETS_JOINED)]
    return Net(
        hidden=np.vstack([each.hidden for each in nets]),
        out=np.concatenate([each.out for each in nets]) / _NETS_JOINED,
        direct=np.mean([each.direct for each in nets], axis=0),
    )


def _chooser(table: Table, seed: int) -> Net:
    rng, size = np.random.default_rng(seed), table.signs.shape[1]
    parts = [rng.normal(0, 0.3, (size, _HIDDEN)), np.zeros(_HIDDEN), rng.normal(0, 0.3, _HIDDEN), np.zeros(size)]
    parts[3][0] = -4.0
    means, squares = [np.zeros_like(part) for part in parts], [np.zeros_like(part) for part in parts]
    for step in range(1, _STEPS + 1):
        raised = np.tanh(table.signs @ parts[0] + parts[1])
        wrong = _likely(raised @ parts[2] + table.signs @ parts[3], table.choices) - table.right
        inner = np.outer(wrong, parts[2]) * (1 - raised**2)
        slopes = [
            table.signs.T @ inner + _PENALTY * parts[0],
            inner.sum(axis=0),
            raised.T @ wrong + _PENALTY * parts[2],
            table.signs.T @ wrong + _PENALTY * parts[3] * (np.arange(size) > 0),
        ]
        for at, slope in enumerate(slopes):
            means[at] = 0.9 * means[at] + 0.1 * slope
            squares[at] = 0.999 * squares[at] + 0.001 * slope**2
            scale = np.sqrt(squares[at] / (1 - 0.999**step)) + 1e-8
            parts[at] = parts[at] - _RATE * means[at] / (1 - 0.9**step) / scale
    hidden = np.vstack([parts[0], parts[1]]).T
    return Net(hidden=hidden, out=parts[2], direct=parts[3])


def _likely(scores: Floats, choices: Places) -> Floats:
    """Return how likely each candidate is among its rivals and none."""
    most = np.zeros(choices.max() + 1)
    np.maximum.at(most, choices, scores)
    raised = np.exp(scores - most[choices])
    likely: Floats = raised / (np.bincount(choices, raised, most.size) + np.exp(-most))[choices]
    return likely


_TRAINED = {"holding": _holding_net, "succession": _succession_net}


if __name__ == "__main__":
    main()
