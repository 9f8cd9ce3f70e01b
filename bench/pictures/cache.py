"""A conversation with facts recalled at each turn: how many bytes of each prompt stand unchanged at its beginning."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

from bench.pictures.cache_talk import FACTS, SYSTEM, TALK
from bench.pictures.held import held
from bench.pictures.svg import LARGE, SMALL, Sheet
from roomlore import NewMemory, with_memory

NAME = "recall-cache.svg"
BUDGET = 160
WAYS = ("ranked anew", "kept", "trailing")
_TITLES: Mapping[str, str] = {
    "ranked anew": "Ranked anew each turn, in front",
    "kept": "roomlore: kept while it fits, in front",
    "trailing": "roomlore: just before the last message",
}
_LEFT, _RIGHT = 64, 696
_TOP, _PANEL, _TALL = 88, 172, 112


@dataclass(frozen=True)
class Call:
    """One prompt. `size`: its bytes; `kept`: so many of them, from its beginning on, stood there at the call before;
    `block`: the block of facts."""

    size: int
    kept: int
    block: str


async def run() -> Mapping[str, Sequence[Call]]:
    """The prompts of the conversation, each way."""
    scope = "user:ann"
    calls: dict[str, list[Call]] = {way: [] for way in WAYS}
    before: dict[str, bytes] = dict.fromkeys(WAYS, b"")
    async with held() as (lore, _):
        await lore.memories.add_all([NewMemory(scope=scope, statement=words, confidence=sure) for words, sure in FACTS])
        history: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        for question, answered in TALK:
            history.append({"role": "user", "content": question})
            for way in WAYS:
                named = "talk" if way == "kept" else None
                block = await lore.recall.memory_prompt([scope], history, max_tokens=BUDGET, conversation_id=named)
                prompt = _bytes(with_memory(history, block, placement="trailing" if way == "trailing" else "system"))
                calls[way].append(Call(len(prompt), _same(before[way], prompt), block))
                before[way] = prompt
            history.append({"role": "assistant", "content": answered})
    return calls


def _bytes(messages: Sequence[Mapping[str, Any]]) -> bytes:
    """A line for each message, as it goes over the wire."""
    return "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages).encode()


def _same(before: bytes, now: bytes) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))


async def draw() -> str:
    calls = await run()
    sheet = Sheet(
        _TOP + _PANEL * len(WAYS) + 6,
        title="Bytes of a prompt that a cache can keep, turn by turn",
        alternative=_alternative_text(calls),
    )
    sheet.text(24, 34, "How much of each prompt is the beginning of the one before", size=LARGE, bold=True)
    caption = f"{len(TALK)} turns, {len(FACTS)} facts known, {BUDGET} tokens of them in a prompt."
    sheet.text(24, 56, caption, colour="soft")
    for x, colour, words in ((468, "strong", "as the turn before"), (624, "c1", "to be read")):
        sheet.rect(x, 45, 12, 12, colour, round_by=2)
        sheet.text(x + 18, 56, words, size=SMALL, colour="soft")
    most = max(call.size for way in WAYS for call in calls[way])
    for number, way in enumerate(WAYS):
        _panel(sheet, way, calls[way], _TOP + _PANEL * number, most)
    return sheet.drawn()


def _panel(sheet: Sheet, way: str, calls: Sequence[Call], top: float, most: int) -> None:
    """One way's prompts, a column each: what is kept below, what must be read anew above."""
    ground = top + 24 + _TALL
    sheet.text(24, top + 12, _TITLES[way], bold=True)
    share = f"{kept_share(calls):.0%} of all bytes kept · block changed {changes(calls)} times"
    sheet.text(_RIGHT, top + 12, share, size=SMALL, anchor="end", colour="strong" if way != WAYS[0] else "soft")
    for size in range(0, most, 2000):
        y = ground - _TALL * size / most
        sheet.line(_LEFT, y, _RIGHT, y, "line", width=1)
        sheet.text(_LEFT - 8, y + 5, f"{size // 1000} kB", size=SMALL, colour="soft", anchor="end")
    step = (_RIGHT - _LEFT) / len(calls)
    for number, call in enumerate(calls):
        x, wide = _LEFT + step * number + 4, step - 8
        high, kept = _TALL * call.size / most, _TALL * call.kept / most
        sheet.rect(x, ground - high, wide, high - kept, "c1")
        sheet.rect(x, ground - kept, wide, kept, "strong")
        sheet.text(x + wide / 2, ground + 17, str(number + 1), size=SMALL, colour="soft", anchor="middle")


def kept_share(calls: Sequence[Call]) -> float:
    """Of all bytes sent after the first call, those that were kept."""
    return sum(call.kept for call in calls[1:]) / sum(call.size for call in calls[1:])


def changes(calls: Sequence[Call]) -> int:
    """Return how often the block differed from that of the call before."""
    return sum(now.block != before.block for before, now in pairwise(calls))


def _alternative_text(calls: Mapping[str, Sequence[Call]]) -> str:
    ways = "; ".join(
        f"{_TITLES[way]}: {kept_share(calls[way]):.0%} of all bytes after the first turn were kept, and the block "
        f"changed {changes(calls[way])} times"
        for way in WAYS
    )
    return (
        f"Three rows of columns, one column for each of {len(TALK)} turns. Below in each column the bytes that stood "
        f"unchanged at the beginning since the turn before, above what is new. {ways}."
    )
