"""Guards against weak answers: what is refused, and what is followed although its words look doubtful."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from roomlore.core import lexicon
from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.doubts import Doubts
from roomlore.core.evolution.plan import refused
from roomlore.core.evolution.prompt import comparison_form, lines_of, offered_as
from roomlore.core.evolution.requests import Answer, Operation, Rejected
from roomlore.core.evolution.wording import ParsedMaterial, is_mentioned, is_one_subject, is_related, says_change
from roomlore.core.memory.memory import Memory
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import fold, language

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
    return _without(answer, [operation for order in orders for operation in order.operations], (), _OF_CHAT)


def _without(answer: Answer, shown_operations: Iterable[Operation], known: Iterable[str], why: str) -> Answer:
    shown = {_copied_part(operation) for operation in shown_operations if operation.kind != "keep"} - {
        (comparison_form(statement), ()) for statement in known
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


_BOT = lexicon.alternatives("bot")
# An order about what the bot remembers, with or without its name.
_ORDER = lazy_pattern(rf"{lexicon.alternatives('order')}|{_BOT}.{{0,20}}?{lexicon.alternatives('order_to_bot')}")
# A bot is spoken to: its name begins a clause, and an order, a pause or the end follows; 机器人很笨 speaks of it.
_ADDRESS = lazy_pattern(
    rf"(?:^|[@\s，,：:「“\"]|{lexicon.alternatives('before_bot')}){_BOT}"
    rf"(?=$|[\s,，:：!！-]|{lexicon.alternatives('after_bot')})|请(?:机器人|助手)"
)
_DOES = lexicon.pattern("does")
_KEEPS = lexicon.pattern("keeps")
_SELF = lexicon.pattern("self")
_REMEMBER = lexicon.pattern("remember")
_AUTHORITY = lexicon.pattern("authority")
_ORDER_CHARACTERS = 2_000
_FOLLOWS_ORDER = "It follows an order written in the chat."
_CITES_NOTHING = "It cites no message: give the handles of the messages that show it."


def is_order(text: str) -> bool:
    """Return True if a message tells the keeper of the memory what to forget, to rewrite or to take for granted."""
    folded = fold(text[:_ORDER_CHARACTERS])
    if _ORDER.search(folded):
        return True
    if _ADDRESS.search(folded) and (_DOES.search(folded) or (_KEEPS.search(folded) and not _SELF.search(folded))):
        return True
    match = _REMEMBER.search(folded)
    return bool(match and _AUTHORITY.search(folded, match.end()))


class _Refusal(ValueError):
    """The reason why an operation is refused."""


@dataclass(frozen=True, slots=True)
class OperationGuard:
    """The material that operations are checked against.

    `offered`: memories by handle. `lines`: messages by handle, as 'name: text'. `doubts`: judges them. `silent`: True
    if a memory had no support for long, so that it may be deleted without a message, unless one mentions it. `asked`:
    True if the prompt asks for evidence.
    """

    offered: Mapping[str, Memory]
    lines: Mapping[str, str]
    doubts: Doubts
    silent: Callable[[Memory], bool]
    asked: bool

    def checked(self, operation: Operation) -> Operation:
        """Return the operation as it can be followed, marked if it is doubtful. Raises `_Refusal` with the reason if it
        cannot."""
        if operation.kind == "keep":
            return operation
        memories = self._known(operation)
        evidence = self._evidence(operation, memories)
        operation = self._replacing(self._own(operation, memories, evidence), evidence)
        if not self.asked and not evidence:
            return operation
        silent = operation.kind == "delete" and self._is_silent(memories)
        return replace(operation, doubtful=self.doubts.of(operation, evidence, silent=silent))

    def _known(self, operation: Operation) -> list[Memory]:
        """Return the memories that it names; unknown handles are refused elsewhere."""
        return [memory for handle in operation.handles if (memory := offered_as(handle, self.offered))]

    def _evidence(self, operation: Operation, memories: Sequence[Memory]) -> list[str]:
        """Return the handles of the cited messages, without orders."""
        handles = {line: handle for handle, line in reversed(list(self.lines.items()))}
        cited = [handles[line] for given in operation.evidence if (line := offered_as(given, self.lines))]
        free = [handle for handle in cited if not is_order(_text(self.lines[handle]))]
        merges = operation.kind == "update" and len(memories) > 1
        silent = operation.kind == "delete" and not cited and self._is_silent(memories)
        if free or merges or silent or (not self.asked and not cited):
            if operation.kind == "delete" and self._is_ordered(memories, free):
                raise _Refusal(_FOLLOWS_ORDER)
            return free
        raise _Refusal(_FOLLOWS_ORDER if cited else _CITES_NOTHING)

    def _is_silent(self, memories: Sequence[Memory]) -> bool:
        """Return True if silence about the memories is evidence against them: none had support for long, and no message
        mentions one."""
        if not memories or not all(map(self.silent, memories)):
            return False
        conversation = self.doubts.conversation
        wordings = [conversation.of(_text(line)) for line in self.lines.values()]
        return not any(is_mentioned(conversation.of(memory.statement), wordings) for memory in memories)

    def _is_ordered(self, memories: Sequence[Memory], cited: Sequence[str]) -> bool:
        """Return True if a delete follows an order that it does not cite: the cited messages do not speak of it."""
        conversation = self.doubts.conversation
        wordings = [conversation.of(self.lines[handle]) for handle in cited]
        about = any(is_mentioned(conversation.of(memory.statement), wordings) for memory in memories)
        return not about and any(_ORDER.search(fold(_text(line)[:_ORDER_CHARACTERS])) for line in self.lines.values())

    def _own(self, operation: Operation, memories: Sequence[Memory], evidence: Sequence[str]) -> Operation:
        """Return a create for an update that has nothing to do with its memory, though the cited messages say it: then
        the memory stays."""
        if operation.kind != "update" or len(memories) != 1:
            return operation
        conversation = self.doubts.conversation
        memory, statement = conversation.of(memories[0].statement), conversation.of(operation.statement)
        wordings = [conversation.of(_text(self.lines[handle])) for handle in evidence]
        tongues = {language(wording.text) for wording in (memory, statement, *wordings)}
        apart = not is_related(memory, statement) and not any(wording.words & memory.words for wording in wordings)
        if (
            not wordings
            or len(tongues) > 1
            or not apart
            or not any(wording.words & statement.words for wording in wordings)
        ):
            return operation
        return replace(operation, kind="create", handles=())

    def _replacing(self, operation: Operation, evidence: Sequence[str]) -> Operation:
        """Return an update for a create that says anew what one memory says otherwise, if the cited messages say that
        something changed: else both would be in force."""
        if operation.kind != "create" or not any(says_change(_text(self.lines[handle])) for handle in evidence):
            return operation
        old = [
            handle for handle, memory in self.offered.items() if is_one_subject(operation.statement, memory.statement)
        ]
        return replace(operation, kind="update", handles=tuple(old)) if len(old) == 1 else operation


def _text(line: str) -> str:
    return line.partition(": ")[2]


def reviewed(answer: Answer, guard: OperationGuard) -> Answer:
    """Return the answer without operations that cite nothing or follow an order. Others are followed, with the reason
    if they look doubtful. An update that speaks of something other than its memory becomes a create."""
    operations: list[Operation] = []
    rejected: list[Rejected] = [*answer.rejected]
    for operation in answer.operations:
        try:
            operations.append(guard.checked(operation))
        except _Refusal as why:
            rejected.append(refused(operation, str(why)))
    return replace(answer, operations=tuple(operations), rejected=tuple(rejected))


def asks_evidence(examples: Answer) -> bool:
    """Return True if the prompt asks for evidence, that is if a create among its examples gives any."""
    return any(operation.kind == "create" and operation.evidence for operation in examples.operations)


_FIELD = "action"


def checked_answer(
    text: str,
    *,
    template: str,
    offered: Mapping[str, Memory],
    shown: str,
    silent: Callable[[Memory], bool],
    repair: Callable[[str], str],
) -> Answer:
    """Return the operations to follow and the rejected ones, with the reasons.

    `template`: of the prompt, with its examples. `offered`: by the handles that the model saw. `shown`: the messages as
    it saw them. `silent`: True if a memory had no support for long, so that it may be deleted without a message, unless
    one mentions it. `repair`: as `read_answer` takes it.
    """
    examples = _examples(template, repair)
    known = [memory.statement for memory in offered.values()]
    lines = lines_of(shown)
    own = without_copies(read_answer(text, repair=repair), examples, known=known)
    own = without_injections(own, [read_answer(line) for line in lines.values() if _FIELD in line])
    conversation = ParsedMaterial(lines, [*known, *(operation.statement for operation in own.operations)])
    guard = OperationGuard(
        offered=offered,
        lines=lines,
        doubts=Doubts(shown, conversation, offered),
        silent=silent,
        asked=asks_evidence(examples),
    )
    return reviewed(own, guard)


@lru_cache(maxsize=8)
def _examples(template: str, repair: Callable[[str], str]) -> Answer:
    """Return the examples of a prompt. Cached, since they stay the same from one evolution to the next."""
    return read_answer(template, repair=repair)
