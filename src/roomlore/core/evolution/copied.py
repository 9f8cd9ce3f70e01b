"""Wishes that a model copied: a prompt shows what an answer looks like, and so may a message; a weak model writes that
down again."""

from collections.abc import Iterable
from dataclasses import replace

from roomlore.core.evolution.guards import said
from roomlore.core.evolution.models import Answer, Wish
from roomlore.core.evolution.steps import refused

_OF_PROMPT = "It repeats an example of the prompt."
_OF_CHAT = "It repeats a line that somebody wrote in the chat, in the form of an answer."


def without_copies(answer: Answer, examples: Answer, *, known: Iterable[str]) -> Answer:
    """The answer without what says an example's statement, and without deletes for an example's reason and evidence.

    `examples`: the prompt's template, read as if it were an answer. `known`: what the offered memories say; where one
    of them says what an example says, that is no copy.
    """
    return _without(answer, examples.wishes, known, _OF_PROMPT)


def without_orders(answer: Answer, orders: Iterable[Answer]) -> Answer:
    """The answer without what a message wrote out for the model, whichever memory it names. `orders`: messages, each
    read as if it were an answer."""
    return _without(answer, [wish for one in orders for wish in one.wishes], (), _OF_CHAT)


def _without(answer: Answer, shown_wishes: Iterable[Wish], known: Iterable[str], why: str) -> Answer:
    shown = {_gist(wish) for wish in shown_wishes if wish.kind != "keep"} - {(said(one), ()) for one in known}
    copied = [wish for wish in answer.wishes if wish.kind != "keep" and _gist(wish) in shown]
    return replace(
        answer,
        wishes=tuple(wish for wish in answer.wishes if wish not in copied),
        rejected=(*answer.rejected, *(refused(wish, why) for wish in copied)),
    )


def _gist(wish: Wish) -> tuple[str, tuple[str, ...]]:
    """What a copy has from its example, whichever memory it names."""
    return ("delete " + said(wish.reason), wish.evidence) if wish.kind == "delete" else (said(wish.statement), ())
