"""Guards against weak answers: requests copied from the prompt, damaging updates, statements without evidence."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.plan import refused
from roomlore.core.evolution.prompt import found, lines_of, said
from roomlore.core.evolution.requests import Answer, Rejected, Rules, Wish
from roomlore.core.evolution.wording import Talk, Wording, is_related, is_spoken_of, likeness, loss, still_says
from roomlore.core.memory.memory import Memory, Source

_OF_PROMPT = "It repeats an example of the prompt."
_OF_CHAT = "It repeats a line that somebody wrote in the chat, in the form of an answer."


def without_copies(answer: Answer, examples: Answer, *, known: Iterable[str]) -> Answer:
    """Return the answer without statements copied from an example, and without deletes that copy an example's reason
    and evidence.

    `examples`: the prompt's template, read as an answer. `known`: the statements of the offered memories; a statement
    that equals one of them is not a copy.
    """
    return _without(answer, examples.wishes, known, _OF_PROMPT)


def without_orders(answer: Answer, orders: Iterable[Answer]) -> Answer:
    """Return the answer without wishes that a message spelled out for the model, whichever memory they name. `orders`:
    messages, each read as an answer."""
    return _without(answer, [wish for one in orders for wish in one.wishes], (), _OF_CHAT)


def _without(answer: Answer, shown_wishes: Iterable[Wish], known: Iterable[str], why: str) -> Answer:
    shown = {_copied_part(wish) for wish in shown_wishes if wish.kind != "keep"} - {(said(one), ()) for one in known}
    copied = [wish for wish in answer.wishes if wish.kind != "keep" and _copied_part(wish) in shown]
    return replace(
        answer,
        wishes=tuple(wish for wish in answer.wishes if wish not in copied),
        rejected=(*answer.rejected, *(refused(wish, why) for wish in copied)),
    )


def _copied_part(wish: Wish) -> tuple[str, tuple[str, ...]]:
    """Return the part of a wish that a copy shares with its example, whichever memory it names."""
    return ("delete " + said(wish.reason), wish.evidence) if wish.kind == "delete" else (said(wish.statement), ())


class _Refusal(ValueError):
    """The reason why a wish is refused."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """The material that wishes are checked against.

    `offered`: memories by handle. `talk`: what was said. `quiet`: True if a memory may be deleted although no cited
    message mentions it. `asked`: True if the prompt asks for evidence. `given`: True if the answer gives any. If no
    line gives evidence, as models do that follow a format without it, citations cannot be checked: then all messages
    count, for an update to another subject and for a delete of something still said.
    """

    offered: Mapping[str, Memory]
    talk: Talk
    quiet: Callable[[Memory], bool]
    asked: bool
    given: bool

    def harmless(self, wish: Wish) -> Wish:
        """Return the wish in the form that can be followed. Raises `_Refusal` with the reason if there is none."""
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
        """Yield the handles under which memories were offered; unknown handles are refused elsewhere."""
        handles = {memory.memory_id: handle for handle, memory in self.offered.items()}
        for given in wish.handles:
            if memory := found(given, self.offered):
                yield handles[memory.memory_id]

    def _create(self, wish: Wish, heard: Sequence[Wording]) -> None:
        """Check a create that repeats a memory, since it replaces that memory."""
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
            raise _Refusal(f"It says something else than {handle}, and no message speaks of it.")
        own = replace(wish, kind="create", handles=())
        self._create(own, heard)
        return own

    def _merge(self, wish: Wish, memories: Mapping[str, Memory], heard: Sequence[Wording]) -> None:
        for handle, memory in memories.items():
            if not is_related(self.talk.of(memory.statement), self.talk.of(wish.statement)):
                raise _Refusal(f"It leaves out what {handle} says.")
            self._check(wish, handle, heard, merged=True)

    def _check(self, wish: Wish, handle: str, heard: Sequence[Wording], *, merged: bool = False) -> None:
        if not self.given:
            return
        memory = self.talk.of(self.offered[handle].statement)
        if why := loss(memory, self.talk.of(wish.statement), heard, merged=merged):
            raise _Refusal(f"{handle} stays: {why[0].lower()}{why[1:]}")

    def _delete(self, memories: Mapping[str, Memory], cited: Sequence[Wording], heard: Sequence[Wording]) -> None:
        for handle, memory in memories.items():
            wording = self.talk.of(memory.statement)
            if still_says(wording, heard):
                raise _Refusal(f"{handle} stays: a message still says it.")
            if self.asked and self.given and not is_spoken_of(wording, cited) and not self.quiet(memory):
                raise _Refusal(f"{handle} stays: no message that is given as evidence speaks of it.")


def without_damage(answer: Answer, guarded: Guarded) -> Answer:
    """Return the answer without wishes that would lose something true of a memory. An update that speaks of something
    other than its memory becomes a create, if messages speak of it."""
    wishes: list[Wish] = []
    rejected: list[Rejected] = [*answer.rejected]
    for wish in answer.wishes:
        try:
            wishes.append(guarded.harmless(wish))
        except _Refusal as harm:
            rejected.append(refused(wish, str(harm)))
            continue
        if wishes[-1].kind != wish.kind:
            why = f"It says something else than {wish.handles[0]}, which stays; it is taken as a memory of its own."
            rejected.append(refused(wish, why))
    return replace(answer, wishes=tuple(wishes), rejected=tuple(rejected))


_REWORDED, _RELATED = 0.8, 0.25
"""Least likeness to a memory of a rewording, and of a statement on the same subject or a merge of five."""
_WHY = "It gives no message as evidence, and says something new."


def without_unfounded(
    answer: Answer, examples: Answer, *, offered: Mapping[str, Memory], messages: Mapping[str, Source]
) -> Answer:
    """Return the answer without creates and updates that cite no message, unless an update rewords one of its memories.

    An answer without any evidence comes from a model that ignores the field: then creates stay, and updates on the same
    subject as one of their memories. `examples`: the prompt's template, read as an answer. If no create among them
    gives evidence, the prompt does not ask for any, and everything stays.
    """
    if not asks_evidence(examples):
        return answer
    gives = any(wish.evidence for wish in answer.wishes)
    asked = [wish for wish in answer.wishes if gives or wish.kind != "create"]
    reworded = _REWORDED if gives else _RELATED
    unfounded = [wish for wish in asked if _is_unfounded(wish, offered, messages, reworded)]
    return replace(
        answer,
        wishes=tuple(wish for wish in answer.wishes if wish not in unfounded),
        rejected=(*answer.rejected, *(refused(wish, _WHY) for wish in unfounded)),
    )


def asks_evidence(examples: Answer) -> bool:
    """Return True if the prompt asks for evidence, that is if a create among its examples gives any."""
    return any(wish.kind == "create" and wish.evidence for wish in examples.wishes)


def _is_unfounded(wish: Wish, offered: Mapping[str, Memory], messages: Mapping[str, Source], reworded: float) -> bool:
    if wish.kind not in ("create", "update") or any(found(handle, messages) for handle in wish.evidence):
        return False
    known = [memory for handle in wish.handles if (memory := found(handle, offered))]
    least = _RELATED if len(known) > 1 else reworded
    return all(likeness(wish.statement, memory.statement) < least for memory in known)


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
    """Return the wishes to follow and the rejected ones, with the reasons.

    `template`: of the prompt, with its examples. `offered`, `messages`: by the handles that the model saw. `shown`: the
    messages as it saw them. `quiet`: True if a memory may be deleted although no cited message mentions it. `repair`:
    as `read_answer` takes it.
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
    """Return the examples of a prompt. Cached, since they stay the same from one evolution to the next."""
    return read_answer(template, repair=repair)
