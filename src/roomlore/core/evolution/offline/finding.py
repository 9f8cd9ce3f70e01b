"""Compare with what is known: memories that new messages repeat, and findings that are not needed again."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from roomlore.core.evolution.offline.patterns import (
    ParsedStatement,
    StatementWriter,
    Topic,
    addresses,
    adjoining,
    is_pasted,
    parse_statement,
    repetitions,
    shared_links,
    statements,
    surface,
    topics,
)
from roomlore.core.evolution.offline.reading import Line, Reading, Support, Weights, Wording, is_topical, keys_of
from roomlore.core.evolution.requests import Operation
from roomlore.core.memory.memory import Memory, Source
from roomlore.core.summary.sentences import worth
from roomlore.core.text import HAN, fold, graphemes, language

MOST_CITED = 20
_SHARE = 0.6
_FEWEST = 2
_NEAR = 0.35
_HAN = re.compile(f"[{HAN}]")


@dataclass(frozen=True)
class Known:
    """A statement that exists or was deleted. `parsed`: its content, if this engine made it."""

    statement: str

    @cached_property
    def parsed(self) -> ParsedStatement | None:
        return parse_statement(self.statement)

    @cached_property
    def wording(self) -> Wording:
        return Wording.of((self.parsed and self.parsed.said) or self.statement)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Its subject words."""
        about = " ".join(self.parsed.words) if self.parsed and self.parsed.words else self.statement
        return frozenset(key for key in keys_of(fold(about)) if is_topical(key))

    def is_stated_by(self, line: Line, wording: Wording, weights: Weights) -> bool:
        """Return True if a line that states something also says it."""
        if self.parsed is None:
            return (
                self._shares_words(line)
                and self.wording.allows(wording)
                and weights.share(self.wording, wording) >= _SHARE
            )
        if self.parsed.said:
            return weights.says(self.wording, wording)
        if self.parsed.link:
            return self.parsed.link in addresses(line)
        return all(contains(line, word) for word in self.parsed.words)

    def _shares_words(self, line: Line) -> bool:
        """Return True if the line shares at least two words, one of them telling."""
        shared = keys_of(fold(self.statement)).keys() & line.spans.keys()
        return len(shared) >= _FEWEST and any(map(is_topical, shared))


def contains(line: Line, word: str) -> bool:
    """Return True if the line has the word or phrase, in any form."""
    folded = fold(word)
    if _HAN.search(folded):
        return folded in line.folded
    keys = keys_of(folded).keys()
    return bool(keys) and keys <= line.spans.keys()


def covers(known: Known, keys: Collection[str]) -> bool:
    """Return True if this engine made it and it is about one of these words, or if it contains them all."""
    if known.parsed and known.parsed.words:
        return not known.keys.isdisjoint(keys)
    return known.keys.issuperset(key for key in keys if is_topical(key))


def repeats(known: Known, wording: Wording, weights: Weights) -> bool:
    """Return True if the sentence is so close that only one of both is kept."""
    return max(weights.likeness(known.wording, wording), weights.share(known.wording, wording)) >= _NEAR


MOST_FOUND = 5
MOST_TOPICS = 3
_MANY = 20
"""The number of memories from which no more topics are created; repeated statements still are."""
_OVERLAP = 0.5
_GROWN = 2
_COMPARED = 30
_WORTH, _LENGTH, _HANDY = 0.2, 0.003, 100
_NOTHING = Wording(frozenset(), frozenset(), negated=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A new finding. `keys`: its subject words."""

    statement: str
    support: Support
    tags: tuple[str, ...] = ()


class Finder:
    """Builds the operations of a reading. `deleted`: statements not to be made again. `names`: handles of messages."""

    def __init__(
        self,
        reading: Reading,
        memories: Mapping[str, Memory],
        *,
        deleted: Sequence[str],
        names: Mapping[Source, str],
    ) -> None:
        self._lines = reading.lines
        self._typed = [line for line in reading.lines if not is_pasted(line)]
        self._writer = StatementWriter(reading.days)
        self._known = {handle: Known(memory.statement) for handle, memory in memories.items()}
        self._cited = [frozenset(names[one] for one in memory.sources if one in names) for memory in memories.values()]
        self._passed = [*self._known.values(), *map(Known, deleted)]
        self._stating = list(statements(reading.lines))
        self._wordings = {line: Wording.of(line.text, line.spans) for line in self._stating}
        self._weights = Weights(self._wordings.values())

    def operations(self) -> Iterator[Operation]:
        number = 0
        for handle, known in self._known.items():
            if operation := self._confirmation(number + 1, handle, known):
                number += 1
                yield operation
        for found in self._new():
            number += 1
            zh = language(found.statement) == "zh"
            reason = f"{len(found.support.lines)} 条消息" if zh else f"{len(found.support.lines)} messages"
            yield Operation(
                line=number,
                kind="create",
                statement=found.statement,
                reason=reason,
                tags=found.tags,
                evidence=found.support.handles,
            )

    def _confirmation(self, number: int, handle: str, known: Known) -> Operation | None:
        """Return a confirmation, or a new statement if it now holds for much longer."""
        saying = [line for line in self._candidate_lines(known) if self._says(line, known)]
        fresh = list(dict.fromkeys(line.handle for line in saying if line.fresh))[-MOST_CITED:]
        if not fresh:
            return None
        support = Support.of(saying)
        statement, evidence = known.statement, tuple(fresh)
        if known.parsed and len(support.days) >= _GROWN * known.parsed.days:
            statement, evidence = self._rephrased(known.parsed, support) or statement, support.handles
        zh = language(statement) == "zh"
        english = f"Said again in {len(fresh)} new message{'' if len(fresh) == 1 else 's'}"
        reason = f"{len(fresh)} 条新消息又说到" if zh else english
        return Operation(
            line=number, kind="update", handles=(handle,), statement=statement, reason=reason, evidence=evidence
        )

    def _candidate_lines(self, known: Known) -> Sequence[Line]:
        if known.parsed is None or known.parsed.said:
            return self._stating
        return self._lines if known.parsed.link else self._typed

    def _says(self, line: Line, known: Known) -> bool:
        return known.is_stated_by(line, self._wordings.get(line, _NOTHING), self._weights)

    def _rephrased(self, parsed: ParsedStatement, support: Support) -> str:
        """Return the statement anew; '' if the quoted sentence is no longer read, since another one would mean
        something else."""
        if parsed.words:
            return self._writer.topic(parsed.words, self._most_central(support.lines), support)
        if parsed.link:
            return self._writer.link(parsed.link, support)
        quoted = next((line for line in support.lines if line.text == parsed.said), None)
        return self._writer.repetition(quoted, support) if quoted else ""

    def _new(self) -> Iterator[Finding]:
        taken, made, about = list(self._cited), 0, 0
        for found in self._candidates():
            if made >= MOST_FOUND or about >= MOST_TOPICS:
                return
            if self._is_known(found, taken):
                continue
            self._passed.append(Known(found.statement))
            taken.append(frozenset(found.support.handles))
            made += 1
            about += bool(found.tags)
            yield found

    def _is_known(self, found: Finding, taken: Sequence[frozenset[str]]) -> bool:
        mine = frozenset(found.support.handles)
        if any(len(mine & other) >= _OVERLAP * len(mine) for other in taken):
            return True
        new = Known(found.statement)
        if new.parsed and new.parsed.words:
            return any(covers(known, new.keys) for known in self._passed)
        if new.parsed and new.parsed.said:
            return any(repeats(known, new.wording, self._weights) for known in self._passed)
        return any(found.statement.rsplit(" ", 1)[-1] in known.statement for known in self._passed)

    def _candidates(self) -> Iterator[Finding]:
        wordings = [self._wordings[line] for line in self._stating]
        for one in repetitions(self._stating, wordings, self._weights):
            yield Finding(statement=self._writer.repetition(one.line, one.support), support=one.support)
        for link in shared_links(self._lines):
            yield Finding(statement=self._writer.link(link.address, link.support), support=link.support)
        for topic in topics(self._typed) if len(self._known) < _MANY else ():
            yield self._about(topic)

    def _about(self, topic: Topic) -> Finding:
        line = self._most_central(topic.support.lines)
        lines = (line, *topic.support.lines)
        if topic.phrase:
            words: tuple[str, ...] = (min((adjoining(one, topic.keys) for one in lines), key=len),)
        else:
            keys = sorted(topic.keys, key=lambda key: line.spans[key])
            words = tuple(min((surface(one, key) for one in lines), key=len) for key in keys)
        return Finding(statement=self._writer.topic(words, line, topic.support), support=topic.support, tags=words)

    def _most_central(self, lines: Sequence[Line]) -> Line:
        """Return the line most like the others and most complete by itself; a statement if there is one."""
        some = [line for line in lines if line in self._wordings] or list(lines)
        some = some[-_COMPARED:]
        wordings = {line: self._wordings.get(line) or Wording.of(line.text, line.spans) for line in some}

        def value(line: Line) -> float:
            like = math.fsum(self._weights.likeness(wordings[line], other) for other in wordings.values())
            return like / len(some) + _WORTH * worth(line.text) - _LENGTH * max(graphemes(line.text) - _HANDY, 0)

        return max(some, key=lambda line: (value(line), line.text, line.handle))
