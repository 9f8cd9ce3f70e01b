"""The log of changes of a scope: replay, state at a time, differences (down to words), origins, and reverting."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

import regex

from roomlore.core.errors import Conflict
from roomlore.core.folding import UNSPACED
from roomlore.core.memory.memory import Action, Change, Memory, MemoryDiff, MemoryStatus, Revised
from roomlore.core.privacy import is_mark
from roomlore.core.text import GRAPHEME, HAN, HANGUL, KANA, LETTER, segment

Versions = Mapping[str, Memory]
"""Every version of a scope by its id."""


def replay(changes: Iterable[Change], start: Versions | None = None) -> dict[str, Memory]:
    """Return the content of the tables after these changes, in order of their numbers."""
    versions = dict(start or {})
    for change in changes:
        for memory_id in change.closes:
            versions[memory_id] = replace(versions[memory_id], status=MemoryStatus.DEPRECATED)
        versions[change.memory.memory_id] = change.memory
    return versions


def active(versions: Versions) -> list[Memory]:
    """Return the memories in force, oldest lineage first."""
    active_memories = [memory for memory in versions.values() if memory.status is MemoryStatus.ACTIVE]
    return sorted(active_memories, key=lambda memory: (memory.created_at, memory.memory_id))


def is_followed(change: Change, closed: str) -> bool:
    """Return True if the id of a closed version leads to the one that the change made: it has it as a parent, or is for
    all and takes its place without telling of it."""
    for_all = change.action is Action.CREATE and not change.memory.evidence
    return closed in change.memory.parents or for_all


@dataclass(frozen=True, slots=True)
class Touch:
    """The effect of a change on the memories in force, without statements. `active`: True if the version that it made
    or touched is active after it; None: unchanged."""

    number: int
    at: datetime
    memory_id: str
    closes: Sequence[str]
    active: bool | None

    @classmethod
    def of(cls, change: Change) -> "Touch":
        active = change.memory.status is MemoryStatus.ACTIVE
        return cls(change.number, change.at, change.memory.memory_id, change.closes, active)


STEP = 250
"""Snapshots are made after entries whose number is a multiple of it."""
LATER = 2 * STEP
"""As many later entries in a row end a walk. Each of them holds a whole step, so that steps decide whether it ends."""
_ENTRIES_AT_ONCE = 10 * STEP


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after an entry of the log, from which a walk can start.

    `number`, `at`: of that entry. `in_force`: as in `Walk`. `reached_from`: a walk to this moment or a later one has
    not ended before the entry; it counts unless it is later itself.
    """

    number: int
    at: datetime
    reached_from: datetime
    in_force: Mapping[str, int]

    def serves(self, at: datetime) -> bool:
        """Return True if a walk to this moment may start from it."""
        return max(self.at, self.reached_from) <= at


class LogState:
    """Follows a log entry by entry, from the beginning or from a snapshot."""

    def __init__(self, start: Snapshot | None = None) -> None:
        self.number = start.number if start else 0
        self._in_force = dict(start.in_force) if start else {}
        self._reached_from = start.reached_from if start else None
        self._at: datetime | None = None
        self._earliest: datetime | None = None

    @property
    def active(self) -> int:
        """The number of active versions."""
        return len(self._in_force)

    def add(self, touch: Touch) -> None:
        """Add the next entry."""
        _apply(self._in_force, touch)
        self.number, self._at = touch.number, touch.at
        self._earliest = touch.at if self._earliest is None else min(self._earliest, touch.at)
        if touch.number % STEP == 0:
            earliest = self._earliest
            self._reached_from = earliest if self._reached_from is None else max(self._reached_from, earliest)
            self._earliest = None

    def snapshot(self) -> Snapshot | None:
        """Return the snapshot after the last entry that was added; None if its number is not a multiple of `STEP`."""
        if self._at is None or self._reached_from is None or self.number % STEP:
            return None
        return Snapshot(self.number, self._at, self._reached_from, dict(self._in_force))


def snapshots_due(*, last: int, changes: int, active: int) -> int:
    """Return the entry up to which snapshots are to be made now, 0 if none is due. `last`: the entry of the last
    snapshot, 0 if there is none; `changes`, `active`: as in the scope.

    A snapshot is as large as the number of active memories, so at least as many entries lie between two of them. An
    old log without snapshots gets them in several steps."""
    end = changes - changes % STEP
    return min(end, last + _ENTRIES_AT_ONCE) if end - last >= max(STEP, active) else 0


def snapshots(state: LogState, touches: Iterable[Touch], *, last: int, until: int) -> Iterator[Snapshot]:
    """Yield the snapshots to store while the state follows these entries: one after the entry `until`, and before it
    where enough entries follow the last one."""
    for touch in touches:
        state.add(touch)
        snapshot = state.snapshot()
        if snapshot is not None and (touch.number == until or touch.number - last >= max(STEP, state.active)):
            last = touch.number
            yield snapshot


class Walk:
    """Follows a log, a page at a time, up to a moment.

    `in_force`: the active versions so far, each with the number of the change that made its present state. `number`: of
    the last change that counts. `read`: of the last change read. `done`: no more pages are needed.

    Entries are in the order in which they were made. If clocks disagreed, an entry that precedes one of that moment
    counts as made by then too, unless `LATER` entries in a row are later: those end the walk.
    """

    def __init__(self, at: datetime, *, start: Snapshot | None = None) -> None:
        """Begin a walk up to `at`. `start`: a snapshot that serves this moment."""
        self.at = at
        self.in_force: dict[str, int] = dict(start.in_force) if start else {}
        self.number: int = start.number if start else 0
        self.read = self.number
        self.done = False
        self._later: list[Touch] = []

    def take(self, page: Iterable[Touch]) -> None:
        """Process the next page; an empty one ends the walk."""
        before = self.read
        for touch in page:
            self.read = touch.number
            self._later.append(touch)
            if touch.at <= self.at:
                self._count()
            elif len(self._later) == LATER:
                self.done = True
                return
        self.done = self.read == before

    def _count(self) -> None:
        for touch in self._later:
            _apply(self.in_force, touch)
        self.number = self.read
        self._later.clear()

    def chosen(self, changes: Iterable[Change]) -> list[Memory]:
        """Return the memories in force, the oldest lineage first; `changes`: of one scope, at least those that made
        them."""
        memories = (change.memory for change in changes if self.in_force.get(change.memory.memory_id) == change.number)
        return sorted(memories, key=_oldest_first)


def _apply(in_force: dict[str, int], touch: Touch) -> None:
    stays = touch.memory_id in in_force if touch.active is None else touch.active
    for memory_id in (*touch.closes, touch.memory_id):
        in_force.pop(memory_id, None)
    if stays:
        in_force[touch.memory_id] = touch.number


def revised(before: Iterable[Memory], after: Iterable[Memory]) -> list[tuple[Memory, Memory]]:
    """Return the memories that are in force at both times and say something else, the oldest lineage first."""
    now = {memory.lineage_id: memory for memory in after}
    stayed = [(old, now[old.lineage_id]) for old in sorted(before, key=_oldest_first) if old.lineage_id in now]
    return [(old, new) for old, new in stayed if _says(old) != _says(new)]


def diff(
    scope: str,
    start: datetime,
    end: datetime,
    *,
    before: Iterable[Memory],
    after: Iterable[Memory],
    changes: Iterable[Change],
) -> MemoryDiff:
    """Return the diff. `before`, `after`: the memories in force at `start` and at `end`; `changes`: those in between,
    in order, at least the ones of lineages that were revised."""
    was = {memory.lineage_id: memory for memory in sorted(before, key=_oldest_first)}
    now = {memory.lineage_id: memory for memory in sorted(after, key=_oldest_first)}
    both = revised(was.values(), now.values())
    made_so: dict[str, list[Change]] = {old.lineage_id: [] for old, _ in both}
    for change in changes:
        if change.memory.lineage_id in made_so:
            made_so[change.memory.lineage_id].append(change)
    return MemoryDiff(
        scope=scope,
        start=start,
        end=end,
        added=tuple(new for name, new in now.items() if name not in was),
        removed=tuple(old for name, old in was.items() if name not in now),
        changed=tuple(Revised(old, new, tuple(made_so[old.lineage_id])) for old, new in both),
        unchanged=len(was.keys() & now.keys()) - len(both),
    )


def origins(start: str, versions: Versions) -> tuple[dict[str, Memory], set[str]]:
    """Return the version and its ancestors by id, and the ids of parents that are not among these versions."""
    memories: dict[str, Memory] = {}
    missing: set[str] = set()
    ahead = [start]
    while ahead:
        name = ahead.pop()
        if name not in versions:
            missing.add(name)
        elif name not in memories:
            memories[name] = versions[name]
            ahead += versions[name].parents
    return memories, missing


def makers(logged: Iterable[Change]) -> dict[str, Change]:
    """Return the change that made each version, by its id; `logged`: the changes of the versions, ascending."""
    makers_by_id: dict[str, Change] = {}
    for change in logged:
        makers_by_id.setdefault(change.memory.memory_id, change)
    return makers_by_id


def _oldest_first(memory: Memory) -> tuple[datetime, str]:
    return memory.created_at, memory.lineage_id


def _says(memory: Memory) -> tuple[str, str]:
    """Return the content of a version: unchanged if it was strengthened, changed if it was redacted."""
    return memory.memory_id, memory.statement


_ACTIVE, _DEPRECATED = MemoryStatus.ACTIVE, MemoryStatus.DEPRECATED
_NAMED = 10


def is_redacted(memory: Memory) -> bool:
    """Return True if the statement was redacted entirely; such a version must not come into force again."""
    return not memory.statement or is_mark(memory.statement)


def touched(changes: Iterable[Change]) -> list[str]:
    """Return the ids of the versions that changes made, touched or closed, each once, the first one first."""
    return list(dict.fromkeys(name for change in changes for name in (*change.closes, change.memory.memory_id)))


def reverted(
    own: Sequence[Change],
    *,
    logged: Sequence[Change],
    versions: Sequence[Memory],
    number: int,
    reason: str,
    now: datetime,
) -> list[Change]:
    """Return the changes that revert an evolution: every version that it touched returns to its earlier state, and
    those that it made are deprecated. Empty if it was reverted already.

    `own`: its changes; an evolution restores nothing. `logged`: all changes of these versions, its own included.
    `versions`: their present state, with the versions in force of their lineages. `number`: of the scope's last change.
    Raises `Conflict`, which names what was changed since.
    """
    evolution_id = own[0].evolution_id
    if any(change.undoes == evolution_id for change in logged):
        return []
    there = {memory.memory_id: memory for memory in versions}
    back = _as_before(own, logged)
    _check_untouched(own, logged, there, back)
    steps = _steps(touched(own), there, back, reason)
    return [
        Change(
            number=at,
            scope=memory.scope,
            action=Action.REVERT,
            memory=memory,
            closes=closes,
            old_statement=_old_statement(memory, closes, there),
            reason=reason,
            undoes=evolution_id,
            at=now,
        )
        for at, (memory, closes) in enumerate(steps, start=number + 1)
    ]


def _old_statement(memory: Memory, closes: tuple[str, ...], there: Mapping[str, Memory]) -> str | None:
    """Return the lineage's statement so far; None if it was not in force."""
    old = there[closes[0]] if closes else there[memory.memory_id]
    return old.statement if old.status is _ACTIVE else None


def _check_untouched(
    own: Sequence[Change], logged: Sequence[Change], there: Mapping[str, Memory], back: Mapping[str, Memory]
) -> None:
    """Raise `Conflict` unless the versions are as the evolution left them, and nothing else replaced them."""
    before = {change.memory.memory_id: change.memory for change in logged if change.number < own[0].number}
    left, names = replay(own, {**there, **before}), touched(own)
    lineages = {left[name].lineage_id for name in names}
    others = [memory for name, memory in there.items() if name not in names and memory.lineage_id in lineages]
    later = [change for change in logged if change.number > own[-1].number and change.action is Action.REDACT]
    changed = [name for name in names if there[name] != left[name]]
    changed += [other.memory_id for other in others if _is_active(other)]
    changed += [change.memory.memory_id for change in later]
    changed += [name for name, memory in back.items() if is_redacted(memory) and _is_deactivated(memory, there[name])]
    if changed:
        shown = ", ".join(f"{name!r:.80}" for name in list(dict.fromkeys(changed))[:_NAMED])
        raise Conflict("evolution_changed_since", changes=shown)


def _as_before(own: Sequence[Change], logged: Iterable[Change]) -> dict[str, Memory]:
    """Return the versions that existed before the evolution touched them, in their earlier state."""
    last = {change.memory.memory_id: change.memory for change in logged if change.number < own[0].number}
    memories: dict[str, Memory] = {}
    for change in own:
        for name in (*change.closes, change.memory.memory_id):
            if name in last and name not in memories:
                memories[name] = replace(last[name], status=_status_before(change, name))
    return memories


def _status_before(change: Change, name: str) -> MemoryStatus:
    ended = name in change.closes or change.action is Action.DELETE
    return _ACTIVE if ended else change.memory.status


def _steps(
    names: Sequence[str], there: Mapping[str, Memory], back: Mapping[str, Memory], reason: str
) -> Iterator[tuple[Memory, tuple[str, ...]]]:
    """Yield each version in its target state, with the versions it replaces; the last touched first."""
    wanted = {name: back.get(name) or _deprecated(there[name], reason) for name in names}
    ends = {memory.lineage_id: name for name, memory in wanted.items() if _is_deactivated(there[name], memory)}
    comes = {memory.lineage_id for name, memory in wanted.items() if _is_deactivated(memory, there[name])}
    for name, memory in reversed(wanted.items()):
        if _is_deactivated(there[name], memory):
            if memory.lineage_id not in comes:
                yield memory, ()
        elif _is_deactivated(memory, there[name]):
            yield memory, (ends[memory.lineage_id],) if memory.lineage_id in ends else ()
        elif name in back and memory != there[name]:
            yield memory, ()


def _is_deactivated(memory: Memory, other: Memory) -> bool:
    return _is_active(memory) and not _is_active(other)


def _is_active(memory: Memory | None) -> bool:
    return memory is not None and memory.status is _ACTIVE


def _deprecated(memory: Memory, reason: str) -> Memory:
    return replace(memory, status=_DEPRECATED, change_summary=reason or memory.change_summary)


_MAX_COMPARED = 1_000_000
"""Pairs of words. Above this, everything between the first and the last difference is one change."""
# The kinds of characters, of which runs are compared as words.
_KINDS = (
    ("han", regex.compile(rf"[{HAN}]")),
    ("kana", regex.compile(rf"[{KANA}]\p{{M}}*")),
    ("hangul", regex.compile(rf"[{HANGUL}]+")),
    ("letter", regex.compile(rf"(?:{LETTER}|[{UNSPACED}]).*", regex.DOTALL)),
    ("space", regex.compile(r"\s+")),
)
_TELLING = frozenset({"han", "kana", "hangul", "letter"})

Became = Literal["same", "gone", "new"]


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A part of both texts (`same`), of the old one alone (`gone`), or of the new one alone (`new`)."""

    became: Became
    text: str


def words_diff(old: str, new: str) -> tuple[TextPiece, ...]:
    """Return the differences between two texts. No piece is empty, no two neighbours are of one kind, and removed text
    precedes its replacement. Never raises on any text."""
    before, after = _words(old), _words(new)
    head = _shared(before, after)
    tail = _shared(reversed(before[head:]), reversed(after[head:]))
    middle = _compared(before[head : len(before) - tail], after[head : len(after) - tail])
    pieces = [("same", before[:head], before[:head]), *middle]
    pieces.append(("same", before[len(before) - tail :], before[len(before) - tail :]))
    return tuple(_joined(_without_small_gaps(pieces)))


_Stretch = tuple[str, list[str], list[str]]
"""'same' or 'changed', with the words of the old and of the new text."""


def _words(text: str) -> list[str]:
    """Return the units of comparison: words, runs of white space, any other character by itself."""
    characters = GRAPHEME.findall(text)
    kinds = {character: _kind(character) for character in set(characters)}
    return [word for kind, run in groupby(characters, key=kinds.__getitem__) for word in _cut(kind, list(run))]


def _kind(character: str) -> str:
    return next((name for name, form in _KINDS if form.fullmatch(character)), "other")


def _cut(kind: str, run: list[str]) -> list[str]:
    if kind == "other":
        return run
    return list(segment("".join(run))) if kind == "han" else ["".join(run)]


def _shared(words: Iterable[str], other: Iterable[str]) -> int:
    """Return the number of leading words that both share."""
    count = 0
    for mine, theirs in zip(words, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _compared(before: list[str], after: list[str]) -> Iterator[_Stretch]:
    if len(before) * len(after) > _MAX_COMPARED:
        yield "changed", before, after
        return
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        yield "same" if tag == "equal" else "changed", before[i:j], after[k:m]


def _without_small_gaps(pieces: Iterable[_Stretch]) -> list[_Stretch]:
    """Merge white space and punctuation between two changes into the change."""
    stretches: list[_Stretch] = []
    for became, old, new in (piece for piece in pieces if piece[1] or piece[2]):
        if (
            became == "changed"
            and len(stretches) > 1
            and _is_small_gap(stretches[-1])
            and stretches[-2][0] == "changed"
        ):
            (_, old_crumb, new_crumb), (_, old_before, new_before) = stretches.pop(), stretches.pop()
            old, new = old_before + old_crumb + old, new_before + new_crumb + new
        stretches.append((became, old, new))
    return stretches


def _is_small_gap(piece: _Stretch) -> bool:
    became, words, _ = piece
    return became == "same" and not any(_kind(character) in _TELLING for word in words for character in word)


def _joined(pieces: Iterable[_Stretch]) -> Iterator[TextPiece]:
    for became, old, new in pieces:
        if became == "same":
            yield TextPiece("same", "".join(old))
            continue
        if old:
            yield TextPiece("gone", "".join(old))
        if new:
            yield TextPiece("new", "".join(new))
