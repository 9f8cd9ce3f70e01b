"""Statements that rest on nothing: a weak model makes them up, or takes them from what it knows besides."""

from collections.abc import Mapping
from dataclasses import replace

from roomlore.core.evolution.handles import found
from roomlore.core.evolution.likeness import likeness
from roomlore.core.evolution.models import Answer, Wish
from roomlore.core.evolution.steps import refused
from roomlore.core.memory.models import Memory, Source

_REWORDED, _RELATED = 0.8, 0.25
"""Least likeness to a memory of what says it in other words, and of what still speaks of the same, or of five of them
in one."""
_WHY = "It gives no message as evidence, and says something new."


def without_unfounded(
    answer: Answer, examples: Answer, *, offered: Mapping[str, Memory], messages: Mapping[str, Source]
) -> Answer:
    """The answer without creates and updates that cite none of the messages, unless an update says in other words what
    one of its memories says.

    An answer without any evidence comes from a model that passes the field over, good or bad: then creates stay, and
    updates that still speak of what one of their memories speaks of. `examples`: the prompt's template, read as if it
    were an answer. Where no create among them gives evidence, the prompt does not ask for any, and everything is left
    in.
    """
    if not asks_evidence(examples):
        return answer
    gives = any(wish.evidence for wish in answer.wishes)
    asked = [wish for wish in answer.wishes if gives or wish.kind != "create"]
    reworded = _REWORDED if gives else _RELATED
    unfounded = [wish for wish in asked if _is_unfounded(wish, offered, messages, reworded)]
    return replace(
        answer,
        wishes=tuple(wish for wish in answer.wishes if wish not in unfounded),
        rejected=(*answer.rejected, *(refused(wish, _WHY) for wish in unfounded)),
    )


def asks_evidence(examples: Answer) -> bool:
    """Whether the prompt asks for it: whether a create among its examples gives any."""
    return any(wish.kind == "create" and wish.evidence for wish in examples.wishes)


def _is_unfounded(wish: Wish, offered: Mapping[str, Memory], messages: Mapping[str, Source], reworded: float) -> bool:
    if wish.kind not in ("create", "update") or any(found(handle, messages) for handle in wish.evidence):
        return False
    known = [memory for handle in wish.handles if (memory := found(handle, offered))]
    least = _RELATED if len(known) > 1 else reworded
    return all(likeness(wish.statement, memory.statement) < least for memory in known)
