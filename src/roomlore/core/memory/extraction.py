"""Short memories: decide when messages are extracted, and check a model's summary."""

import hashlib
import re
from collections.abc import Sequence

from roomlore.core.errors import BadModelOutput
from roomlore.core.memory.reading import without_times
from roomlore.core.memory.shortening import shortened
from roomlore.core.summary.answers import says_nothing
from roomlore.core.text import graphemes, terms, truncate

MAX_MESSAGES = 40
"""The most messages of a short memory. What is more waits for the next one."""
MAX_ARRIVALS = 1000
"""The most arrivals that one extraction moves over, since it reads all of them to find the agent's conversations."""
MAX_PASSED = 200
"""The most skipped messages that are remembered: a later reply may answer one of them."""
LOOK_BACK = 40
"""The longest time before an agent's first reply at which its conversation may begin."""
IMPORTED = "imported"
"""The name of the watermark up to which a room was imported; nothing below it is extracted."""
SUMMARY_CHARACTERS = 100
SUMMARY_TOKENS = 200
FALLBACK_CHARACTERS = 200
FALLBACK = "fallback"
_FALLBACK_LABEL = "对话摘要: "
_MIN_CHARACTERS = 5
_NOTHING = ("无有效记忆", "no_memory")
_ECHO = 4
"""Consecutive terms that mark an answer as a copy of its instructions."""
_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)


def watermark(agent_id: str) -> str:
    """Return the name of the watermark up to which an agent's replies were extracted."""
    return f"extraction:{agent_id}"


def extraction_end(replies: Sequence[int], every: int) -> int | None:
    """Return the reply at which the next extraction is due, of the replies' arrivals (ascending, all after the
    watermark); None if there are too few."""
    return replies[every - 1] if len(replies) >= every else None


def first_mark(reply: int, imported: int) -> int:
    """Return the watermark with which extraction begins, given the arrival of the agent's first live reply."""
    return max(reply - 1 - LOOK_BACK, imported, 0)


def cut_at(last: int, arrivals: Sequence[int], *, after: int) -> int:
    """Return the arrival that ends an extraction of `MAX_MESSAGES` messages at most. `arrivals`: those of the
    messages up to `last`, ascending; some may be from before the watermark `after`."""
    return last if len(arrivals) <= MAX_MESSAGES else max(arrivals[MAX_MESSAGES - 1], after + 1)


def extraction_id(tenant: str, agent_id: str, room_id: str, last: int) -> str:
    """Return the id of the memory extracted from the messages up to arrival `last`; deterministic."""
    named = "\x00".join((tenant, agent_id, room_id, str(last)))
    return "x" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:31]


def again_id(memory_id: str, attempt: int) -> str:
    """Return the id of a retried extraction of a memory that was made without a model."""
    return "y" + hashlib.sha256(f"{memory_id}\x00{attempt}".encode("utf-8", "surrogatepass")).hexdigest()[:31]


def attempt_at(age_seconds: float) -> int:
    """Return the attempt due for a memory of this age: a new one each time the age doubles from a minute on, then every
    hour."""
    minutes = max(int(age_seconds // 60), 0)
    return minutes.bit_length() if minutes < 64 else 6 + (minutes - 4) // 60


def kept(answer: str, *, instructions: str = "", most: int = SUMMARY_CHARACTERS) -> str | None:
    """Return the part of a model's summary to keep, on one line, shortened to `most` characters, without its reasoning
    and the times of lines that it copied; None if it says that nothing is worth keeping.

    Raises `BadModelOutput` if it is empty or shorter than 5 characters, or repeats `instructions`, the prompt without
    the conversation.
    """
    thoughts = _THOUGHTS.match(answer)
    text = " ".join(without_times(answer[thoughts.end() if thoughts else 0 :]).split())
    if any(mark in text.casefold() for mark in _NOTHING) or says_nothing(text):
        return None
    if graphemes(text) < _MIN_CHARACTERS:
        raise BadModelOutput(f"The summary is shorter than {_MIN_CHARACTERS} characters.")
    if _echoes(text, instructions):
        raise BadModelOutput("The summary repeats its instructions.")
    return shortened(text, most)


def _echoes(text: str, instructions: str) -> bool:
    """Return True if at least half of the text occurs in the instructions word for word."""
    told, said = _ngrams(instructions), _ngrams(text)
    return bool(said) and 2 * len(said & told) >= len(said)


def _ngrams(text: str) -> set[tuple[str, ...]]:
    words = terms(text)
    return {tuple(words[at : at + _ECHO]) for at in range(len(words) - _ECHO + 1)}


def fallback(conversation: str) -> str:
    """Return the summary used if no model answers: the beginning of the conversation, without times."""
    return _FALLBACK_LABEL + truncate(without_times(conversation), FALLBACK_CHARACTERS)
