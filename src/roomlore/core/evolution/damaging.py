"""Wishes that would damage a memory: a weak model gives messages as evidence for something that they do not say."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from roomlore.core.evolution.handles import found
from roomlore.core.evolution.likeness import likeness
from roomlore.core.evolution.models import Answer, Rejected, Rules, Wish
from roomlore.core.evolution.steps import refused
from roomlore.core.evolution.succession import Talk, Wording, is_related, is_spoken_of, loss, still_says
from roomlore.core.memory.models import Memory


class _Harm(ValueError):
    """Why a wish is not followed."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """What wishes are held against. `offered`: by handle. `talk`: what was said. `quiet`: whether it tells something
    that a memory was not spoken of. `asked`: whether the prompt asks for evidence. `given`: whether the answer gives
    any. Where it gives none in any line, as models do that know a format without it, nothing can be held against what
    is cited: then all that was said counts, for an update of something else and a delete of what is still said."""

    offered: Mapping[str, Memory]
    talk: Talk
    quiet: Callable[[Memory], bool]
    asked: bool
    given: bool

    def harmless(self, wish: Wish) -> Wish:
        """The wish as it can be followed. Raises `_Harm` with the reason where it cannot."""
        memories = {handle: self.offered[handle] for handle in self._known(wish)}
        cited = self.talk.cited(wish.evidence)
        heard = cited if self.given else self.talk.every
        if wish.kind == "create":
            self._create(wish, heard)
        elif wish.kind == "delete":
            self._delete(memories, cited, heard)
        elif wish.kind == "update" and len(memories) == 1:
            return self._update(wish, memories, heard)
        elif wish.kind == "update":
            self._merge(wish, memories, heard)
        return wish

    def _known(self, wish: Wish) -> Iterator[str]:
        """The handles under which memories were offered; what was not is refused elsewhere."""
        handles = {memory.memory_id: handle for handle, memory in self.offered.items()}
        for given in wish.handles:
            if memory := found(given, self.offered):
                yield handles[memory.memory_id]

    def _create(self, wish: Wish, heard: Sequence[Wording]) -> None:
        """One that repeats a memory takes its place."""
        alike = [(likeness(wish.statement, one.statement), handle) for handle, one in self.offered.items()]
        score, handle = max(alike, default=(0.0, ""))
        if score >= Rules().same:
            self._check(wish, handle, heard)

    def _update(self, wish: Wish, memories: Mapping[str, Memory], heard: Sequence[Wording]) -> Wish:
        ((handle, memory),) = memories.items()
        statement = self.talk.of(wish.statement)
        if is_related(self.talk.of(memory.statement), statement):
            self._check(wish, handle, heard)
            return wish
        if not is_spoken_of(statement, heard):
            raise _Harm(f"It says something else than {handle}, and no message speaks of it.")
        own = replace(wish, kind="create", handles=())
        self._create(own, heard)
        return own

    def _merge(self, wish: Wish, memories: Mapping[str, Memory], heard: Sequence[Wording]) -> None:
        for handle, memory in memories.items():
            if not is_related(self.talk.of(memory.statement), self.talk.of(wish.statement)):
                raise _Harm(f"It leaves out what {handle} says.")
            self._check(wish, handle, heard, merged=True)

    def _check(self, wish: Wish, handle: str, heard: Sequence[Wording], *, merged: bool = False) -> None:
        if not self.given:
            return
        memory = self.talk.of(self.offered[handle].statement)
        if why := loss(memory, self.talk.of(wish.statement), heard, merged=merged):
            raise _Harm(f"{handle} stays: {why[0].lower()}{why[1:]}")

    def _delete(self, memories: Mapping[str, Memory], cited: Sequence[Wording], heard: Sequence[Wording]) -> None:
        for handle, memory in memories.items():
            wording = self.talk.of(memory.statement)
            if still_says(wording, heard):
                raise _Harm(f"{handle} stays: a message still says it.")
            if self.asked and self.given and not is_spoken_of(wording, cited) and not self.quiet(memory):
                raise _Harm(f"{handle} stays: no message that is given as evidence speaks of it.")


def without_damage(answer: Answer, guarded: Guarded) -> Answer:
    """The answer without what would lose something true of a memory. An update that speaks of something else than its
    memory creates one of its own, if messages speak of that."""
    wishes: list[Wish] = []
    rejected: list[Rejected] = [*answer.rejected]
    for wish in answer.wishes:
        try:
            wishes.append(guarded.harmless(wish))
        except _Harm as harm:
            rejected.append(refused(wish, str(harm)))
            continue
        if wishes[-1].kind != wish.kind:
            why = f"It says something else than {wish.handles[0]}, which stays; it is taken as a memory of its own."
            rejected.append(refused(wish, why))
    return replace(answer, wishes=tuple(wishes), rejected=tuple(rejected))
