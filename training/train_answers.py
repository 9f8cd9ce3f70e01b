"""Fits the scores of memory search and tells how they do on questions and sets that were left out of the fit.

usage: python -m training.train_answers DATA_DIR OUT_FILE [--embeddings DIR]

DATA_DIR holds the folders that `HELD_OUT` names. Writes the comparison of vectors for the offline model,
and prints the weights without it as they stand in `roomlore/core/memory/scoring.py`.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from bench.kept_vectors import KeptEmbedder

from roomlore.adapters.embedding import open_offline
from roomlore.core.memory.scoring import (
    BACKGROUND,
    EVIDENCE,
    KINDS,
    BackgroundVectors,
    Cosines,
    StatementTerms,
    cosines_of,
    evidence,
    is_dense_script,
    nearness,
    read_question,
)
from roomlore.ports.language import Embedder
from training.answer_cases import Case, attributes, groups, labelled, phrases

Floats: TypeAlias = npt.NDArray[np.float64]
Singles: TypeAlias = npt.NDArray[np.float32]

HELD_OUT = {"locomo": "_clean", "realtalk": "", "memorybank_cn": "", "beam100k": ""}
"""Folders of published sets, with the suffix of their questions. Their licences do not allow to learn from them for
this project."""
FOLDS = 4
_THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_ANSWERED = 0.55
_WORTH = {"groups": 2.0, "phrases": 0.25}
_EVEN = float(np.log(0.7 / 0.3))
"""A memory that answers as likely as not scores 0.7."""
_HARDEST = 5
_COMPONENTS, _RANK = 128, 64
_RIDGE, _STEPS = 7e-6, 80
_SPREAD = 0.45
"""About the length of a vector less its mean."""
_CONSTANT, _KINDS, _OF_WORDS = 0, EVIDENCE.index(f"{KINDS[0]} held"), EVIDENCE.index("nearness")
_OF_MEANING = EVIDENCE.index("dense script")


@dataclass(slots=True)
class Table:
    """A row a memory: the case it is of, its vectors, its signs without the match, and if it answers."""

    case: npt.NDArray[np.int64]
    asked: Singles
    said: Singles
    dense_asked: npt.NDArray[np.bool_]
    dense_said: npt.NDArray[np.bool_]
    signs: Floats
    right: npt.NDArray[np.bool_]


@dataclass(slots=True)
class Fitted:
    """A matrix between components of questions and of statements, and the worth of their plain product."""

    matrix: Singles
    same: float


async def main(arguments: argparse.Namespace) -> None:
    cases = [*groups(), *attributes(), *phrases()]
    for name, suffix in HELD_OUT.items():
        cases += labelled(arguments.data / name, suffix)
    embedder: Embedder = open_offline()
    if arguments.embeddings:
        embedder = KeptEmbedder(embedder, arguments.embeddings)
    table = await tabled(cases, embedder)
    await embedder.close()
    made = Maker(cases, table)
    made.fit()
    arrays = made.arrays()
    np.savez_compressed(arguments.out, model=np.array(embedder.model.name), **arrays)  # type: ignore[arg-type]


async def tabled(cases: Sequence[Case], embedder: Embedder) -> Table:
    """Return the hardest memories of each case, and all that answer."""
    background = BackgroundVectors(await embedder.embed(BACKGROUND, kind="passage"))
    questions = [read_question(case.question, of_group=True) for case in cases]
    vectors = await embedder.embed([question.embed for question in questions], kind="query")
    said = sorted({memory for case in cases for memory in case.memories})
    places = {text: place for place, text in enumerate(said)}
    passages = await embedder.embed(said, kind="passage")
    parts = []
    for number, (case, question, vector) in enumerate(zip(cases, questions, vectors, strict=True)):
        rows = passages[[places[memory] for memory in case.memories]]
        dense = np.array([is_dense_script(memory) for memory in case.memories])
        near = nearness(Cosines(cosines_of(rows, vector), dense), background.cosines(vector))
        words = StatementTerms(case.memories)
        hardest = np.argsort(-(near + 2 * words.met(question.terms).meant))[:_HARDEST]
        kept = np.unique(np.concatenate([hardest, np.array(case.answers, np.int64)]))
        signs = evidence(question, words, near)[kept]
        right = np.isin(kept, np.array(case.answers, np.int64))
        each = np.ones(kept.size, np.bool_)
        parts.append(
            (number * each, vector * each[:, None], rows[kept], question.dense_script & each, dense[kept], signs, right)
        )
    return Table(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Maker:
    """Fits what is shipped, and what is told of it."""

    def __init__(self, cases: Sequence[Case], table: Table) -> None:
        self.cases, self.table = cases, table
        self.source = np.array([cases[number].source for number in table.case])
        self.kind = np.array([cases[number].kind for number in table.case])
        self.folds = self._folds()
        own = self.learned = np.isin(self.source, ["groups", "attributes", "phrases"])
        self.means = [_means(table.asked, table.dense_asked, own), _means(table.said, table.dense_said, own)]
        asked = (table.asked - self.means[0][table.dense_asked.astype(int)]) / _SPREAD
        said = (table.said - self.means[1][table.dense_said.astype(int)]) / _SPREAD
        self.bases = [_components(asked[own]), _components(said[own])]
        self.same = np.einsum("ij,ij->i", asked, said)
        self.asked, self.said = asked @ self.bases[0], said @ self.bases[1]
        self.weights = self._weights()

    def _folds(self) -> npt.NDArray[np.int64]:
        """Groups and rooms are held out whole; attributes are only learned from."""
        parts = sorted({case.part for case in self.cases})
        fold = {part: number % FOLDS for number, part in enumerate(parts)}
        folds = [fold[self.cases[row].part] for row in self.table.case]
        return np.where(self.source == "attributes", -1, np.array(folds))

    def _weights(self) -> Singles:
        """Answers and what nearly answers count more."""
        weights = np.where(self.learned, 1.0, 0.0) * np.where(self.table.right, 2, 1)
        weights *= np.where(self.kind == "near", 1.5, 1)
        return weights.astype(np.float32)

    def fit(self) -> None:
        """Each fold's matches come from a matrix that was fitted without it; from these follow the weights."""
        matches = np.zeros(self.table.case.size)
        for fold in range(FOLDS):
            out = (self.folds == fold) & self.learned
            matches[out] = self._matches(self._matrix(self.learned & ~out))[out]
        self.fitted = self._matrix(self.learned)
        final = self._matches(self.fitted)
        matches[~self.learned] = final[~self.learned]
        dense = self.table.dense_said
        signs = np.column_stack([self.table.signs, dense, dense != self.table.dense_asked, matches])
        calibrating = self.learned & (self.folds >= 0)
        same_language = np.array([len({*self.cases[row].languages.split("-")}) < 2 for row in self.table.case])
        self.shipped = np.zeros(len(EVIDENCE))
        for name, columns, rows in (
            ("WORDS_ALONE", _OF_WORDS, calibrating & same_language),
            ("ANY_MODEL", _OF_MEANING, calibrating),
            ("with the match", len(EVIDENCE), calibrating),
        ):
            found = logistic(signs[rows, :columns], self.table.right[rows], self._prior()[rows])
            found[_CONSTANT] += _EVEN
            print(f"{name} = ({', '.join(f'{value:.3f}' for value in found)})")
            self._tell(name, signs[:, :columns] @ found)
            self.shipped = found

    def _matrix(self, rows: npt.NDArray[np.bool_]) -> Fitted:
        signs = np.column_stack([self.table.signs[:, [*range(_KINDS), _OF_WORDS, _OF_WORDS + 1]], self.same])
        part = [array[rows].astype(np.float32) for array in (signs, self.asked, self.said, self.table.right)]
        return bilinear(part[0], part[1], part[2], part[3], self.weights[rows])

    def _matches(self, fitted: Fitted) -> Floats:
        found: Floats = np.einsum("ij,ij->i", self.asked @ fitted.matrix, self.said) + fitted.same * self.same
        return found

    def _prior(self) -> Floats:
        """In each source four of five questions have an answer. Own groups count more than chats, whose messages are no
        memories, and phrases less, since their words say enough."""
        weights = np.zeros(self.table.case.size)
        for source in np.unique(self.source):
            for answered, share in ((True, _ANSWERED), (False, 1 - _ANSWERED)):
                rows = (self.source == source) & ((self.kind == "answered") == answered)
                weights[rows] = _WORTH.get(str(source), 1.0) * share / rows.sum()
        return weights

    def _tell(self, name: str, logits: Floats) -> None:
        """Print how often a right memory, or if there is none any memory, reaches each threshold."""
        chances = 1 / (1 + np.exp(-logits))
        starts = np.flatnonzero(np.r_[True, self.table.case[1:] != self.table.case[:-1]])
        best = np.maximum.reduceat(np.where(self.table.right | (self.kind != "answered"), chances, 0), starts)
        names = [
            f"{case.source} {case.languages} | {case.kind}"
            for case in map(self.cases.__getitem__, self.table.case[starts])
        ]
        print(f"\n| {name} | questions | {' | '.join(map(str, _THRESHOLDS))} |")
        for group in sorted(set(names)):
            reached = best[np.array(names) == group]
            print(f"| {group} | {reached.size} | {' | '.join(f'{np.mean(reached >= at):.2f}' for at in _THRESHOLDS)} |")

    def arrays(self) -> dict[str, npt.NDArray[np.float16] | Floats]:
        """Return what `AnswerModel.of` reads."""
        whole = self.bases[0] @ self.fitted.matrix @ self.bases[1].T / _SPREAD**2
        left, sizes, right = np.linalg.svd(whole.astype(np.float64))
        roots = np.sqrt(sizes[:_RANK])
        halves = {
            "questions": self.means[0],
            "statements": self.means[1],
            "left": left[:, :_RANK] * roots,
            "right": right[:_RANK].T * roots,
        }
        return {name: np.asarray(array, np.float16) for name, array in halves.items()} | {
            "same": np.array(self.fitted.same / _SPREAD**2),
            "weights": self.shipped,
        }


def _means(vectors: Singles, dense: npt.NDArray[np.bool_], own: npt.NDArray[np.bool_]) -> Singles:
    return np.stack([vectors[own & (dense == script)].mean(axis=0) for script in (False, True)])


def _components(vectors: Singles) -> Singles:
    found: Singles = np.linalg.eigh(vectors.T @ vectors)[1][:, ::-1][:, :_COMPONENTS]
    return found


def bilinear(signs: Singles, asked: Singles, said: Singles, right: Singles, weights: Singles) -> Fitted:
    """Fit signs @ a + asked @ B @ said to the labels by Nesterov's accelerated gradient, with a ridge on B."""
    share = weights / weights.sum()
    spread = signs.std(axis=0)
    spread[0] = 1
    scaled = signs / spread
    size = asked.shape[1]
    matrix, plain = np.zeros((size, size), np.float32), np.zeros(signs.shape[1], np.float32)
    ahead, ahead_plain = matrix, plain
    steep = 0.5 * _steepest(asked, said, share) + 2 * _RIDGE
    steep_plain = 0.5 * float(np.linalg.eigvalsh((scaled * share[:, None]).T @ scaled)[-1])
    for step in range(1, _STEPS + 1):
        chances = 1 / (1 + np.exp(-(scaled @ ahead_plain + np.einsum("ij,ij->i", asked @ ahead, said))))
        rest = share * (chances - right)
        after = ahead - (asked.T @ (rest[:, None] * said) + _RIDGE * ahead) / steep
        after_plain = ahead_plain - scaled.T @ rest / steep_plain
        momentum = (step - 1) / (step + 2)
        ahead, ahead_plain = after + momentum * (after - matrix), after_plain + momentum * (after_plain - plain)
        matrix, plain = after, after_plain
    return Fitted(matrix, float(plain[-1] / spread[-1]))


def _steepest(asked: Singles, said: Singles, share: Singles) -> float:
    """Return the greatest curvature of the loss, by power iteration."""
    direction = np.random.default_rng(0).normal(size=(asked.shape[1],) * 2).astype(np.float32)
    for _ in range(8):
        direction /= np.linalg.norm(direction)
        direction = asked.T @ ((share * np.einsum("ij,ij->i", asked @ direction, said))[:, None] * said)
    return float(np.linalg.norm(direction))


def logistic(columns: Floats, labels: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """The weights of a logistic regression with a small ridge, by Newton's method; the first column is the constant."""
    spread = columns.std(axis=0)
    spread[spread == 0] = 1
    table, share, found = columns / spread, weights / weights.sum(), np.zeros(columns.shape[1])
    ridge = np.full(columns.shape[1], 1e-4)
    ridge[_CONSTANT] = 0
    for _ in range(30):
        chances = 1 / (1 + np.exp(-table @ found))
        slope = table.T @ (share * (chances - labels)) + ridge * found
        curve = (table * (share * chances * (1 - chances))[:, None]).T @ table + np.diag(ridge + 1e-9)
        found = found - np.linalg.solve(curve, slope)
    scaled: Floats = found / spread
    return scaled


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--embeddings", type=Path, help="a folder that keeps vectors between runs, outside the project")
    asyncio.run(main(parser.parse_args()))
