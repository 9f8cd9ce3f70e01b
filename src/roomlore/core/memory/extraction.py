"""Short memories: when a few messages are to become one, and what a model's summary of them is worth."""

import hashlib
import re
from collections.abc import Sequence

from roomlore.core.errors import BadModelOutput
from roomlore.core.terms import terms
from roomlore.core.text import graphemes, truncate

EXTRACT_EVERY = 5
SUMMARY_CHARACTERS = 100
SUMMARY_TOKENS = 200
FALLBACK_CHARACTERS = 200
FALLBACK = "fallback"
_FALLBACK_LABEL = "对话摘要: "
_LEAST_CHARACTERS = 5
_NOTHING = ("无有效记忆", "no_memory")
_ECHO = 4
"""Terms in a row that make an answer look like its instructions."""
_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)


def watermark(agent_id: str) -> str:
    """The name of the watermark that says up to which message an agent's replies were extracted."""
    return f"extraction:{agent_id}"


def extraction_end(replies: Sequence[int], every: int) -> int | None:
    """At which of the replies (arrivals, ascending, all after the watermark) the next extraction is due, None as long
    as there are too few."""
    return replies[every - 1] if len(replies) >= every else None


def extraction_id(tenant: str, agent_id: str, room_id: str, last: int) -> str:
    """The id of the memory that the messages up to arrival `last` come to: the same however often it is reckoned."""
    named = "\x00".join((tenant, agent_id, room_id, str(last)))
    return "x" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:31]


def again_id(memory_id: str, attempt: int) -> str:
    """The id of what an attempt makes of a memory that was kept without a model."""
    return "y" + hashlib.sha256(f"{memory_id}\x00{attempt}".encode("utf-8", "surrogatepass")).hexdigest()[:31]


def attempt_at(age_seconds: float) -> int:
    """Which attempt a memory of this age has: another each time the age doubles from a minute on, then every hour."""
    minutes = max(int(age_seconds // 60), 0)
    return minutes.bit_length() if minutes < 64 else 6 + (minutes - 4) // 60


def kept(answer: str, *, instructions: str = "") -> str | None:
    """What of a model's summary is kept, on one line of at most 100 characters and without what it thought before it
    spoke; None where it says that nothing is worth it.

    Raises `BadModelOutput` where it is empty or shorter than 5 characters, or says again what it was told to do:
    `instructions`, without the conversation.
    """
    thoughts = _THOUGHTS.match(answer)
    text = " ".join(answer[thoughts.end() if thoughts else 0 :].split())
    if any(mark in text.casefold() for mark in _NOTHING):
        return None
    if graphemes(text) < _LEAST_CHARACTERS:
        raise BadModelOutput(f"The summary is shorter than {_LEAST_CHARACTERS} characters.")
    if _echoes(text, instructions):
        raise BadModelOutput("The summary repeats its instructions.")
    return truncate(text, SUMMARY_CHARACTERS)


def _echoes(text: str, instructions: str) -> bool:
    """Whether half of it, or more, stands in the instructions word for word."""
    told, said = _runs(instructions), _runs(text)
    return bool(said) and 2 * len(said & told) >= len(said)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = terms(text)
    return {tuple(words[at : at + _ECHO]) for at in range(len(words) - _ECHO + 1)}


def fallback(conversation: str) -> str:
    """What is kept where no model answers: the beginning of the conversation."""
    return _FALLBACK_LABEL + truncate(conversation, FALLBACK_CHARACTERS)
