"""Measure what recall costs on this machine, beside its unavoidable parts: counting the block, and one vector product.

Processor time, since others may use the machine."""

import gc
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from bench.chatter import chat
from bench.recall_data import fact, say
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.memory.memory import Memory
from roomlore.core.recall.ranking import FactSet, Topic, recollect, topic_of
from roomlore.core.recall.recollection import ConversationMessage, RecallOptions

FEW, MANY = 100, 10_000
DIMENSIONS = 384
ROUNDS = 200
FEW_MS, TIMES = 10.0, 3.0
_OPTIONS = RecallOptions()


def report() -> None:
    count = EncodingTokens().count
    texts = [message.text for message in chat("speed", MANY, 5)]
    memories = [fact(str(n), text, confidence=n % 10 / 10, place=n) for n, text in enumerate(texts)]
    topics = [topic_of([ConversationMessage("user", text)], 3) for text in texts[:: MANY // ROUNDS]]
    print("\n| recalling | median | |\n|---|---|---|")
    cold = timed(lambda turn: recollect(FactSet(memories[:FEW], count=count), topics[turn], _OPTIONS, count=count))
    print(f"| {FEW} facts, nothing made ready | {cold * 1e3:.2f} ms | |")
    many, least = warm(memories, topics)
    print(f"| {MANY:,} facts, made ready | {many * 1e3:.2f} ms | {many / least:.2f} of counting and a product |")
    print(f"| counting the block, and a product of {MANY:,} x {DIMENSIONS} | {least * 1e3:.2f} ms | |\n")
    say(cold * 1e3 < FEW_MS, f"{FEW} facts in {cold * 1e3:.2f} ms, {FEW_MS:.0f} at most wanted")
    say(many < TIMES * least, f"{many / least:.2f} times the floor, {TIMES:.0f} at most wanted")


def warm(memories: list[Memory], topics: Sequence[Topic]) -> tuple[float, float]:
    """Both in turn, so that the ratio holds on a busy machine."""
    count = EncodingTokens().count
    facts = FactSet(memories, count=count)
    vectors = np.random.default_rng(3).standard_normal((len(memories), DIMENSIONS)).astype(np.float32)
    block = recollect(facts, topics[0], _OPTIONS, count=count).text

    def floor(turn: int) -> object:
        return count([block]), vectors @ vectors[turn]

    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(ROUNDS):
        times[0].append(once(lambda turn: recollect(facts, topics[turn], _OPTIONS, count=count), turn))
        times[1].append(once(floor, turn))
    return median(times[0]), median(times[1])


def timed(work: Callable[[int], object]) -> float:
    gc.collect()
    return median(once(work, turn) for turn in range(ROUNDS))


def once(work: Callable[[int], object], turn: int) -> float:
    started = time.process_time()
    work(turn)
    return time.process_time() - started
