"""Turn each wish of an answer into a step, or a reason for refusal."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.answers import MOST_WISHES
from roomlore.core.evolution.prompt import clean_line, clean_statement, find, most_deleted, said
from roomlore.core.evolution.requests import Answer, Ground, Plan, Rejected, Rules, Wish, raised, strength_at
from roomlore.core.memory.memory import Action, Change, Memory, MemoryKind, MemoryStatus, Source
from roomlore.core.memory.writing import MAX_LABEL, MAX_REASON, MAX_SOURCES, MAX_TAGS
from roomlore.core.text import truncate

Similar = Callable[[str, str], float]
StepKind = Literal["keep", "confirm", "update", "merge", "delete", "create"]
_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """All that a plan follows from, except the answer.

    `offered`, `messages`: by the handles that the model saw; the memories are active ones of this scope and kind.
    `similar`: of two statements, in [0, 1]. `new_id`: called once for each new version, in order. `taken`: True if an
    active memory that was not offered has this statement.
    """

    offered: Mapping[str, Memory]
    messages: Mapping[str, Source]
    ground: Ground
    rules: Rules
    similar: Similar | None
    kind: MemoryKind
    evolution_id: str
    actor: str
    now: datetime
    new_id: Callable[[], str]
    taken: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Step:
    """A wish with its memories (the oldest first) and the messages that support it.

    `confirm`: the statement is already known. `statement`, `tags`, `confidence`, `reason`: in the form to be stored.
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
    """Return the refused wish for the report."""
    text = " ".join((wish.kind, *wish.handles)) + (f": {wish.statement}" if wish.statement else "")
    return Rejected(wish.line, truncate(clean_line(text[: 4 * _SHOWN]), _SHOWN), reason)


class Reader:
    """Builds steps from wishes. `rejected`: the wishes left out, with the reason."""

    def __init__(self, given: PlanInput) -> None:
        self.rejected: list[Rejected] = []
        self._given = given
        self._said = {said(memory.statement): memory for memory in reversed(list(given.offered.values()))}

    def steps(self, wishes: Sequence[Wish]) -> list[Step]:
        single = [one for wish in wishes for one in _one_each(wish)]
        self.rejected += [
            refused(wish, f"An answer has at most {MOST_WISHES} wishes.") for wish in single[MOST_WISHES:]
        ]
        return [step for wish in single[:MOST_WISHES] for step in self._valid_steps(wish)]

    def _valid_steps(self, wish: Wish) -> Iterator[Step]:
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
        statement = clean_statement(wish.statement, self._given.rules)
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
        found = {memory.memory_id: memory for memory in (find(handle, self._given.offered) for handle in wish.handles)}
        if wish.kind == "create" and found:
            raise InvalidInput("A create names no memory; an update does.")
        if wish.kind != "create" and not found:
            raise InvalidInput(f"It does not say which memory to {wish.kind}.")
        most = self._given.rules.most_merged
        if len(found) > most:
            raise InvalidInput(f"{len(found)} memories are too many for one merge; at most {most}.")
        return tuple(sorted(found.values(), key=lambda memory: (memory.created_at, memory.memory_id)))

    def _repeated(self, statement: str) -> tuple[Memory, ...]:
        """Return the memory that a create repeats, if any."""
        same, similar = self._said.get(said(statement)), self._given.similar
        if same is not None or similar is None:
            return (same,) if same is not None else ()
        likeness = [(similar(statement, memory.statement), memory) for memory in self._given.offered.values()]
        near = [(score, memory) for score, memory in likeness if score >= self._given.rules.same]
        return (max(near, key=lambda pair: pair[0])[1],) if near else ()

    def _sources(self, wish: Wish) -> tuple[Source, ...]:
        found: dict[Source, None] = {}
        unknown: dict[str, None] = {}
        for handle in wish.evidence:
            try:
                found[find(handle, self._given.messages)] = None
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
    """Split a keep or delete of several memories into one wish each."""
    if wish.kind not in {"keep", "delete"} or len(wish.handles) < 2:
        return [wish]
    return [replace(wish, handles=(handle,)) for handle in dict.fromkeys(wish.handles)]


def _kind(statement: str, memories: tuple[Memory, ...]) -> StepKind:
    if not memories:
        return "create"
    if len(memories) > 1:
        return "merge"
    return "confirm" if said(statement) == said(memories[0].statement) else "update"


@dataclass(slots=True)
class Maker:
    """Builds the changes of one evolution, in order. `changes`: those so far."""

    given: PlanInput
    changes: list[Change] = field(default_factory=list)

    def make(self, step: Step) -> None:
        if step.kind == "create":
            self._log(step, Action.CREATE, self._first(step))
        elif step.kind == "update":
            self._log(step, Action.UPDATE, self._next(step), closes=True)
        elif step.kind == "merge":
            self._log(step, Action.MERGE, self._next(step), closes=True)
        elif step.kind == "confirm":
            self._log(step, Action.STRENGTH, self._confirmed(step))
        elif step.kind == "delete":
            self._log(step, Action.DELETE, _gone(step))

    def _log(self, step: Step, action: Action, memory: Memory, *, closes: bool = False) -> None:
        change = Change(
            number=self.given.ground.number + len(self.changes) + 1,
            scope=self.given.ground.scope,
            action=action,
            memory=memory,
            closes=tuple(old.memory_id for old in step.memories) if closes else (),
            old_statement=step.memories[0].statement if step.memories else None,
            reason=step.reason,
            evolution_id=self.given.evolution_id,
            actor=self.given.actor,
            at=self.given.now,
        )
        self.changes.append(change)

    def _first(self, step: Step) -> Memory:
        memory_id = self.given.new_id()
        return Memory(
            memory_id=memory_id,
            lineage_id=memory_id,
            scope=self.given.ground.scope,
            kind=self.given.kind,
            statement=step.statement,
            tags=step.tags,
            strength=self.given.rules.first_strength if step.sources else self.given.rules.first_strength / 2,
            confidence=step.confidence,
            sources=step.sources,
            change_summary=step.reason,
            evolution_id=self.given.evolution_id,
            made_by=self.given.actor,
            created_at=self.given.now,
            updated_at=self.given.now,
            supported_at=self.given.now,
        )

    def _next(self, step: Step) -> Memory:
        """Return the next version of the oldest memory's lineage."""
        head = step.memories[0]
        return replace(
            head,
            memory_id=self.given.new_id(),
            version=max(self.given.ground.latest.get(head.lineage_id, 0), head.version) + 1,
            parents=tuple(old.memory_id for old in step.memories),
            statement=step.statement,
            tags=step.tags or _tags(step),
            strength=self._strength(step),
            confidence=_lowest_confidence(step) if step.confidence is None else step.confidence,
            sources=_sources(step),
            change_summary=step.reason,
            evolution_id=self.given.evolution_id,
            made_by=self.given.actor,
            fallback=False,
            updated_at=max(self.given.now, head.updated_at),
            supported_at=self._supported(step),
        )

    def _confirmed(self, step: Step) -> Memory:
        head = step.memories[0]
        known = [one for one in (head.confidence, step.confidence) if one is not None]
        return replace(
            head,
            strength=self._strength(step),
            confidence=max(known, default=None),
            sources=_sources(step),
            supported_at=self._supported(step),
        )

    def _strength(self, step: Step) -> float:
        """Return the raised strength, based on the decayed one."""
        left = max(strength_at(old, self.given.now, self.given.rules.half_life_days) for old in step.memories)
        return raised(left, self.given.rules.raised)

    def _supported(self, step: Step) -> datetime:
        return max(self.given.now, *(old.supported_at for old in step.memories))


def _gone(step: Step) -> Memory:
    head = step.memories[0]
    return replace(head, status=MemoryStatus.DEPRECATED, change_summary=step.reason or head.change_summary)


def _tags(step: Step) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for old in step.memories for tag in old.tags))[:MAX_TAGS]


def _lowest_confidence(step: Step) -> float | None:
    """Return the lowest known confidence."""
    return min((old.confidence for old in step.memories if old.confidence is not None), default=None)


def _sources(step: Step) -> tuple[Source, ...]:
    """Return the sources, each once; the latest ones if there are too many."""
    every = (*(source for old in step.memories for source in old.sources), *step.sources)
    return tuple(dict.fromkeys(every))[-MAX_SOURCES:]


Refusals = dict[Step, str]
_REPLACING = {"update", "merge", "delete"}


def plan(answer: Answer, given: PlanInput) -> Plan:
    """Return the plan for an answer. The same arguments give the same plan. Never raises on any answer."""
    reader, maker = Reader(given), Maker(given)
    chosen, reasons = _chosen(reader.steps(answer.wishes), _Guard(given))
    for step in chosen:
        maker.make(step)
    touched = {memory.memory_id for step in chosen if step.kind != "keep" for memory in step.memories}
    replaced = sum(len(step.memories) for step in chosen if step.kind in _REPLACING)
    rejected = [*answer.rejected, *reader.rejected, *(refused(step.wish, why) for step, why in reasons.items())]
    return Plan(
        changes=tuple(maker.changes),
        based_on=tuple(memory for memory in given.offered.values() if memory.memory_id in touched),
        kept=len(given.offered) - replaced,
        rejected=tuple(sorted(rejected, key=lambda one: one.line)),
    )


def _chosen(steps: Sequence[Step], guard: "_Guard") -> tuple[list[Step], Refusals]:
    """Return the steps to do. A refused step frees what it would have replaced: the last valid wish counts."""
    barred: Refusals = {}
    while True:
        valid = [step for step in steps if step not in barred]
        overruled = _overruled(valid)
        chosen = [step for step in valid if step not in overruled]
        more = guard.deletions(chosen) or guard.repetitions(chosen)
        if not more:
            crowded = guard.crowded(chosen)
            return [step for step in chosen if step not in crowded], barred | overruled | crowded
        barred |= more


def _overruled(steps: Sequence[Step]) -> Refusals:
    """Refuse all but the last of the steps that share a memory."""
    owner: dict[str, Step] = {}
    found: Refusals = {}
    for step in reversed(steps):
        later = next((owner[one.memory_id] for one in step.memories if one.memory_id in owner), None)
        if later is None:
            owner.update((one.memory_id, step) for one in step.memories)
        else:
            found[step] = f"Line {later.wish.line} speaks of the same memory, and the last one counts."
    return found


class _Guard:
    """Refuses steps that share no memory, with the reason."""

    def __init__(self, given: PlanInput) -> None:
        self._given = given

    def deletions(self, steps: Sequence[Step]) -> Refusals:
        most = most_deleted(self._given.ground.active, self._given.rules)
        surplus = [step for step in steps if step.kind == "delete"][most:]
        return dict.fromkeys(surplus, f"An evolution deletes at most {most} of {self._given.ground.active} memories.")

    def repetitions(self, steps: Sequence[Step]) -> Refusals:
        """Refuse repetitions. New versions are checked before new memories, which are compared with them."""
        replaced = {one.memory_id for step in steps if step.kind in _REPLACING for one in step.memories}
        rest = {handle: one for handle, one in self._given.offered.items() if one.memory_id not in replaced}
        there = {said(memory.statement): handle for handle, memory in rest.items()}
        made: list[Step] = []
        found: Refusals = {}
        for step in sorted((one for one in steps if one.kind in {"update", "merge", "create"}), key=_is_create):
            who = self._existing(step, there, made)
            if who:
                found[step] = f"{who} says that already; merge the two instead."
                continue
            there[said(step.statement)] = f"Line {step.wish.line}"
            made.append(step)
        return found

    def _existing(self, step: Step, there: Mapping[str, str], made: Sequence[Step]) -> str | None:
        form = said(step.statement)
        if form in there:
            return there[form]
        if self._given.taken is not None and self._given.taken(step.statement):
            return "Another memory"
        if step.kind != "create" or self._given.similar is None:
            return None
        likeness = ((self._given.similar(step.statement, one.statement), one) for one in made)
        return next((f"Line {one.wish.line}" for score, one in likeness if score >= self._given.rules.same), None)

    def crowded(self, steps: Sequence[Step]) -> Refusals:
        """Refuse the creates that exceed the cap after all other steps."""
        gone = sum(step.kind == "delete" for step in steps)
        merged = sum(len(step.memories) - 1 for step in steps if step.kind == "merge")
        room = max(self._given.rules.most_active - (self._given.ground.active - gone - merged), 0)
        surplus = [step for step in steps if step.kind == "create"][room:]
        most = self._given.rules.most_active
        return dict.fromkeys(surplus, f"There is room for {most} memories; merge some that belong together first.")


def _is_create(step: Step) -> bool:
    return step.kind == "create"
