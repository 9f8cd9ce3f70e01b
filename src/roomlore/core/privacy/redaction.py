"""Messages and memories without one person, and the report of what was removed."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from roomlore.core.audience import EvidenceRoom, evidence_of
from roomlore.core.json_values import is_id
from roomlore.core.memory.memory import Change, Evolution, Memory, Source
from roomlore.core.models import MessageFeatures, ReplyInfo, StoredMessage
from roomlore.core.privacy.traces import Traces, cut_out, mark, without_copies


@dataclass(frozen=True, slots=True)
class Left:
    """A remaining trace of the person. `place`: the table, cache or index; `count`: number of entries; `why`: the
    obstacle, and what to do."""

    place: str
    count: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """The result of forgetting, or with `dry_run` the expected one.

    `places`: entries removed or rewritten, by place; places without any are omitted. `rooms_removed`: rooms removed
    entirely. `retired`: ids of memories deprecated because they rested on the person alone; `rewritten`: ids of
    memories that stay, without the person. `same_words`: entries of others, by place, with words that the person said
    too; they stay since nothing links them to the person. `left`: what remains and why; calling again continues with
    it. `checked`: rows of each table that were searched at the end; empty with `dry_run`.
    """

    user_id: str
    dry_run: bool
    places: Mapping[str, int] = field(default_factory=dict)
    rooms_removed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    same_words: Mapping[str, int] = field(default_factory=dict)
    left: tuple[Left, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict)
    started_at: datetime
    finished_at: datetime

    @property
    def complete(self) -> bool:
        """True if nothing is left that roomlore can reach."""
        return not self.left


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with every text changed, including field names; a number that may be an id changes if it is
    one."""
    if isinstance(value, str):
        return change(value)
    if is_id(value):
        changed = change(str(value))
        return value if changed == str(value) else changed
    if isinstance(value, Mapping):
        return {change(name): each_text(one, change) for name, one in value.items()}
    return [each_text(one, change) for one in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Taken:
    """The parts of another sender's message that are copied from the person.

    `answered`: the person's texts that the platform, a turn or a quotation links it to. `counts`: True if a passage was
    the person's by then. `linked`: passages count anywhere, otherwise only in quotations. `called`: it mentions the
    person by '@name'. `named`: its mentions or its reply link name the person.
    """

    answered: Sequence[str] = ()
    counts: Callable[[str], bool] = lambda _: True
    linked: bool = False
    called: bool = False
    named: bool = False

    def redact(self, text: str, traces: Traces) -> str:
        """Return the text with a mark in place of each copied part."""
        text = without_copies(text, self.answered)
        passages = traces.repeats if self.linked else traces.quotes
        calls = traces.calls(text) if self.called else ()
        return cut_out(text, [*traces.ids(text, named=self.named), *calls, *passages(text, self.counts)])


def without_person(message: StoredMessage, traces: Traces, *, taken: Taken, gone: Container[str]) -> StoredMessage:
    """Return another sender's message without the person.

    `gone`: ids of the person's messages in its room; no reference to them stays.
    """

    def change(text: str) -> str:
        return mark(text) if traces.is_named(text) else taken.redact(text, traces)

    return replace(
        message,
        text=taken.redact(message.text, traces),
        metadata=each_text(message.metadata, change),
        mentions=tuple(one for one in message.mentions if one != traces.user_id),
        reply_to=_kept(message.reply_to, traces, gone),
        root_id=_kept(message.root_id, traces, gone),
        turn_id=_kept(message.turn_id, traces, gone),
    )


def features_without(features: MessageFeatures, traces: Traces, *, gone: Container[str]) -> MessageFeatures:
    """Return the features of another sender's message, without the person."""
    return replace(
        features,
        mentions=_others(features.mentions, traces),
        addressed=_others(features.addressed, traces),
        partners=_others(features.partners, traces),
        reply=_reply_without(features.reply, traces, gone),
    )


def _kept(name: str | None, traces: Traces, gone: Container[str]) -> str | None:
    return None if name is None or name in gone or traces.named_in(name) else name


def _others(sender_ids: Sequence[str], traces: Traces) -> tuple[str, ...]:
    return tuple(one for one in sender_ids if one != traces.user_id)


def _reply_without(reply: ReplyInfo | None, traces: Traces, gone: Container[str]) -> ReplyInfo | None:
    if reply is None:
        return None
    theirs = reply.sender_id == traces.user_id or _kept(reply.message_id, traces, gone) != reply.message_id
    return replace(reply, message_id=None, sender_id=None) if theirs else reply


_LONGEST_NAME = 40
"""A text without a space in the facts of an evolution, up to this length, is an identifier."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Removes a person from the memories of a scope.

    `texts_of`: the person's texts in a message, None if the message is not theirs. `edited_at`: when the person last
    changed it. `deleted`: deleted sources that may have been theirs. `others`: sources that are messages of other
    people. `whole`: the scope is the person's own. `emptied`: the scope is that of a room that is removed: what others
    said elsewhere stays. `shared`: the scope is that of a room in which the person spoke: without a source, a statement
    that repeats a passage counts as theirs.
    """

    traces: Traces
    texts_of: Callable[[Source], str | None]
    others: frozenset[Source] = frozenset()
    whole: bool = False
    emptied: bool = False
    shared: bool = False
    edited_at: Callable[[Source], datetime | None] = lambda _: None
    deleted: frozenset[Source] = frozenset()

    def theirs(self, memory: Memory) -> bool:
        """Return True if the person supports it."""
        return self.whole or any(map(self.supports, memory.sources))

    def supports(self, source: Source) -> bool:
        """Return True if the message is the person's, or may have been."""
        return source in self.deleted or self.texts_of(source) is not None

    def rests_on_them_alone(self, memory: Memory) -> bool:
        """Return True if nobody else supports it (an assistant alone does not count), if it has no messages and nobody
        else said it, or if the person changed a message since, so that their share of the words is unknown."""
        if self.whole:
            return True
        if self.emptied:
            return not self.others.intersection(memory.sources)
        if not memory.sources:
            return set(memory.said_by) == {self.traces.user_id}
        if not self.theirs(memory):
            return False
        return not self.others.intersection(memory.sources) or any(self._changed_since(memory))

    def _changed_since(self, memory: Memory) -> Iterable[bool]:
        times = (self.edited_at(source) for source in memory.sources)
        return (at is not None and at > memory.updated_at for at in times)

    def version(self, memory: Memory) -> Memory:
        """Return the version without the person; redacted entirely if it rests on them alone."""
        if self.rests_on_them_alone(memory):
            return replace(
                memory, statement=mark(memory.statement), tags=(), category="", change_summary="", doubtful="",
                sources=(), **self._people(memory),
                evidence=self._evidence(memory), shared_with=tuple(map(self.traces.redact_name, memory.shared_with)),
                made_by=self.traces.redact_name(memory.made_by),
            )  # fmt: skip
        change = self._change(memory)
        return replace(
            memory,
            statement=change(memory.statement),
            tags=tuple(dict.fromkeys(map(change, memory.tags))),
            category=change(memory.category),
            change_summary=change(memory.change_summary),
            doubtful=change(memory.doubtful),
            **self._people(memory),
            made_by=self.traces.redact_name(memory.made_by),
            sources=tuple(source for source in memory.sources if not self.supports(source)),
            evidence=self._evidence(memory),
            shared_with=tuple(map(self.traces.redact_name, memory.shared_with)),
        )

    def _people(self, memory: Memory) -> dict[str, Any]:
        """Return whom it is about and who said it, without the person."""
        others = tuple(one for one in memory.said_by if not self.traces.named_in(one))
        return {"owner": self.traces.redact_name(memory.owner), "said_by": others}

    def _evidence(self, memory: Memory) -> tuple[EvidenceRoom, ...]:
        """Return the evidence, which stays although messages go: without it the memory would be for all."""
        return evidence_of((), (replace(one, room_id=self.traces.redact_name(one.room_id)) for one in memory.evidence))

    def statements(self, memories: Iterable[Memory]) -> dict[str, str]:
        """Return the changed statements, old to new, since entries of the log contain the earlier statement."""
        both = ((memory.statement, self.version(memory).statement) for memory in memories)
        return {before: after for before, after in both if before != after}

    def entry(self, change: Change, statements: Mapping[str, str]) -> Change:
        """Return an entry of the log without the person."""
        alone, redact = self.rests_on_them_alone(change.memory), self._change(change.memory)
        return replace(
            change,
            memory=self.version(change.memory),
            old_statement=self._before(change, statements),
            reason="" if alone else redact(change.reason),
            actor=self.traces.redact_name(change.actor),
        )

    def _before(self, change: Change, statements: Mapping[str, str]) -> str | None:
        said = change.old_statement
        if said is None:
            return None
        if self.whole or (self.emptied and self.rests_on_them_alone(change.memory)):
            return mark(said)
        return statements.get(said, self._others(change.memory)(said))

    def _change(self, memory: Memory) -> Callable[[str], str]:
        """Return the rewrite for a memory the person only mentioned: names stay, since they may be another person's."""
        if not self.theirs(memory):
            return self._others(memory)
        said = [text for text in map(self.texts_of, memory.sources) if text]

        def change(text: str) -> str:
            return self.traces.redact(without_copies(text, said), and_names=True)

        return change

    def _others(self, memory: Memory) -> Callable[[str], str]:
        """Return the rewrite for a memory that rests on others: equal words alone stay."""
        return self.traces.redact if self.shared and not memory.sources else self.traces.redact_others


def record_without(evolution: Evolution, traces: Traces, *, touched: bool) -> Evolution:
    """Return the record of an evolution without the person. `touched`: it read something that they said; then the
    model's texts are removed, and of the facts every text that is not an identifier."""
    if touched:
        return replace(
            evolution, raw_answer="", quarantined=(), error="", facts=each_text(evolution.facts, _names_only(traces))
        )
    return replace(
        evolution,
        raw_answer=traces.redact_others(evolution.raw_answer),
        quarantined=tuple(
            (traces.redact_others(line), traces.redact_others(why)) for line, why in evolution.quarantined
        ),
        error=traces.redact_others(evolution.error),
        facts=each_text(evolution.facts, traces.redact_others),
    )


def _names_only(traces: Traces) -> Callable[[str], str]:
    def change(text: str) -> str:
        is_name = text.isascii() and len(text) <= _LONGEST_NAME and not any(sign.isspace() for sign in text)
        return traces.redact_name(text) if is_name else mark(text)

    return change
