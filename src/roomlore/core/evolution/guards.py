"""Guards against weak answers: requests copied from the prompt, damaging updates, statements without evidence."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.plan import refused
from roomlore.core.evolution.prompt import comparison_form, found, lines_of
from roomlore.core.evolution.requests import Answer, Operation, Rejected, Rules
from roomlore.core.evolution.wording import (
    Conversation,
    Wording,
    is_mentioned,
    is_related,
    likeness,
    loss_reason,
    still_says,
)
from roomlore.core.memory.memory import Memory, Source

_OF_PROMPT = "It repeats an example of the prompt."
_OF_CHAT = "It repeats a line that somebody wrote in the chat, in the form of an answer."


def without_copies(answer: Answer, examples: Answer, *, known: Iterable[str]) -> Answer:
    """Return the answer without statements copied from an example, and without deletes that copy an example's reason
    and evidence.

    `examples`: the prompt's template, read as an answer. `known`: the statements of the offered memories; a statement
    that equals one of them is not a copy.
    """
    return _without(answer, examples.operations, known, _OF_PROMPT)


def without_injections(answer: Answer, orders: Iterable[Answer]) -> Answer:
    """Return the answer without operations that a message spelled out for the model, whichever memory they name.
    `orders`: messages, each read as an answer."""
    return _without(answer, [operation for one in orders for operation in one.operations], (), _OF_CHAT)


def _without(answer: Answer, shown_operations: Iterable[Operation], known: Iterable[str], why: str) -> Answer:
    shown = {_copied_part(operation) for operation in shown_operations if operation.kind != "keep"} - {
        (comparison_form(one), ()) for one in known
    }
    copied = [
        operation for operation in answer.operations if operation.kind != "keep" and _copied_part(operation) in shown
    ]
    return replace(
        answer,
        operations=tuple(operation for operation in answer.operations if operation not in copied),
        rejected=(*answer.rejected, *(refused(operation, why) for operation in copied)),
    )


def _copied_part(operation: Operation) -> tuple[str, tuple[str, ...]]:
    """Return the part of an operation that a copy shares with its example, whichever memory it names."""
    return (
        ("delete " + comparison_form(operation.reason), operation.evidence)
        if operation.kind == "delete"
        else (comparison_form(operation.statement), ())
    )


class _Refusal(ValueError):
    """The reason why an operation is refused."""


@dataclass(frozen=True, slots=True)
class OperationGuard:
    """The material that operations are checked against.

    `offered`: memories by handle. `conversation`: what was said. `quiet`: True if a memory may be deleted although no
    cited message mentions it. `asked`: True if the prompt asks for evidence. `given`: True if the answer gives any. If
    no line gives evidence, as models do that follow a format without it, citations cannot be checked: then all messages
    count, for an update to another subject and for a delete of something still said.
    """

    offered: Mapping[str, Memory]
    conversation: Conversation
    quiet: Callable[[Memory], bool]
    asked: bool
    given: bool

    def checked(self, operation: Operation) -> Operation:
        """Return the operation in the form that can be followed. Raises `_Refusal` with the reason if there is none."""
        memories = {handle: self.offered[handle] for handle in self._known(operation)}
        cited = self.conversation.cited(operation.evidence)
        heard = cited if self.given else self.conversation.every
        if operation.kind == "create":
            self._create(operation, heard)
        elif operation.kind == "delete":
            self._delete(memories, cited, heard)
        elif operation.kind == "update" and len(memories) == 1:
            return self._update(operation, memories, heard)
        elif operation.kind == "update":
            self._merge(operation, memories, heard)
        return operation

    def _known(self, operation: Operation) -> Iterator[str]:
        """Yield the handles under which memories were offered; unknown handles are refused elsewhere."""
        handles = {memory.memory_id: handle for handle, memory in self.offered.items()}
        for given in operation.handles:
            if memory := found(given, self.offered):
                yield handles[memory.memory_id]

    def _create(self, operation: Operation, heard: Sequence[Wording]) -> None:
        """Check a create that repeats a memory, since it replaces that memory."""
        alike = [(likeness(operation.statement, one.statement), handle) for handle, one in self.offered.items()]
        score, handle = max(alike, default=(0.0, ""))
        if score >= Rules().same:
            self._check(operation, handle, heard)

    def _update(self, operation: Operation, memories: Mapping[str, Memory], heard: Sequence[Wording]) -> Operation:
        ((handle, memory),) = memories.items()
        statement = self.conversation.of(operation.statement)
        if is_related(self.conversation.of(memory.statement), statement):
            self._check(operation, handle, heard)
            return operation
        if not is_mentioned(statement, heard):
            raise _Refusal(f"It says something else than {handle}, and no message speaks of it.")
        own = replace(operation, kind="create", handles=())
        self._create(own, heard)
        return own

    def _merge(self, operation: Operation, memories: Mapping[str, Memory], heard: Sequence[Wording]) -> None:
        for handle, memory in memories.items():
            if not is_related(self.conversation.of(memory.statement), self.conversation.of(operation.statement)):
                raise _Refusal(f"It leaves out what {handle} says.")
            self._check(operation, handle, heard, merged=True)

    def _check(self, operation: Operation, handle: str, heard: Sequence[Wording], *, merged: bool = False) -> None:
        if not self.given:
            return
        memory = self.conversation.of(self.offered[handle].statement)
        if why := loss_reason(memory, self.conversation.of(operation.statement), heard, merged=merged):
            raise _Refusal(f"{handle} stays: {why[0].lower()}{why[1:]}")

    def _delete(self, memories: Mapping[str, Memory], cited: Sequence[Wording], heard: Sequence[Wording]) -> None:
        for handle, memory in memories.items():
            wording = self.conversation.of(memory.statement)
            if still_says(wording, heard):
                raise _Refusal(f"{handle} stays: a message still says it.")
            if self.asked and self.given and not is_mentioned(wording, cited) and not self.quiet(memory):
                raise _Refusal(f"{handle} stays: no message that is given as evidence speaks of it.")


def without_losses(answer: Answer, guard: OperationGuard) -> Answer:
    """Return the answer without operations that would lose something true of a memory. An update that speaks of
    something other than its memory becomes a create, if messages speak of it."""
    operations: list[Operation] = []
    rejected: list[Rejected] = [*answer.rejected]
    for operation in answer.operations:
        try:
            operations.append(guard.checked(operation))
        except _Refusal as harm:
            rejected.append(refused(operation, str(harm)))
            continue
        if operations[-1].kind != operation.kind:
            why = (
                f"It says something else than {operation.handles[0]}, which stays; it is taken as a memory of its own."
            )
            rejected.append(refused(operation, why))
    return replace(answer, operations=tuple(operations), rejected=tuple(rejected))


_REWORDED, _RELATED = 0.8, 0.25
"""Least likeness to a memory of a rewording, and of a statement on the same subject or a merge of five."""
_WHY = "It gives no message as evidence, and says something new."


def without_unsupported(
    answer: Answer, examples: Answer, *, offered: Mapping[str, Memory], messages: Mapping[str, Source]
) -> Answer:
    """Return the answer without creates and updates that cite no message, unless an update rewords one of its memories.

    An answer without any evidence comes from a model that ignores the field: then creates stay, and updates on the same
    subject as one of their memories. `examples`: the prompt's template, read as an answer. If no create among them
    gives evidence, the prompt does not ask for any, and everything stays.
    """
    if not asks_evidence(examples):
        return answer
    gives = any(operation.evidence for operation in answer.operations)
    asked = [operation for operation in answer.operations if gives or operation.kind != "create"]
    reworded = _REWORDED if gives else _RELATED
    unsupported = [operation for operation in asked if _is_unsupported(operation, offered, messages, reworded)]
    return replace(
        answer,
        operations=tuple(operation for operation in answer.operations if operation not in unsupported),
        rejected=(*answer.rejected, *(refused(operation, _WHY) for operation in unsupported)),
    )


def asks_evidence(examples: Answer) -> bool:
    """Return True if the prompt asks for evidence, that is if a create among its examples gives any."""
    return any(operation.kind == "create" and operation.evidence for operation in examples.operations)


def _is_unsupported(
    operation: Operation, offered: Mapping[str, Memory], messages: Mapping[str, Source], reworded: float
) -> bool:
    if operation.kind not in ("create", "update") or any(found(handle, messages) for handle in operation.evidence):
        return False
    known = [memory for handle in operation.handles if (memory := found(handle, offered))]
    least = _RELATED if len(known) > 1 else reworded
    return all(likeness(operation.statement, memory.statement) < least for memory in known)


_ORDER = "action"


def checked_answer(
    text: str,
    *,
    template: str,
    offered: Mapping[str, Memory],
    messages: Mapping[str, Source],
    shown: str,
    quiet: Callable[[Memory], bool],
    repair: Callable[[str], str],
) -> Answer:
    """Return the operations to follow and the rejected ones, with the reasons.

    `template`: of the prompt, with its examples. `offered`, `messages`: by the handles that the model saw. `shown`: the
    messages as it saw them. `quiet`: True if a memory may be deleted although no cited message mentions it. `repair`:
    as `read_answer` takes it.
    """
    examples = _examples(template, repair)
    known = [memory.statement for memory in offered.values()]
    lines = lines_of(shown)
    own = without_copies(read_answer(text, repair=repair), examples, known=known)
    own = without_injections(own, [read_answer(line) for line in lines.values() if _ORDER in line])
    guard = OperationGuard(
        offered=offered,
        conversation=Conversation(lines, known),
        quiet=quiet,
        asked=asks_evidence(examples),
        given=any(operation.evidence for operation in own.operations),
    )
    return without_losses(without_unsupported(own, examples, offered=offered, messages=messages), guard)


@lru_cache(maxsize=8)
def _examples(template: str, repair: Callable[[str], str]) -> Answer:
    """Return the examples of a prompt. Cached, since they stay the same from one evolution to the next."""
    return read_answer(template, repair=repair)
