"""Recall: its options, input and result, and the block of facts as a model reads it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, time
from typing import Any, Literal, TypedDict, get_args

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.memory import Memory, MemoryKind, check_scope, last_day
from roomlore.core.memory.reading import INJECTED_NAME
from roomlore.core.patterns import lazy_pattern
from roomlore.core.prompt import neutral
from roomlore.core.text import truncate

Similarity = Literal["tfidf", "embedding", "hybrid"]
Scale = Literal["fit", "literal"]

RECALLED = (MemoryKind.FACT, MemoryKind.GROUP)
"""The kinds recalled by default."""


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """A message of the conversation that facts are recalled for. `role`: user, assistant, system or tool."""

    role: str
    text: str
    has_tool_calls: bool = False


RECALL_SECONDS = 2.0
"""Time for recalling before a reply or an agent's call goes without: people wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """The options of recall. `max_tokens`: of the rendered block. `max_context_turns`: the number of the user's last
    messages that form the query, with the final answers between them. `similarity_weight`, `confidence_weight`: of the
    score. `scale`: 'fit' scales similarities over the candidates by what fits the budget, 'literal' takes the cosines
    as they are. `sticky`: keep the facts shown before unless relevance clearly changed."""

    max_tokens: int = 2000
    max_context_turns: int = 3
    similarity_weight: float = 0.6
    confidence_weight: float = 0.4
    similarity: Similarity = "tfidf"
    scale: Scale = "fit"
    sticky: bool = True


class RecallOverrides(TypedDict, total=False):
    """The arguments of recall that replace the settings. See `RecallOptions`; `kinds`: the kinds of memories."""

    max_tokens: int | None
    max_context_turns: int | None
    similarity_weight: float | None
    confidence_weight: float | None
    similarity: Similarity | None
    kinds: Sequence[MemoryKind]


class RecallArguments(RecallOverrides, total=False):
    """The keyword arguments of `lore.recall.build` and `memory_prompt`. Each may be left out.

    `conversation_id`: facts shown in it before, by this process, stay until relevance has clearly changed. `previous`:
    the ids of the facts shown before, for callers that store them themselves. `include_ended`: also what is no longer
    valid, for conversations about the past. `viewer`: to whom it is shown, 'room:team' or 'user:anna'; without one
    everything is recalled, and the caller decides who sees it.
    """

    conversation_id: str | None
    previous: Sequence[str] | None
    include_ended: bool
    viewer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverriddenRecall:
    """The `RecallOverrides` with their defaults; None keeps the setting."""

    max_tokens: int | None = None
    max_context_turns: int | None = None
    similarity_weight: float | None = None
    confidence_weight: float | None = None
    similarity: Similarity | None = None
    kinds: Sequence[MemoryKind] = RECALLED


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest(OverriddenRecall):
    """The `RecallArguments` with their defaults."""

    conversation_id: str | None = None
    previous: Sequence[str] | None = None
    include_ended: bool = False
    viewer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A fact and why it was chosen. `similarity`: the one it was ranked by, at least 0 and as small as cosines are.
    `relevance`: the scaled similarity, in [0, 1]. `confidence`: in [0, 1]; if none was given, the present strength of a
    group memory, and the default for any other. `score`: the weighted sum."""

    memory: Memory
    similarity: float
    relevance: float
    confidence: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """The facts worth their tokens, in the order of the block.

    `text`: the block, '' if there is no fact. `tokens`: of the block, never above the budget. `considered`: the number
    of facts to choose from. `kept`: the facts are those shown before, byte for byte. `degraded`: the reason for a
    simpler answer than asked for, None if there is none.
    """

    facts: tuple[Recalled, ...]
    text: str
    tokens: int
    considered: int
    kept: bool = False
    degraded: str | None = None


MAX_SCOPES = 100


def otherwise(options: RecallOptions, overrides: OverriddenRecall) -> RecallOptions:
    """Return the options with every one that was asked for. Raises `InvalidInput`."""
    if overrides.similarity is not None and overrides.similarity not in get_args(Similarity):
        raise InvalidInput(
            "choice_unknown",
            name="similarity",
            value=f"{overrides.similarity!r:.40}",
            known=", ".join(get_args(Similarity)),
        )
    given: dict[str, Any] = {
        "max_tokens": _whole("max_tokens", overrides.max_tokens),
        "max_context_turns": _whole("max_context_turns", overrides.max_context_turns),
        "similarity_weight": _weight("similarity_weight", overrides.similarity_weight),
        "confidence_weight": _weight("confidence_weight", overrides.confidence_weight),
        "similarity": overrides.similarity,
    }
    return replace(options, **{name: value for name, value in given.items() if value is not None})


def scopes_of(scopes: Sequence[str]) -> list[str]:
    """Return the scopes, each once, in order; a single one may be a text. Raises `InvalidInput`."""
    if not isinstance(scopes, Iterable):
        raise InvalidInput("scopes_invalid")
    given = [scopes] if isinstance(scopes, str) else list(scopes)
    if len(given) > MAX_SCOPES:
        raise InvalidInput("scopes_too_many", count=len(given), most=MAX_SCOPES)
    return sorted({check_scope(scope) for scope in given})


def check_conversation(conversation_id: str | None) -> None:
    """Raise `InvalidInput` unless the value is a valid conversation id, or None."""
    if conversation_id is None:
        return
    if not isinstance(conversation_id, str) or not conversation_id:
        raise InvalidInput("conversation_id_invalid")
    if len(conversation_id) > MAX_ID_CHARS:
        raise InvalidInput("id_too_long", name="conversation_id", count=len(conversation_id), most=MAX_ID_CHARS)


def check_previous(previous: Sequence[str]) -> Sequence[str]:
    """Return the ids. Raises `InvalidInput`."""
    listed = isinstance(previous, Sequence) and not isinstance(previous, str)
    if not listed or not all(isinstance(memory_id, str) for memory_id in previous):
        raise InvalidInput("previous_invalid")
    return previous


def _whole(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise InvalidInput("number_below_zero", name=name, value=f"{value!r:.40}")
    return value


def _weight(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 or math.isnan(value):
        raise InvalidInput("number_not_share", name=name, value=f"{value!r:.40}")
    return float(value)


HEAD, TAIL = "<memory>\n", "</memory>"
_TIME = "%Y-%m-%d %H:%M UTC"
_SCOPE_CHARACTERS = 64
# Characters that nobody sees, or that end a line.
_UNSEEN = lazy_pattern(
    r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\ud800-\udfff]+"
)


def line_of(statement: str, scope: str = "") -> str:
    """Return a fact's line, which neither opens nor closes a block. `scope`: named if the block may contain several
    scopes, else ''."""
    whose = f"[{truncate(_flat(scope), _SCOPE_CHARACTERS).replace(']', ')')}] " if scope else ""
    return f"- {neutral(whose + _flat(statement))}\n"


def text_of(memory: Memory) -> str:
    """Return the statement, with since when it holds and when it ends, if that is known."""
    midnight = memory.valid_from is not None and memory.valid_from.time() == time.min
    begins = f"from {memory.valid_from:{'%Y-%m-%d' if midnight else _TIME}}" if memory.valid_from else ""
    day = memory.valid_until and last_day(memory.valid_until, UTC)
    ends = f"until the end of {day}" if day else f"until {memory.valid_until:{_TIME}}" if memory.valid_until else ""
    times = " ".join(filter(None, (begins, ends)))
    return f"{memory.statement} ({times})" if times else memory.statement


def block_of(lines: Sequence[str]) -> str:
    """Return the block, '' if there is no line."""
    return f"{HEAD}{''.join(lines)}{TAIL}" if lines else ""


def _flat(text: str) -> str:
    """Return the text on one line, without invisible and unsendable characters."""
    return " ".join(_UNSEEN.sub(" ", text).split())


Placement = Literal["system", "trailing"]

_LEADING = ("system", "developer")


def check_placement(placement: Placement) -> Placement:
    """Return the placement. Raises `InvalidInput` if it is not one."""
    if placement not in get_args(Placement):
        raise InvalidInput(
            "choice_unknown", name="placement", value=f"{placement!r:.40}", known=", ".join(get_args(Placement))
        )
    return placement


def place_among(roles: Sequence[str], placement: Placement) -> int:
    """Return the index of the block. 'system': behind the leading system messages. 'trailing': before the last message
    of the role user, so that everything before it stays unchanged; without one, as 'system'."""
    if placement == "trailing" and "user" in roles:
        return len(roles) - 1 - list(reversed(roles)).index("user")
    return next((place for place, role in enumerate(roles) if role not in _LEADING), len(roles))


def with_memory(
    messages: Sequence[Mapping[str, Any]], block: str, *, placement: Placement = "system"
) -> list[dict[str, Any]]:
    """Return OpenAI-style messages with the block as one message named `memory_context`, in place of an earlier one.

    `block`: the result of `lore.recall.memory_prompt`; '' leaves the messages without one. `placement`: 'system', a
    system message behind the system prompt, or 'trailing', a user message just before the user's last one. The given
    messages are not changed. Raises `InvalidInput` for another placement.
    """
    check_placement(placement)
    others = [dict(message) for message in messages if not _is_block(message)]
    if not block:
        return others
    at = place_among([str(message.get("role")) for message in others], placement)
    role = "system" if placement == "system" else "user"
    return [*others[:at], {"role": role, "name": INJECTED_NAME, "content": block}, *others[at:]]


def _is_block(message: Mapping[str, Any]) -> bool:
    """Return True if the message is the block. Agents and tools may have the same name."""
    return message.get("name") == INJECTED_NAME and message.get("role") in (*_LEADING, "user")
