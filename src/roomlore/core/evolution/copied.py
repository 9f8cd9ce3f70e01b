"""Wishes that a model copied: a prompt shows what an answer looks like, and a weak model writes that down again."""

from collections.abc import Iterable
from dataclasses import replace

from roomlore.core.evolution.guards import said
from roomlore.core.evolution.models import Answer, Wish
from roomlore.core.evolution.steps import refused

_WHY = "It repeats an example of the prompt."


def without_copies(answer: Answer, examples: Answer, *, known: Iterable[str]) -> Answer:
    """The answer without what says an example's statement, and without deletes for an example's reason and evidence.

    `examples`: the prompt's template, read as if it were an answer. `known`: what the offered memories say; where one
    of them says what an example says, that is no copy.
    """
    shown = {_gist(wish) for wish in examples.wishes if wish.kind != "keep"} - {(said(one), ()) for one in known}
    copied = [wish for wish in answer.wishes if wish.kind != "keep" and _gist(wish) in shown]
    return replace(
        answer,
        wishes=tuple(wish for wish in answer.wishes if wish not in copied),
        rejected=(*answer.rejected, *(refused(wish, _WHY) for wish in copied)),
    )


def _gist(wish: Wish) -> tuple[str, tuple[str, ...]]:
    """What a copy has from its example, whichever memory it names."""
    return ("delete " + said(wish.reason), wish.evidence) if wish.kind == "delete" else (said(wish.statement), ())
