"""Made-up chat for speed benches: several threads at once, people addressing each other, words as rare as real ones.

Lines are about as long as those of busy public channels: a median of 7 words, a mean of 10.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from roomlore import Message

_SYLLABLES = (
    "ka", "lo", "mi", "ten", "ra", "shu", "po", "vel", "dri", "an",
    "zu", "bek", "to", "li", "fa", "gor", "nu", "sel", "wy", "cha",
)  # fmt: skip
_CHINESE = (
    "我们", "今天", "发布", "版本", "服务", "问题", "日志", "接口", "需要", "测试",
    "上线", "回滚", "数据库", "缓存", "怎么", "谢谢", "可以", "看看", "明天", "会议",
)  # fmt: skip


def _vocabulary(rng: random.Random, size: int) -> list[str]:
    return ["".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(size)]


def _sentence(rng: random.Random, vocabulary: list[str], weights: list[float]) -> str:
    if rng.random() < 0.1:
        text = "".join(rng.choices(_CHINESE, k=6))
    else:
        length = min(60, max(1, round(rng.lognormvariate(1.95, 0.8))))
        text = " ".join(rng.choices(vocabulary, weights, k=length))
    return text + "?" * (rng.random() < 0.2)


def chat(room_id: str, count: int, seed: int = 7, *, words: int | None = None) -> Iterator[Message]:
    """`count` messages of one room, one every twenty seconds, a tenth of them in Chinese.

    Rooms of one seed say the same. `words`: the seed of the vocabulary alone, so that different rooms share words.
    """
    rng = random.Random(seed)
    vocabulary = _vocabulary(rng if words is None else random.Random(words), 3000)
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    people = [f"{name}{number}" for number, name in enumerate(_vocabulary(rng, 24))]
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    threads = [rng.sample(people, 3) for _ in range(4)]
    for number in range(count):
        place = rng.randrange(len(threads))
        if rng.random() < 0.05:
            threads[place] = rng.sample(people, 3)
        sender, other = rng.sample(threads[place], 2)
        text = _sentence(rng, vocabulary, weights)
        at += timedelta(seconds=rng.expovariate(1 / 20))
        yield Message(
            id=str(number),
            room_id=room_id,
            sender_id=sender,
            text=f"{other}: {text}" if rng.random() < 0.4 else text,
            sent_at=at,
        )
