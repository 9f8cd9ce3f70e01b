"""A model's answer as it is followed: without what it copied from its prompt, what rests on nothing, and what would
damage a memory."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.asking import lines_of
from roomlore.core.evolution.copied import without_copies, without_orders
from roomlore.core.evolution.damaging import Guarded, without_damage
from roomlore.core.evolution.models import Answer
from roomlore.core.evolution.succession import Talk
from roomlore.core.evolution.unfounded import asks_evidence, without_unfounded
from roomlore.core.memory.models import Memory, Source

_ORDER = "action"


def understood(
    text: str,
    *,
    template: str,
    offered: Mapping[str, Memory],
    messages: Mapping[str, Source],
    shown: str,
    quiet: Callable[[Memory], bool],
    repair: Callable[[str], str],
) -> Answer:
    """What the answer asks for, and all of it that is not followed, with the reasons.

    `template`: of the prompt, with its examples. `offered`, `messages`: by the handles that the model saw. `shown`: the
    messages as it saw them. `quiet`: whether it tells something that a memory was not spoken of. `repair`: as
    `read_answer` takes it.
    """
    examples = _examples(template, repair)
    known = [memory.statement for memory in offered.values()]
    lines = lines_of(shown)
    own = without_copies(read_answer(text, repair=repair), examples, known=known)
    own = without_orders(own, [read_answer(line) for line in lines.values() if _ORDER in line])
    guarded = Guarded(
        offered=offered,
        talk=Talk(lines, known),
        quiet=quiet,
        asked=asks_evidence(examples),
        given=any(wish.evidence for wish in own.wishes),
    )
    return without_damage(without_unfounded(own, examples, offered=offered, messages=messages), guarded)


@lru_cache(maxsize=8)
def _examples(template: str, repair: Callable[[str], str]) -> Answer:
    """Those of a prompt; the few that there are stay the same from one evolution to the next."""
    return read_answer(template, repair=repair)
