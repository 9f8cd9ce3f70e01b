"""From what an answer asks for to what is done: all that is allowed, and a reason for all that is not."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from roomlore.core.evolution.guards import most_deleted, said
from roomlore.core.evolution.making import Maker
from roomlore.core.evolution.models import Answer, Ground, Plan, Rules
from roomlore.core.evolution.steps import Reader, Similar, Step, refused
from roomlore.core.memory.models import Memory, MemoryKind, Source

Refusals = dict[Step, str]
_REPLACING = {"update", "merge", "delete"}


def plan(
    answer: Answer,
    *,
    offered: Mapping[str, Memory],
    messages: Mapping[str, Source],
    similar: Similar | None,
    rules: Rules,
    ground: Ground,
    kind: MemoryKind,
    evolution_id: str,
    new_id: Callable[[], str],
    actor: str,
    now: datetime,
    taken: Callable[[str], bool] | None = None,
) -> Plan:
    """What of the answer is done. The same arguments give the same plan.

    `offered`, `messages`: by the handles that the model saw; the memories are active ones of this scope and kind.
    `similar`: in [0, 1], of two statements. `new_id`: called once for each new version, in order. `taken`: whether an
    active memory that was not offered says this. Never raises on any answer.
    """
    reader = Reader(offered, messages, rules=rules, similar=similar)
    steps = reader.steps(answer.wishes)
    chosen, reasons = _chosen(steps, _Guard(offered, rules=rules, ground=ground, similar=similar, taken=taken))
    maker = Maker(ground=ground, rules=rules, kind=kind, evolution_id=evolution_id, actor=actor, now=now, new_id=new_id)
    for step in chosen:
        maker.make(step)
    touched = {memory.memory_id for step in chosen if step.kind != "keep" for memory in step.memories}
    replaced = sum(len(step.memories) for step in chosen if step.kind in _REPLACING)
    rejected = [*answer.rejected, *reader.rejected, *(refused(step.wish, why) for step, why in reasons.items())]
    return Plan(
        changes=tuple(maker.changes),
        based_on=tuple(memory for memory in offered.values() if memory.memory_id in touched),
        kept=len(offered) - replaced,
        rejected=tuple(sorted(rejected, key=lambda one: one.line)),
    )


def _chosen(steps: Sequence[Step], guard: "_Guard") -> tuple[list[Step], Refusals]:
    """What a guard refuses makes room for what it would have taken the place of: the last valid wish counts."""
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
    """Of the steps that share a memory all but the last."""
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
    """What is refused of steps that share no memory, with the reason."""

    def __init__(
        self,
        offered: Mapping[str, Memory],
        *,
        rules: Rules,
        ground: Ground,
        similar: Similar | None,
        taken: Callable[[str], bool] | None,
    ) -> None:
        self._offered = offered
        self._rules = rules
        self._ground = ground
        self._similar = similar
        self._taken = taken

    def deletions(self, steps: Sequence[Step]) -> Refusals:
        most = most_deleted(self._ground.active, self._rules)
        surplus = [step for step in steps if step.kind == "delete"][most:]
        return dict.fromkeys(surplus, f"An evolution deletes at most {most} of {self._ground.active} memories.")

    def repetitions(self, steps: Sequence[Step]) -> Refusals:
        """New versions come before new memories: these are compared with what those will say."""
        replaced = {one.memory_id for step in steps if step.kind in _REPLACING for one in step.memories}
        rest = {handle: one for handle, one in self._offered.items() if one.memory_id not in replaced}
        there = {said(memory.statement): handle for handle, memory in rest.items()}
        made: list[Step] = []
        found: Refusals = {}
        for step in sorted((one for one in steps if one.kind in {"update", "merge", "create"}), key=_is_create):
            who = self._who_says(step, there, made)
            if who:
                found[step] = f"{who} says that already; merge the two instead."
                continue
            there[said(step.statement)] = f"Line {step.wish.line}"
            made.append(step)
        return found

    def _who_says(self, step: Step, there: Mapping[str, str], made: Sequence[Step]) -> str | None:
        form = said(step.statement)
        if form in there:
            return there[form]
        if self._taken is not None and self._taken(step.statement):
            return "Another memory"
        if step.kind != "create" or self._similar is None:
            return None
        likeness = ((self._similar(step.statement, one.statement), one) for one in made)
        return next((f"Line {one.wish.line}" for score, one in likeness if score >= self._rules.same), None)

    def crowded(self, steps: Sequence[Step]) -> Refusals:
        """The creates that there is no room for once everything else is done."""
        gone = sum(step.kind == "delete" for step in steps)
        merged = sum(len(step.memories) - 1 for step in steps if step.kind == "merge")
        room = max(self._rules.most_active - (self._ground.active - gone - merged), 0)
        surplus = [step for step in steps if step.kind == "create"][room:]
        most = self._rules.most_active
        return dict.fromkeys(surplus, f"There is room for {most} memories; merge some that belong together first.")


def _is_create(step: Step) -> bool:
    return step.kind == "create"
