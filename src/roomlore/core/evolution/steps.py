"""What each wish of an answer comes to by itself: a step that could be done, or a reason why not."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.answers import MOST_WISHES
from roomlore.core.evolution.guards import clean_line, clean_statement, said
from roomlore.core.evolution.handles import find
from roomlore.core.evolution.models import Rejected, Rules, Wish
from roomlore.core.memory.intake import MAX_LABEL, MAX_REASON, MAX_TAGS
from roomlore.core.memory.models import Memory, Source
from roomlore.core.text import truncate

Similar = Callable[[str, str], float]
StepKind = Literal["keep", "confirm", "update", "merge", "delete", "create"]
_SHOWN = 80


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Step:
    """A wish with the memories that it is about (the oldest first) and the messages that support it.

    `confirm`: what is said already is said again. `statement`, `tags`, `confidence`, `reason`: as they can be kept.
    """

    kind: StepKind
    wish: Wish
    memories: tuple[Memory, ...] = ()
    statement: str = ""
    reason: str = ""
    tags: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    confidence: float | None = None


def refused(wish: Wish, reason: str) -> Rejected:
    """The wish as it is named in a report."""
    text = " ".join((wish.kind, *wish.handles)) + (f": {wish.statement}" if wish.statement else "")
    return Rejected(wish.line, truncate(clean_line(text[: 4 * _SHOWN]), _SHOWN), reason)


class Reader:
    """Makes steps of wishes. `rejected`: what it left out, with the reason."""

    def __init__(
        self,
        offered: Mapping[str, Memory],
        messages: Mapping[str, Source],
        *,
        rules: Rules,
        similar: Similar | None,
    ) -> None:
        self.rejected: list[Rejected] = []
        self._offered = offered
        self._messages = messages
        self._rules = rules
        self._similar = similar
        self._said = {said(memory.statement): memory for memory in reversed(list(offered.values()))}

    def steps(self, wishes: Sequence[Wish]) -> list[Step]:
        single = [one for wish in wishes for one in _one_each(wish)]
        self.rejected += [
            refused(wish, f"An answer has at most {MOST_WISHES} wishes.") for wish in single[MOST_WISHES:]
        ]
        return [step for wish in single[:MOST_WISHES] for step in self._tried(wish)]

    def _tried(self, wish: Wish) -> Iterator[Step]:
        try:
            yield self._step(wish)
        except InvalidInput as error:
            self.rejected.append(refused(wish, str(error)))

    def _step(self, wish: Wish) -> Step:
        memories = self._memories(wish)
        if wish.kind == "keep":
            return Step(kind="keep", wish=wish, memories=memories)
        reason = truncate(clean_line(wish.reason[: 8 * MAX_REASON]), MAX_REASON)
        if wish.kind == "delete":
            return Step(kind="delete", wish=wish, memories=memories, reason=reason)
        statement = clean_statement(wish.statement, self._rules)
        if wish.kind == "create":
            memories = self._repeated(statement)
        return Step(
            kind=_kind(statement, memories),
            wish=wish,
            memories=memories,
            statement=statement,
            reason=reason,
            tags=self._tags(wish),
            sources=self._sources(wish),
            confidence=self._confidence(wish),
        )

    def _memories(self, wish: Wish) -> tuple[Memory, ...]:
        found = {memory.memory_id: memory for memory in (find(handle, self._offered) for handle in wish.handles)}
        if wish.kind == "create" and found:
            raise InvalidInput("A create names no memory; an update does.")
        if wish.kind != "create" and not found:
            raise InvalidInput(f"It does not say which memory to {wish.kind}.")
        if len(found) > self._rules.most_merged:
            raise InvalidInput(f"{len(found)} memories are too many for one merge; at most {self._rules.most_merged}.")
        return tuple(sorted(found.values(), key=lambda memory: (memory.created_at, memory.memory_id)))

    def _repeated(self, statement: str) -> tuple[Memory, ...]:
        """The memory that a create says again, if any."""
        same = self._said.get(said(statement))
        if same is not None or self._similar is None:
            return (same,) if same is not None else ()
        likeness = [(self._similar(statement, memory.statement), memory) for memory in self._offered.values()]
        near = [(score, memory) for score, memory in likeness if score >= self._rules.same]
        return (max(near, key=lambda pair: pair[0])[1],) if near else ()

    def _sources(self, wish: Wish) -> tuple[Source, ...]:
        found: dict[Source, None] = {}
        unknown: dict[str, None] = {}
        for handle in wish.evidence:
            try:
                found[find(handle, self._messages)] = None
            except InvalidInput as error:
                unknown[str(error)] = None
        if unknown:
            more = f" And {len(unknown) - 1} more." if len(unknown) > 1 else ""
            self.rejected.append(refused(wish, f"Left out of its evidence: {next(iter(unknown))}{more}"))
        return tuple(found)

    def _tags(self, wish: Wish) -> tuple[str, ...]:
        short = (clean_line(tag) for tag in wish.tags if len(tag) <= MAX_LABEL)
        tags = tuple(dict.fromkeys(tag for tag in short if tag))[:MAX_TAGS]
        if len(tags) < len(set(wish.tags)):
            self.rejected.append(
                refused(wish, f"Tags that are empty, repeated, too long or over {MAX_TAGS} are left out.")
            )
        return tags

    def _confidence(self, wish: Wish) -> float | None:
        given = wish.confidence
        if given is None or (math.isfinite(given) and 0 <= given <= 1):
            return given
        self.rejected.append(refused(wish, "Its confidence is left out: it is no number from 0 to 1."))
        return None


def _one_each(wish: Wish) -> list[Wish]:
    """Several memories are kept or deleted one by one."""
    if wish.kind not in {"keep", "delete"} or len(wish.handles) < 2:
        return [wish]
    return [replace(wish, handles=(handle,)) for handle in dict.fromkeys(wish.handles)]


def _kind(statement: str, memories: tuple[Memory, ...]) -> StepKind:
    if not memories:
        return "create"
    if len(memories) > 1:
        return "merge"
    return "confirm" if said(statement) == said(memories[0].statement) else "update"
