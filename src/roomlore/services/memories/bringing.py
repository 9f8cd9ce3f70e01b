"""Bringing over what another system remembers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.foreign import FactImport, ForeignMemories, Skipped
from roomlore.core.memory.intake import MAX_BATCH, NewMemory, checked
from roomlore.core.memory.models import MemoryStatus
from roomlore.core.memory.writing import Remembered
from roomlore.services.memories.writer import MemoryWriter

Foreign = Path | str | bytes | Mapping[str, Any] | Sequence[Any]
_EXCERPT = 80


class ReadMemories(Protocol):
    """Reads what another system wrote. Raises `InvalidInput` where nothing of it can be read."""

    def __call__(self, source: Foreign, *, form: str | None, scope: str | None) -> ForeignMemories: ...


async def bring(writer: MemoryWriter, found: ForeignMemories, *, dry_run: bool) -> FactImport:
    """Writes what was read, in as few transactions as may be."""
    good: list[tuple[str, NewMemory]] = []
    skipped = list(found.skipped)
    for place, memory in found.memories:
        try:
            good.append((place, checked(memory)))
        except InvalidInput as error:
            skipped.append(Skipped(place, str(error), memory.statement[:_EXCERPT]))
    counts: Counter[str] = Counter()
    for start in range(0, len(good), MAX_BATCH):
        part = good[start : start + MAX_BATCH]
        done = await writer.add([memory for _, memory in part], on_conflict="report", refresh=True, dry_run=dry_run)
        counts.update(one.outcome for one in done)
        skipped += [_left(*entry, one) for entry, one in zip(part, done, strict=True) if one.outcome == "conflict"]
    return FactImport(
        form=found.form,
        added=counts["added"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        skipped=tuple(skipped),
        scopes=tuple(dict.fromkeys(memory.scope for _, memory in good)),
        dry_run=dry_run,
    )


def _left(place: str, new: NewMemory, done: Remembered) -> Skipped:
    there = done.memory
    what = "deleted" if there.status is not MemoryStatus.ACTIVE else "changed here, or is newer,"
    return Skipped(place, f"memory {there.memory_id!r:.80} was {what} and stays as it is", new.statement[:_EXCERPT])
