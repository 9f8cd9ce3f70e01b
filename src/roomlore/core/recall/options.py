"""What a call of recall says otherwise than the settings do."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.models import check_scope
from roomlore.core.recall.models import RecallOptions, Similarity

MOST_SCOPES = 100


def otherwise(
    options: RecallOptions,
    *,
    max_tokens: int | None = None,
    max_context_turns: int | None = None,
    similarity_weight: float | None = None,
    confidence_weight: float | None = None,
    similarity: Similarity | None = None,
) -> RecallOptions:
    """The options with what is given, and not None, in place of theirs. Raises `InvalidInput`."""
    if similarity is not None and similarity not in get_args(Similarity):
        raise InvalidInput(f"similarity is {similarity!r:.40}; it is one of {', '.join(get_args(Similarity))}.")
    given: dict[str, Any] = {
        "max_tokens": _whole("max_tokens", max_tokens),
        "max_context_turns": _whole("max_context_turns", max_context_turns),
        "similarity_weight": _weight("similarity_weight", similarity_weight),
        "confidence_weight": _weight("confidence_weight", confidence_weight),
        "similarity": similarity,
    }
    return replace(options, **{name: value for name, value in given.items() if value is not None})


def scopes_of(scopes: Sequence[str]) -> list[str]:
    """Each once, in order; one alone may be a text. Raises `InvalidInput`."""
    if not isinstance(scopes, Iterable):
        raise InvalidInput("scopes is a list of scopes, such as ['user:ann'].")
    given = [scopes] if isinstance(scopes, str) else list(scopes)
    if len(given) > MOST_SCOPES:
        raise InvalidInput(f"There are {len(given)} scopes; at most {MOST_SCOPES}.")
    return sorted({check_scope(scope) for scope in given})


def check_conversation(conversation_id: str | None) -> None:
    """`InvalidInput` unless it can name a conversation, or is None."""
    if conversation_id is None:
        return
    if not isinstance(conversation_id, str) or not conversation_id:
        raise InvalidInput("conversation_id is a text that names the conversation; leave it out if there is none.")
    if len(conversation_id) > MAX_ID_CHARS:
        raise InvalidInput(f"conversation_id has {len(conversation_id)} characters; at most {MAX_ID_CHARS}.")


def check_previous(previous: Sequence[str]) -> Sequence[str]:
    """The ids as they are. Raises `InvalidInput`."""
    listed = isinstance(previous, Sequence) and not isinstance(previous, str)
    if not listed or not all(isinstance(one, str) for one in previous):
        raise InvalidInput("previous is a list of ids of facts, in the order in which they were shown.")
    return previous


def _whole(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise InvalidInput(f"{name} is {value!r:.40}; it must be a whole number from 0.")
    return value


def _weight(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 or math.isnan(value):
        raise InvalidInput(f"{name} is {value!r:.40}; it must be a number from 0 to 1.")
    return float(value)
