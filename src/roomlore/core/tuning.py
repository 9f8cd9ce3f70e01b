"""Labels for tuning, given by people: the earlier messages that matter for a message."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Entry, Signals
from roomlore.core.relevance import Weights, as_row


@dataclass(frozen=True, slots=True)
class RoomLabels:
    """The labels of one room: message id to the ids that matter for it, and message id to the name of its thread."""

    relevant: Mapping[str, frozenset[str]]
    thread: Mapping[str, str]

    def wanted(self, target: Entry, pool: Sequence[Entry]) -> frozenset[str] | None:
        """Return the ids that matter for the target; None if it has no label."""
        message_id = target.message.id
        if message_id in self.relevant:
            return self.relevant[message_id]
        if message_id not in self.thread:
            return None
        mine = self.thread[message_id]
        return frozenset(entry.message.id for entry in pool if self.thread.get(entry.message.id) == mine)

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys((*self.relevant, *self.thread)))


def read_labels(rows: Iterable[Mapping[str, Any]]) -> dict[str, RoomLabels]:
    """Return labels by room, from rows of two kinds.

    `{"room_id", "message_id", "relevant": [ids]}` lists the messages that matter for one message, `{"room_id",
    "message_id", "thread": name}` names the thread of a message. Raises `InvalidInput` naming the row.
    """
    relevant: dict[str, dict[str, frozenset[str]]] = {}
    thread: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, 1):
        room_id, message_id = row.get("room_id"), row.get("message_id")
        if not isinstance(room_id, str) or not isinstance(message_id, str):
            raise InvalidInput("label_ids_missing", number=number)
        if isinstance(row.get("relevant"), list):
            relevant.setdefault(room_id, {})[message_id] = frozenset(map(str, row["relevant"]))
        elif row.get("thread") is not None:
            thread.setdefault(room_id, {})[message_id] = str(row["thread"])
        else:
            raise InvalidInput("label_incomplete", number=number)
    return {room: RoomLabels(relevant.get(room, {}), thread.get(room, {})) for room in {**relevant, **thread}}


Floats: TypeAlias = npt.NDArray[np.float64]

STEPS = 400
STILL = 1e-5
RIDGE = 1e-3
THRESHOLDS = tuple(step / 100 for step in range(5, 96))


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The candidates of one target: their signals, and the relevance of each, in [0, 1] (0 or 1 if threads are known);
    0.5 and more count as relevant in the quality.

    `missing`: relevant messages that were not candidates; they count against recall.
    """

    signals: tuple[Signals, ...]
    relevant: tuple[float, ...]
    missing: int = 0

    def __post_init__(self) -> None:
        if len(self.signals) != len(self.relevant):
            raise InvalidInput("tuning_labels_incomplete")
        if not all(0 <= label <= 1 for label in self.relevant) or self.missing < 0:
            raise InvalidInput("tuning_labels_invalid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The quality of chosen contexts.

    `precision`, `recall`, `f1`: means in [0, 1] over the targets with relevant messages. `selected`: mean number
    chosen; `starters`: the same over targets without relevant messages (0 is best). `worth`: the objective of tuning,
    the mean over all targets of F1, or 1 / (1 + number chosen) if nothing is relevant.
    """

    precision: float
    recall: float
    f1: float
    selected: float
    starters: float
    worth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningReport:
    """The result of tuning: the weights (with sum 1) and threshold to use, and their quality.

    `before`, `after`: on targets the weights were not fitted on: the old weights and threshold, and those of the fold's
    own fit. `fitted`: the final weights on all targets. `improved`: True if `after` has the higher worth; if not,
    `weights` and `threshold` are the ones tuning started from.
    """

    weights: Weights
    threshold: float
    before: Quality
    after: Quality
    fitted: Quality
    targets: int
    folds: int
    improved: bool


def from_feedback(signals: Sequence[Signals], success: float) -> Example:
    """Return an example from one context that was used: every message shown is as relevant as the context was
    successful.

    `success` is the indicator of the usage record, in [0, 1]. One context says little about each message, but over many
    contexts the signals that correlate with success can be identified.
    """
    return Example(signals=tuple(signals), relevant=(success,) * len(signals))


def tune(
    examples: Sequence[Example],
    start: Weights,
    *,
    threshold: float = 0.3,
    max_messages: int = 20,
    folds: int = 5,
) -> TuningReport:
    """Fit weights and threshold, tested on `folds` runs of consecutive targets held out in turn.

    `start`, `threshold`: the present ones. Targets without candidates are omitted. Raises `InvalidInput` if there are
    fewer than two targets per fold, or labels that are all alike.
    """
    data = [_Target.of(example) for example in examples if example.signals]
    _check(data, folds)
    old = _Rule(np.array(start.normalised()), threshold)
    held, kept = [], []
    for fold in range(folds):
        test = _part(data, fold, folds)
        train = [target for other in range(folds) if other != fold for target in _part(data, other, folds)]
        rule = _fit(train, old, max_messages)
        held += [_judged(target, rule, max_messages) for target in test]
        kept += [_judged(target, old, max_messages) for target in test]
    before, after = _mean(kept), _mean(held)
    improved = after.worth > before.worth
    best = _fit(data, old, max_messages) if improved else old
    return TuningReport(
        weights=Weights.of(float(weight) for weight in best.weights),
        threshold=best.threshold,
        before=before,
        after=after,
        fitted=_mean([_judged(target, best, max_messages) for target in data]),
        targets=len(data),
        folds=folds,
        improved=improved,
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    weights: Floats
    threshold: float


@dataclass(frozen=True, slots=True)
class _Target:
    """Signals (candidates x 5), labels (candidates), and the total number of relevant messages."""

    signals: Floats
    labels: Floats
    relevant: int

    @classmethod
    def of(cls, example: Example) -> "_Target":
        signals = np.array([as_row(row) for row in example.signals], np.float64)
        labels = np.array(example.relevant, np.float64)
        return cls(signals, labels, int((labels >= 0.5).sum()) + example.missing)


def _check(data: Sequence[_Target], folds: int) -> None:
    if folds < 2:
        raise InvalidInput("folds_invalid", value=folds)
    if len(data) < 2 * folds:
        raise InvalidInput("tuning_targets_few", folds=folds, least=2 * folds, count=len(data))
    labels = np.concatenate([target.labels for target in data])
    if labels.min() == labels.max():
        raise InvalidInput("tuning_labels_alike")


def _part(data: Sequence[_Target], fold: int, folds: int) -> Sequence[_Target]:
    return data[len(data) * fold // folds : len(data) * (fold + 1) // folds]


def _fit(train: Sequence[_Target], old: _Rule, max_messages: int) -> _Rule:
    """Return the better on the training targets of the fitted and the old weights, each with its best threshold."""
    labels = np.concatenate([target.labels for target in train])
    if labels.min() == labels.max():
        return old
    fitted = _logistic(np.concatenate([target.signals for target in train]), labels)
    choices = [_with_threshold(train, weights, max_messages) for weights in (fitted, old.weights)]
    return max(choices, key=lambda choice: choice[0])[1]


def _with_threshold(train: Sequence[_Target], weights: Floats, max_messages: int) -> tuple[float, _Rule]:
    sums = sum((_worth_by_threshold(target, weights, max_messages) for target in train), np.zeros(len(THRESHOLDS)))
    best = int(sums.argmax())
    return float(sums[best]), _Rule(weights, THRESHOLDS[best])


def _worth_by_threshold(target: _Target, weights: Floats, max_messages: int) -> Floats:
    """Return the target's worth at each of `THRESHOLDS`."""
    scores = target.signals @ weights
    order = np.argsort(-scores, kind="stable")[:max_messages]
    hits = np.concatenate([[0.0], np.cumsum(target.labels[order] >= 0.5)])
    sizes = np.searchsorted(-scores[order], -np.array(THRESHOLDS), side="right")
    if not target.relevant:
        return np.asarray(1 / (1 + sizes), np.float64)
    return np.asarray(2 * hits[sizes] / (sizes + target.relevant), np.float64)


def _logistic(signals: Floats, labels: Floats) -> Floats:
    """Return the non-negative weights, with sum 1, of a logistic regression with a free intercept and a slight ridge.

    Both classes have the same total weight, since relevant candidates are fewer. If all weights are 0 (no signal is
    informative), they become equal.
    """
    share = labels.mean()
    balance = labels / (2 * share) + (1 - labels) / (2 * (1 - share))
    columns = np.column_stack([signals, np.ones(len(signals))])
    lowest = np.array([0.0] * signals.shape[1] + [-np.inf])
    ridge = np.array([RIDGE] * signals.shape[1] + [0.0])
    step = 1.0 / (0.25 * np.linalg.norm(columns * np.sqrt(balance)[:, None], 2) ** 2 / len(signals) + RIDGE)
    solution = ahead = np.zeros(columns.shape[1])
    pace = 1.0
    for _ in range(STEPS):
        chances = 0.5 * (1 + np.tanh(0.5 * (columns @ ahead)))
        slope = columns.T @ (balance * (chances - labels)) / len(signals) + ridge * ahead
        following = np.maximum(ahead - step * slope, lowest)
        if np.abs(following - solution).max() < STILL:
            break
        faster = (1 + math.sqrt(1 + 4 * pace * pace)) / 2
        ahead = following + (pace - 1) / faster * (following - solution)
        solution, pace = following, faster
    weights = solution[:-1]
    return weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))


def _judged(target: _Target, rule: _Rule, max_messages: int) -> tuple[int, int, int]:
    """Return (chosen, hits, relevant) as `weighted` would choose."""
    scores = target.signals @ rule.weights
    order = np.argsort(-scores, kind="stable")[:max_messages]
    chosen = order[scores[order] >= rule.threshold]
    return len(chosen), int((target.labels[chosen] >= 0.5).sum()), target.relevant


def _mean(judged: Sequence[tuple[int, int, int]]) -> Quality:
    rows = [row for row in judged if row[2]]
    starters = [chosen for chosen, _, relevant in judged if not relevant]
    f1 = [2 * hits / (chosen + relevant) for chosen, hits, relevant in rows]
    return Quality(
        precision=_average([hits / chosen if chosen else 0.0 for chosen, hits, _ in rows]),
        recall=_average([hits / relevant for _, hits, relevant in rows]),
        f1=_average(f1),
        selected=_average([chosen for chosen, _, _ in judged]),
        starters=_average(starters),
        worth=_average([*f1, *(1 / (1 + chosen) for chosen in starters)]),
    )


def _average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
