"""What is remembered, and the log of it, without one person.

The same function rewrites a version in its table and in every entry of the log that holds it, so that replaying the log
still gives the tables.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from roomlore.core.memory.models import Change, Evolution, Memory, Source
from roomlore.core.privacy.copies import without_copies
from roomlore.core.privacy.messages import each_text
from roomlore.core.privacy.traces import Traces, mark

_LONGEST_NAME = 40
"""A text in the facts of an evolution up to this length and without a space is the name of something."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Takes a person out of the memories of a scope.

    `texts_of`: what the person says in a message, None for a message that is not theirs. `edited_at`: when the person
    last changed it. `deleted`: sources that were deleted and may have been theirs. `others`: sources that are messages
    of other people. `whole`: everything of the scope is the person's. `shared`: the scope is that of a room in which
    the person spoke: without a source, what repeats a passage is theirs.
    """

    traces: Traces
    texts_of: Callable[[Source], str | None]
    others: frozenset[Source] = frozenset()
    whole: bool = False
    shared: bool = False
    edited_at: Callable[[Source], datetime | None] = lambda _: None
    deleted: frozenset[Source] = frozenset()

    def theirs(self, memory: Memory) -> bool:
        """Whether the person supports it."""
        return self.whole or any(map(self.supports, memory.sources))

    def supports(self, source: Source) -> bool:
        """Whether the message is the person's, or may have been."""
        return source in self.deleted or self.texts_of(source) is not None

    def rests_on_them_alone(self, memory: Memory) -> bool:
        """Whether nobody else supports it, as an assistant supports nothing by itself; or whether the person changed a
        message since, so that nobody knows which words of it are theirs."""
        if self.whole or not self.theirs(memory):
            return self.whole
        return not self.others.intersection(memory.sources) or any(self._changed_since(memory))

    def _changed_since(self, memory: Memory) -> Iterable[bool]:
        times = (self.edited_at(source) for source in memory.sources)
        return (at is not None and at > memory.updated_at for at in times)

    def version(self, memory: Memory) -> Memory:
        """The version without the person; where it rests on them alone, without what it said."""
        if self.rests_on_them_alone(memory):
            return replace(
                memory, statement=mark(memory.statement), tags=(), category="", change_summary="", sources=(),
                made_by=self.traces.redact_name(memory.made_by),
            )  # fmt: skip
        change = self._change(memory)
        return replace(
            memory,
            statement=change(memory.statement),
            tags=tuple(dict.fromkeys(map(change, memory.tags))),
            category=change(memory.category),
            change_summary=change(memory.change_summary),
            made_by=self.traces.redact_name(memory.made_by),
            sources=tuple(source for source in memory.sources if not self.supports(source)),
        )

    def statements(self, memories: Iterable[Memory]) -> dict[str, str]:
        """What each statement that is changed becomes: entries of the log say what was said before."""
        both = ((memory.statement, self.version(memory).statement) for memory in memories)
        return {before: after for before, after in both if before != after}

    def entry(self, change: Change, statements: Mapping[str, str]) -> Change:
        """An entry of the log without the person."""
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
        return mark(said) if self.whole else statements.get(said, self._others(change.memory)(said))

    def _change(self, memory: Memory) -> Callable[[str], str]:
        """For what the person only mentioned in passing names stay: they may be another's too."""
        if not self.theirs(memory):
            return self._others(memory)
        said = [text for text in map(self.texts_of, memory.sources) if text]

        def change(text: str) -> str:
            return self.traces.redact(without_copies(text, said), and_names=True)

        return change

    def _others(self, memory: Memory) -> Callable[[str], str]:
        """For what rests on others: merely the same words stay."""
        return self.traces.redact if self.shared and not memory.sources else self.traces.redact_others


def record_without(evolution: Evolution, traces: Traces, *, touched: bool) -> Evolution:
    """What made memories, without the person. `touched`: it read something that they said: then all that a model said
    goes, and of the facts every text that is no name."""
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
