"""Measure how reliable the scores of memories are: precision and recall at the threshold, with embeddings and without.

Each question is put to a group of its own: the memories that answer it and others that do not. The questions that
ship with the bench (`bench/data/memory_questions.jsonl`: six made-up groups, each in Chinese and English, so that
questions and memories also cross languages) name every memory that answers. Folders of rooms with labelled questions
can be added: there a question's gold messages are the memories that answer, at most four of them, and twenty others
of its room, drawn at random, the ones that do not.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.kept_vectors import KeptEmbedder
from bench.recall_data import rooms_of, sets_of
from roomlore.adapters.embedding import open_offline
from roomlore.adapters.weights import load_answer_model
from roomlore.core.memory.scoring import (
    BACKGROUND,
    BackgroundVectors,
    Cosines,
    MemoryMatches,
    StatementTerms,
    cosines_of,
    is_dense_script,
    nearness,
    read_question,
    score,
)
from roomlore.ports.language import Embedder

QUESTIONS = Path(__file__).parent / "data" / "memory_questions.jsonl"
THRESHOLD = 0.7
_ANSWERS, _OTHERS = 4, 20
_LANGUAGES = ("zh", "en")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", type=Path, nargs="*", help="folders of sets with messages, queries and gold")
    parser.add_argument("--questions", type=int, default=200, help="questions of each set, drawn at random")
    parser.add_argument("--embeddings", type=Path, help="a folder that keeps vectors between runs, outside the project")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and memories of which the first `answers` answer it."""

    question: str
    memories: Sequence[str]
    answers: int


@dataclass(slots=True)
class Result:
    """Scores of the memories that answer, and of those that do not; `first`: whether an answer came first, for each
    question that has one."""

    relevant: list[float] = field(default_factory=list)
    unrelated: list[float] = field(default_factory=list)
    first: list[bool] = field(default_factory=list)

    def take(self, question_asked: Asked, scores: Sequence[float]) -> None:
        self.relevant += scores[: question_asked.answers]
        self.unrelated += scores[question_asked.answers :]
        if question_asked.answers:
            # Of equal scores the unrelated one counts as first.
            self.first.append(
                max(scores[: question_asked.answers]) > max(scores[question_asked.answers :], default=-1.0)
            )


async def run(arguments: argparse.Namespace) -> None:
    embedder: Embedder = open_offline()
    if arguments.embeddings:
        embedder = KeptEmbedder(embedder, arguments.embeddings)
    background = BackgroundVectors(await embedder.embed(BACKGROUND, kind="passage"))
    print(_HEADER)
    for name, questions in _sets(arguments.folders, arguments.questions):
        both, words = Result(), Result()
        for question_asked in questions:
            await _ask(question_asked, embedder, background, both, words)
        print(_row(name, len(questions), both, words), flush=True)
    await embedder.close()


def _sets(folders: Sequence[Path], most: int) -> Iterator[tuple[str, list[Asked]]]:
    groups = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    for part in ("fit", "held out"):
        for spoken in _LANGUAGES:
            for written in _LANGUAGES:
                chosen = [group for group in groups if group["split"] == part]
                yield f"own, {part}: {spoken} asks {written}", [*_made_up(chosen, spoken, written)]
    for folder in folders:
        for name, path in sets_of(folder).items():
            yield name, _labelled(path, most)


def _made_up(groups: Sequence[dict[str, Any]], spoken: str, written: str) -> Iterator[Asked]:
    for group in groups:
        memories = group["memories"][written]
        for question in group["questions"]:
            answers = [memories[place] for place in question["gold"]]
            yield Asked(
                question[spoken], [*answers, *(memory for memory in memories if memory not in answers)], len(answers)
            )


def _labelled(path: Path, most: int) -> list[Asked]:
    rng, cases = random.Random(3), []
    for room in rooms_of(path):
        texts = {row["id"]: f"{row['sender_id']}: {row['text']}" for row in room.messages if row["text"].strip()}
        for question in room.questions:
            answers = [texts[fact_id] for fact_id in sorted(question.gold) if fact_id in texts][:_ANSWERS]
            others = [text for fact_id, text in texts.items() if fact_id not in question.gold]
            drawn = rng.sample(others, min(_OTHERS, len(others)))
            if answers:
                cases.append(Asked(question.text, [*answers, *drawn], len(answers)))
    return rng.sample(cases, min(most, len(cases)))


async def _ask(
    question_asked: Asked, embedder: Embedder, background: BackgroundVectors, both: Result, alone: Result
) -> None:
    question, words = read_question(question_asked.question, of_group=True), StatementTerms(question_asked.memories)
    vector = (await embedder.embed([question.embed], kind="query"))[0]
    vectors = await embedder.embed(list(question_asked.memories), kind="passage")
    scripts = np.array([is_dense_script(memory) for memory in question_asked.memories])
    near = nearness(Cosines(cosines_of(vectors, vector), scripts), background.cosines(vector))
    learned = load_answer_model()
    direction = learned.direction(vector, dense_script=question.dense_script)
    values = direction.of(cosines_of(vectors, direction.vector), scripts)
    both.take(
        question_asked, score(question, words, near, MemoryMatches(values, scripts, learned.weights)).total.tolist()
    )
    alone.take(question_asked, score(question, words).total.tolist())


_HEADER = f"""
Precision and recall at {THRESHOLD}; how many unrelated memories score below 0.5; the area under the ROC curve; how
often an answer comes first. Words alone: without embeddings.

| questions | number | precision | recall | unrelated below 0.5 | AUC | first | words alone: precision | recall | AUC |
|---|---|---|---|---|---|---|---|---|---|"""


def _row(name: str, questions: int, both: Result, words: Result) -> str:
    whole = (*_at_threshold(both), np.mean(np.array(both.unrelated) < 0.5), _auc(both), np.mean(both.first))
    figures = " | ".join(f"{value:.2f}" for value in (*whole, *_at_threshold(words), _auc(words)))
    return f"| {name} | {questions} | {figures} |"


def _at_threshold(result: Result) -> tuple[float, float]:
    """Precision and recall."""
    right = sum(value >= THRESHOLD for value in result.relevant)
    wrong = sum(value >= THRESHOLD for value in result.unrelated)
    return right / (right + wrong) if right + wrong else float("nan"), right / max(1, len(result.relevant))


def _auc(result: Result) -> float:
    """Return how often a relevant memory scores higher than an unrelated one; equal scores count half."""
    unrelated = np.sort(result.unrelated)
    below, upto = (np.searchsorted(unrelated, result.relevant, side=side) for side in ("left", "right"))
    return float(np.mean((below + upto) / 2) / unrelated.size)
