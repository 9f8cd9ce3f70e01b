"""A model's answer as it is followed: without what it copied from its prompt, and without what rests on nothing."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.copied import without_copies
from roomlore.core.evolution.models import Answer
from roomlore.core.evolution.unfounded import without_unfounded
from roomlore.core.memory.models import Memory, Source


def understood(
    text: str,
    *,
    template: str,
    offered: Mapping[str, Memory],
    messages: Mapping[str, Source],
    repair: Callable[[str], str],
) -> Answer:
    """What the answer asks for, and all of it that is not followed, with the reasons.

    `template`: of the prompt, with its examples. `offered`, `messages`: by the handles that the model saw. `repair`: as
    `read_answer` takes it.
    """
    examples = _examples(template, repair)
    own = without_copies(
        read_answer(text, repair=repair), examples, known=[memory.statement for memory in offered.values()]
    )
    return without_unfounded(own, examples, offered=offered, messages=messages)


@lru_cache(maxsize=8)
def _examples(template: str, repair: Callable[[str], str]) -> Answer:
    """Those of a prompt; the few that there are stay the same from one evolution to the next."""
    return read_answer(template, repair=repair)
