"""Turn each operation of an answer into a step, or a reason for refusal."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.answers import MAX_OPERATIONS
from roomlore.core.evolution.prompt import clean_line, clean_statement, comparison_form, find, most_deleted, offered_as
from roomlore.core.evolution.requests import (
    Answer,
    Operation,
    Plan,
    Refusal,
    Rejected,
    Rules,
    ScopeState,
    raised,
    strength_at,
)
from roomlore.core.evolution.wording import ParsedMessage, rests_on_the_same
from roomlore.core.memory.memory import Action, Change, Memory, MemoryKind, MemoryStatus, Source, owner_of
from roomlore.core.memory.writing import MAX_LABEL, MAX_REASON, MAX_SOURCES, MAX_TAGS
from roomlore.core.text import truncate

Similar = Callable[[str, str], float]
StepKind = Literal["keep", "confirm", "update", "merge", "delete", "create"]
_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """All that a plan follows from, except the answer.

    `offered`, `messages`: by the handles that the model saw; the memories are active ones of this scope and kind.
    `similar`: of two statements, in [0, 1]. `said`: what the messages say. `heard`: messages that support a memory, by
    its id. `zone`: of the days that the answer names. `new_id`: called once for each
    new version, in order. `taken`: True if an active memory that was not offered has this statement.
    """

    offered: Mapping[str, Memory]
    messages: Mapping[str, Source]
    state: ScopeState
    rules: Rules
    similar: Similar | None
    kind: MemoryKind
    evolution_id: str
    actor: str
    now: datetime
    zone: tzinfo = UTC
    new_id: Callable[[], str]
    by_rules: bool = False
    taken: Callable[[str], bool] | None = None
    said: Mapping[Source, ParsedMessage] = field(default_factory=dict)
    heard: Mapping[str, Sequence[ParsedMessage]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Step:
    """An operation with its memories (the oldest first) and the messages that support it.

    `confirm`: the statement is already known. `statement`, `tags`, `confidence`, `reason`: in the form to be stored.
    """

    kind: StepKind
    operation: Operation
    memories: tuple[Memory, ...] = ()
    statement: str = ""
    reason: str = ""
    tags: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    confidence: float | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None


def refused(operation: Operation, reason: str) -> Refusal:
    """Return the refused operation for the report."""
    return Refusal(operation.line, _shown(operation), reason)


def noted(operation: Operation, reason: str) -> Rejected:
    """Return, for the report, an operation that is followed in part or overruled by a later one."""
    return Rejected(operation.line, _shown(operation), reason)


def _shown(operation: Operation) -> str:
    text = " ".join((operation.kind, *operation.handles)) + (f": {operation.statement}" if operation.statement else "")
    return truncate(clean_line(text[: 4 * _SHOWN]), _SHOWN)


class StepReader:
    """Builds steps from operations. `rejected`: the operations left out, with the reason."""

    def __init__(self, given: PlanInput) -> None:
        self.rejected: list[Rejected] = []
        self._given = given
        self._named: frozenset[str] = frozenset()
        self._by_form = {comparison_form(memory.statement): memory for memory in reversed(list(given.offered.values()))}

    def steps(self, operations: Sequence[Operation]) -> list[Step]:
        single = [single_operation for operation in operations for single_operation in _one_each(operation)]
        self._named = frozenset(
            memory.memory_id
            for single_operation in single
            for handle in single_operation.handles
            if (memory := offered_as(handle, self._given.offered))
        )
        self.rejected += [
            refused(operation, f"An answer has at most {MAX_OPERATIONS} operations.")
            for operation in single[MAX_OPERATIONS:]
        ]
        return [step for operation in single[:MAX_OPERATIONS] for step in self._valid_steps(operation)]

    def _valid_steps(self, operation: Operation) -> Iterator[Step]:
        try:
            yield self._step(operation)
        except InvalidInput as error:
            report = noted if operation.kind == "keep" else refused
            self.rejected.append(report(operation, str(error)))

    def _step(self, operation: Operation) -> Step:
        memories = self._memories(operation)
        if operation.kind == "keep":
            return Step(kind="keep", operation=operation, memories=memories)
        reason = truncate(clean_line(operation.reason[: 8 * MAX_REASON]), MAX_REASON)
        if operation.kind == "delete":
            return Step(kind="delete", operation=operation, memories=memories, reason=reason)
        statement = clean_statement(operation.statement, self._given.rules)
        if operation.kind == "create":
            memories = self._repeated(statement) or self._from_the_same(statement, operation)
        elif not any(comparison_form(memory.statement) == comparison_form(statement) for memory in memories):
            memories = self._with_repeated(statement, memories)
        return Step(
            kind=_kind(statement, memories),
            operation=operation,
            memories=memories,
            statement=statement,
            reason=reason,
            tags=self._tags(operation),
            sources=self._sources(operation),
            confidence=self._confidence(operation),
            **self._span(operation),
        )

    def _memories(self, operation: Operation) -> tuple[Memory, ...]:
        memories = {
            memory.memory_id: memory for memory in (find(handle, self._given.offered) for handle in operation.handles)
        }
        if operation.kind == "create" and memories:
            raise InvalidInput("create_names_memory")
        if operation.kind != "create" and not memories:
            raise InvalidInput("operation_without_memory", action=operation.kind)
        most = self._given.rules.most_merged
        if len(memories) > most:
            raise InvalidInput("merge_too_large", count=len(memories), most=most)
        return tuple(sorted(memories.values(), key=lambda memory: (memory.created_at, memory.memory_id)))

    def _repeated(self, statement: str) -> tuple[Memory, ...]:
        """Return the memory that a create repeats, if any."""
        same, similar = self._by_form.get(comparison_form(statement)), self._given.similar
        if same is not None or similar is None:
            return (same,) if same is not None else ()
        likeness = [(similar(statement, memory.statement), memory) for memory in self._given.offered.values()]
        near = [(score, memory) for score, memory in likeness if score >= self._given.rules.same]
        return (max(near, key=lambda pair: pair[0])[1],) if near else ()

    def _from_the_same(self, statement: str, operation: Operation) -> tuple[Memory, ...]:
        """Return the memory that a create says in other words, if its messages repeat those of one memory alone."""
        sources = [offered_as(handle, self._given.messages) for handle in operation.evidence]
        utterances = [self._given.said[source] for source in sources if source and source in self._given.said]
        heard = self._given.heard
        same = [
            memory
            for memory in self._given.offered.values()
            if memory.memory_id in heard
            and rests_on_the_same(statement, utterances, memory.statement, heard[memory.memory_id])
        ]
        return tuple(same) if len(same) == 1 else ()

    def _with_repeated(self, statement: str, memories: tuple[Memory, ...]) -> tuple[Memory, ...]:
        """Return the memories of an update with the one that its statement repeats, so that no two say the same. One
        that another operation names is left to that."""
        others = [memory for memory in self._repeated(statement) if memory.memory_id not in self._named]
        if len(memories) + len(others) > self._given.rules.most_merged:
            return memories
        return tuple(sorted((*memories, *others), key=lambda memory: (memory.created_at, memory.memory_id)))

    def _sources(self, operation: Operation) -> tuple[Source, ...]:
        sources: dict[Source, None] = {}
        unknown: dict[str, None] = {}
        for handle in operation.evidence:
            try:
                sources[find(handle, self._given.messages)] = None
            except InvalidInput as error:
                unknown[str(error)] = None
        if unknown:
            more = f" And {len(unknown) - 1} more." if len(unknown) > 1 else ""
            self.rejected.append(noted(operation, f"Left out of its evidence: {next(iter(unknown))}{more}"))
        return tuple(sources)

    def _tags(self, operation: Operation) -> tuple[str, ...]:
        short = (clean_line(tag) for tag in operation.tags if len(tag) <= MAX_LABEL)
        tags = tuple(dict.fromkeys(tag for tag in short if tag))[:MAX_TAGS]
        if len(tags) < len(set(operation.tags)):
            self.rejected.append(
                noted(operation, f"Tags that are empty, repeated, too long or over {MAX_TAGS} are left out.")
            )
        return tags

    def _span(self, operation: Operation) -> dict[str, datetime | None]:
        """Return since when it holds and when it ends: with the end of its last day. A span that is not in order, or
        that is over already when a model only now says so, is left out: one that miscounts must not hide a memory."""
        begins = _midnight(operation.valid_from, self._given.zone)
        ends = _midnight(operation.valid_until and _next_day(operation.valid_until), self._given.zone)
        past = ends is not None and ends <= self._given.now and not self._given.by_rules
        if past or (begins is not None and ends is not None and ends <= begins):
            self.rejected.append(noted(operation, "Its days are left out: they are over, or end before they begin."))
            return {"valid_from": None, "valid_until": None}
        return {"valid_from": begins, "valid_until": ends}

    def _confidence(self, operation: Operation) -> float | None:
        given = operation.confidence
        if given is None or (math.isfinite(given) and 0 <= given <= 1):
            return given
        self.rejected.append(noted(operation, "Its confidence is left out: it is no number from 0 to 1."))
        return None


def _midnight(day: date | None, zone: tzinfo) -> datetime | None:
    if day is None or not date.min < day < date.max:
        return None
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def _next_day(day: date) -> date | None:
    return day + timedelta(days=1) if day < date.max else None


def _one_each(operation: Operation) -> list[Operation]:
    """Split a keep or delete of several memories into one operation each."""
    if operation.kind not in {"keep", "delete"} or len(operation.handles) < 2:
        return [operation]
    return [replace(operation, handles=(handle,)) for handle in dict.fromkeys(operation.handles)]


def _kind(statement: str, memories: tuple[Memory, ...]) -> StepKind:
    if not memories:
        return "create"
    if len(memories) > 1:
        return "merge"
    return "confirm" if comparison_form(statement) == comparison_form(memories[0].statement) else "update"


@dataclass(slots=True)
class ChangeBuilder:
    """Builds the changes of one evolution, in order. `changes`: those so far."""

    given: PlanInput
    changes: list[Change] = field(default_factory=list)

    def add(self, step: Step) -> None:
        if step.kind == "create":
            self._log(step, Action.CREATE, self._first(step))
        elif step.kind == "update":
            self._log(step, Action.UPDATE, self._next(step), closes=True)
        elif step.kind == "merge":
            self._log(step, Action.MERGE, self._next(step), closes=True)
        elif step.kind == "confirm":
            self._log(step, Action.STRENGTH, self._confirmed(step))
        elif step.kind == "delete":
            self._log(step, Action.DELETE, _deprecated(step))

    def _log(self, step: Step, action: Action, memory: Memory, *, closes: bool = False) -> None:
        change = Change(
            number=self.given.state.number + len(self.changes) + 1,
            scope=self.given.state.scope,
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
            scope=self.given.state.scope,
            kind=self.given.kind,
            statement=step.statement,
            tags=step.tags,
            owner=owner_of(self.given.state.scope),
            valid_from=step.valid_from,
            valid_until=step.valid_until,
            strength=self.given.rules.first_strength if step.sources else self.given.rules.first_strength / 2,
            confidence=step.confidence,
            sources=step.sources,
            doubtful=step.operation.doubtful,
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
            version=max(self.given.state.latest.get(head.lineage_id, 0), head.version) + 1,
            parents=tuple(old.memory_id for old in step.memories),
            statement=step.statement,
            tags=step.tags or _tags(step),
            valid_from=step.valid_from,
            valid_until=step.valid_until,
            strength=self._strength(step),
            confidence=_lowest_confidence(step) if step.confidence is None else step.confidence,
            sources=_sources(step),
            change_summary=step.reason,
            evolution_id=self.given.evolution_id,
            made_by=self.given.actor,
            fallback=False,
            doubtful=step.operation.doubtful,
            updated_at=max(self.given.now, head.updated_at),
            supported_at=self._supported(step),
        )

    def _confirmed(self, step: Step) -> Memory:
        head = step.memories[0]
        known = [confidence for confidence in (head.confidence, step.confidence) if confidence is not None]
        return replace(
            head,
            strength=self._strength(step),
            confidence=max(known, default=None),
            valid_from=step.valid_from or head.valid_from,
            valid_until=step.valid_until or head.valid_until,
            sources=_sources(step),
            doubtful=step.operation.doubtful,
            supported_at=self._supported(step),
        )

    def _strength(self, step: Step) -> float:
        """Return the raised strength, based on the decayed one."""
        left = max(strength_at(old, self.given.now) for old in step.memories)
        return raised(left, self.given.rules.raised)

    def _supported(self, step: Step) -> datetime:
        return max(self.given.now, *(old.supported_at for old in step.memories))


def _deprecated(step: Step) -> Memory:
    head = step.memories[0]
    return replace(
        head,
        status=MemoryStatus.DEPRECATED,
        change_summary=step.reason or head.change_summary,
        doubtful=step.operation.doubtful,
    )


def _tags(step: Step) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for old in step.memories for tag in old.tags))[:MAX_TAGS]


def _lowest_confidence(step: Step) -> float | None:
    """Return the lowest known confidence."""
    return min((old.confidence for old in step.memories if old.confidence is not None), default=None)


def _sources(step: Step) -> tuple[Source, ...]:
    """Return the sources, each once; the latest ones if there are too many."""
    every = (*(source for old in step.memories for source in old.sources), *step.sources)
    return tuple(dict.fromkeys(every))[-MAX_SOURCES:]


def joined(first: Answer, second: Answer, *, after: int) -> Answer:
    """Return both answers as one. `after`: the number of lines of the first. What the second repeats counts once."""
    done = {(operation.kind, operation.handles, comparison_form(operation.statement)) for operation in first.operations}
    new = [
        operation
        for operation in second.operations
        if (operation.kind, operation.handles, comparison_form(operation.statement)) not in done
    ]
    known = {(rejection.text, rejection.reason) for rejection in first.rejected}
    rejected = [rejection for rejection in second.rejected if (rejection.text, rejection.reason) not in known]
    return Answer(
        (*first.operations, *(replace(operation, line=operation.line + after) for operation in new)),
        (*first.rejected, *(replace(rejection, line=rejection.line + after) for rejection in rejected)),
    )


Refusals = dict[Step, str]
_REPLACING = {"update", "merge", "delete"}


def plan(answer: Answer, given: PlanInput) -> Plan:
    """Return the plan for an answer. The same arguments give the same plan. Never raises on any answer."""
    reader, builder = StepReader(given), ChangeBuilder(given)
    chosen, barred, over_cap, overruled = _chosen(reader.steps(answer.operations), _Guard(given))
    # That rules find the same twice is nothing that anybody could put right.
    refusals = over_cap if given.by_rules else barred | over_cap
    for step in chosen:
        builder.add(step)
    touched = {memory.memory_id for step in chosen if step.kind != "keep" for memory in step.memories}
    replaced = sum(len(step.memories) for step in chosen if step.kind in _REPLACING)
    rejected = [
        *answer.rejected,
        *reader.rejected,
        *(refused(step.operation, why) for step, why in refusals.items()),
        *(noted(step.operation, why) for step, why in overruled.items() if not given.by_rules),
    ]
    return Plan(
        changes=tuple(builder.changes),
        based_on=tuple(memory for memory in given.offered.values() if memory.memory_id in touched),
        kept=len(given.offered) - replaced,
        rejected=tuple(sorted(rejected, key=lambda rejection: rejection.line)),
    )


def _chosen(steps: Sequence[Step], guard: "_Guard") -> tuple[list[Step], Refusals, Refusals, Refusals]:
    """Return the steps to do, the refused ones, those without room, and the overruled ones. A refused step frees what
    it would have replaced: the last valid operation counts."""
    barred: Refusals = {}
    while True:
        valid = [step for step in steps if step not in barred]
        overruled = _overruled(valid)
        chosen = [step for step in valid if step not in overruled]
        more = guard.deletions(chosen) or guard.repetitions(chosen)
        if not more:
            over_cap = guard.over_cap(chosen)
            return [step for step in chosen if step not in over_cap], barred, over_cap, overruled
        barred |= more


def _overruled(steps: Sequence[Step]) -> Refusals:
    """Refuse all but the last of the steps that share a memory."""
    owner: dict[str, Step] = {}
    refusals: Refusals = {}
    for step in reversed(steps):
        later = next((owner[memory.memory_id] for memory in step.memories if memory.memory_id in owner), None)
        if later is None:
            owner.update((memory.memory_id, step) for memory in step.memories)
        else:
            refusals[step] = f"Line {later.operation.line} speaks of the same memory, and the last one counts."
    return refusals


class _Guard:
    """Refuses steps that share no memory, with the reason."""

    def __init__(self, given: PlanInput) -> None:
        self._given = given

    def deletions(self, steps: Sequence[Step]) -> Refusals:
        most = most_deleted(self._given.state.active, self._given.rules)
        surplus = [step for step in steps if step.kind == "delete"][most:]
        return dict.fromkeys(surplus, f"An evolution deletes at most {most} of {self._given.state.active} memories.")

    def repetitions(self, steps: Sequence[Step]) -> Refusals:
        """Refuse repetitions. New versions are checked before new memories, which are compared with them."""
        replaced = {memory.memory_id for step in steps if step.kind in _REPLACING for memory in step.memories}
        rest = {handle: memory for handle, memory in self._given.offered.items() if memory.memory_id not in replaced}
        there = {comparison_form(memory.statement): handle for handle, memory in rest.items()}
        made: list[Step] = []
        refusals: Refusals = {}
        writing = (step for step in steps if step.kind in {"update", "merge", "create"})
        for step in sorted(writing, key=lambda step: step.kind == "create"):
            who = self._existing(step, there, made)
            if who:
                refusals[step] = f"{who} says that already; merge the two instead."
                continue
            there[comparison_form(step.statement)] = f"Line {step.operation.line}"
            made.append(step)
        return refusals

    def _existing(self, step: Step, there: Mapping[str, str], made: Sequence[Step]) -> str | None:
        form = comparison_form(step.statement)
        if form in there:
            return there[form]
        if self._given.taken is not None and self._given.taken(step.statement):
            return "Another memory"
        if step.kind != "create" or self._given.similar is None:
            return None
        likeness = ((self._given.similar(step.statement, memory.statement), memory) for memory in made)
        return next(
            (f"Line {rival.operation.line}" for score, rival in likeness if score >= self._given.rules.same), None
        )

    def over_cap(self, steps: Sequence[Step]) -> Refusals:
        """Refuse the creates that exceed the cap after all other steps."""
        gone = sum(step.kind == "delete" for step in steps)
        merged = sum(len(step.memories) - 1 for step in steps if step.kind == "merge")
        room = max(self._given.rules.most_active - (self._given.state.active - gone - merged), 0)
        surplus = [step for step in steps if step.kind == "create"][room:]
        most = self._given.rules.most_active
        what = "delete what is no longer needed" if self._given.by_rules else "merge some that belong together first"
        return dict.fromkeys(surplus, f"There is room for {most} memories; {what}.")
