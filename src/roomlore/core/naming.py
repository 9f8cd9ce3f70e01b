"""What the senders of a room are called, kept in step as senders come and change their names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roomlore.core.dialogue import sounds_like_agent
from roomlore.core.terms import terms
from roomlore.core.text import HAN

_LONE_HAN = re.compile(f"[{HAN}]")
_ONE = 1 << 40


class Renaming(NamedTuple):
    """The sender at this place is now called `name`, and was called `before`; None: the sender is new."""

    place: int
    before: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Naming:
    """`agents`: the places of senders whose names are an agent's, ascending. `tallies`: of each term of the names,
    the sum of 2**40 plus the place over the senders so called, so that a sender can be taken out of it again."""

    tallies: Mapping[str, int]
    agents: tuple[int, ...]

    def owner(self, term: str) -> int | None:
        """The place of the only sender called by this term."""
        tally = self.tallies.get(term, 0)
        return tally - _ONE if _ONE <= tally < 2 * _ONE else None


NOBODY = Naming({}, ())


def naming_of(names: Sequence[str]) -> Naming:
    """Of senders called so, place by place."""
    return renamed(NOBODY, [Renaming(place, None, name) for place, name in enumerate(names)])


def renamed(naming: Naming, changes: Sequence[Renaming]) -> Naming:
    """The naming after these changes, each of another sender."""
    if not changes:
        return naming
    tallies = dict(naming.tallies)
    for place, before, name in changes:
        if before is not None:
            _tally(tallies, before, -_ONE - place)
        _tally(tallies, name, _ONE + place)
    changed = {change.place for change in changes}
    agents = {change.place for change in changes if sounds_like_agent(change.name)}
    return Naming(tallies, tuple(sorted(agents.union(naming.agents) - (changed - agents))))


def _tally(tallies: dict[str, int], name: str, share: int) -> None:
    for term in set(terms(name)):
        if len(term) > 1 or not _LONE_HAN.match(term):
            tally = tallies.get(term, 0) + share
            if tally:
                tallies[term] = tally
            else:
                del tallies[term]
