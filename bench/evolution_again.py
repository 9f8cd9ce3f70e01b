"""Compute once more what an evolution must have done from what its model was shown and said. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from functools import lru_cache
from importlib import resources
from itertools import count

from bench.evolution_items import ABOUT, ANN, Shown
from roomlore import StoredMessage
from roomlore.adapters.json_repair import repaired
from roomlore.core.evolution.guards import checked_answer
from roomlore.core.evolution.plan import PlanInput, joined, plan
from roomlore.core.evolution.prompt import ShownMessages, comparison_form, handles_of, show_messages
from roomlore.core.evolution.requests import Answer, Plan, Rules, ScopeState
from roomlore.core.evolution.wording import similarity
from roomlore.core.memory.log import active, replay
from roomlore.core.memory.memory import Action, Change, Evolution, Memory, MemoryKind, Source
from roomlore.core.prompt import Prompt

_MAKES = {Action.CREATE, Action.UPDATE, Action.MERGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An evolution as it is stored. `before`: the changes of its scope before it; `own`: those that it made.
    `messages`: all of its room."""

    record: Evolution
    before: Sequence[Change]
    own: Sequence[Change]
    messages: Sequence[StoredMessage]
    shown: Shown

    @property
    def kind(self) -> MemoryKind:
        return MemoryKind.FACT if self.record.scope == ABOUT else MemoryKind.GROUP

    @property
    def covered(self) -> list[StoredMessage]:
        """The messages that it says it read."""
        return [m for m in heard(self.record.scope, self.messages) if self._covers(m.arrival)]

    def _covers(self, arrival: int) -> bool:
        return self.record.first_arrival <= arrival <= self.record.last_arrival


def heard(scope: str, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """The messages of a room that a scope evolves by."""
    return [message for message in messages if scope != ABOUT or message.sender_id == ANN]


def differences(evolution: Told, rules: Rules) -> Iterator[str]:
    """Between what is stored and what must have been done, a line each."""
    labels = {handle: source.message_id for handle, source in _handles(evolution).items()}
    if dict(evolution.shown.labels) != labels:
        yield f"its model was shown {list(evolution.shown.labels.values())}, and it read {list(labels.values())}"
        return
    again = planned(evolution, rules)
    if again is None:
        yield "its model was shown memories that its scope did not have"
        return
    if _without_evidence(again.changes) != _without_evidence(evolution.own):
        yield f"its answer asks for {_actions(again.changes)}, and it did {_actions(evolution.own)}"
    if tuple((rejection.text, rejection.reason) for rejection in again.rejected) != evolution.record.quarantined:
        yield "it refused other lines of its answer than it must"


def _without_evidence(changes: Sequence[Change]) -> list[Change]:
    """The changes without who heard and who said what they rest on, which follow from rooms and not from an answer."""
    return [replace(change, memory=replace(change.memory, evidence=(), said_by=())) for change in changes]


def planned(evolution: Told, rules: Rules) -> Plan | None:
    """Return what it must have done; None if its model was shown memories that do not exist."""
    offered = _offered(evolution)
    if offered is None:
        return None
    raw = evolution.record.raw_answer
    first = raw[: evolution.record.facts.get("first_chars", len(raw))]
    checked = [
        checked_answer(
            text,
            template=_templates().get(evolution.record.prompt_hash, ""),
            offered=offered,
            shown=_shown(evolution).text,
            silent=lambda _: False,
            repair=repaired,
        )
        for text in (first, raw[len(first) + 1 :])
    ]
    answer = joined(*checked, after=first.count("\n") + 1)
    return _plan(evolution, answer, offered, rules)


@lru_cache(maxsize=1)
def _templates() -> dict[str, str]:
    """The prompts that ship, by their hash."""
    files = [path for path in resources.files("roomlore.prompts").iterdir() if path.name.endswith(".md")]
    prompts = [Prompt(file.name, file.read_text(encoding="utf-8")) for file in files]
    return {prompt.hash: prompt.text for prompt in prompts}


def _handles(evolution: Told) -> Mapping[str, Source]:
    return _shown(evolution).handles


def _shown(evolution: Told) -> ShownMessages:
    """The messages as its model saw them, but for the zone of their times."""
    return show_messages(evolution.covered, room_id=evolution.record.room_id, quoted={}, people={}, zone=UTC)


def _offered(evolution: Told) -> dict[str, Memory] | None:
    """Return what the model was shown, by handle; None if it was shown what does not exist."""
    versions = {memory.statement: memory for memory in replay(evolution.before).values()}
    if not set(evolution.shown.memories.values()) <= versions.keys():
        return None
    handles = handles_of(versions[statement] for statement in evolution.shown.memories.values())
    return handles if list(handles) == list(evolution.shown.memories) else None


def _plan(evolution: Told, answer: Answer, offered: Mapping[str, Memory], rules: Rules) -> Plan:
    versions = replay(evolution.before)
    in_force = active(versions)
    latest: dict[str, int] = {}
    for memory in versions.values():
        latest[memory.lineage_id] = max(latest.get(memory.lineage_id, 0), memory.version)
    offered_ids = {memory.memory_id for memory in offered.values()}
    unseen = {comparison_form(memory.statement) for memory in in_force if memory.memory_id not in offered_ids}
    ids = _ids(evolution.own)
    return plan(
        answer,
        PlanInput(
            offered=offered,
            messages=_handles(evolution),
            similar=similarity,
            rules=rules,
            state=ScopeState(
                scope=evolution.record.scope, number=len(evolution.before), active=len(in_force), latest=latest
            ),
            kind=evolution.kind,
            evolution_id=evolution.record.evolution_id,
            new_id=lambda: next(ids),
            actor=evolution.record.model,
            now=evolution.own[0].at if evolution.own else evolution.record.finished_at,
            taken=lambda statement: comparison_form(statement) in unseen,
        ),
    )


def _ids(own: Sequence[Change]) -> Iterator[str]:
    """Those that were given to what it made, then others."""
    yield from (change.memory.memory_id for change in own if change.action in _MAKES)
    yield from (f"another-{number}" for number in count(1))


def _actions(changes: Sequence[Change]) -> list[str]:
    return [f"{change.number} {change.action.value} {change.memory.memory_id}" for change in changes]
