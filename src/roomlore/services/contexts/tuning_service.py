"""The verb of `lore.tuning`: better weights for `weighted`, from labels, or from feedback and corrected links."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput
from roomlore.core.experiments import UsageSelection
from roomlore.core.models import LinkKind, Target
from roomlore.core.tuning import Example, RoomLabels, TuningReport, from_feedback, read_labels, tune
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.contexts.strategies import Gatherer, scorer

_PAGE = 200
_JUDGED = UsageSelection(judged=True)


class TuningService:
    """Tune the weights of one tenant's rooms."""

    def __init__(self, *, tenant: str, storage: Storage, clock: Clock, options: ContextOptions) -> None:
        self._tenant = tenant
        self._storage = storage
        self._clock = clock
        self._options = options

    async def run(
        self,
        labels: Iterable[Mapping[str, Any]] | None = None,
        *,
        rooms: Sequence[str] | None = None,
        folds: int = 5,
        apply: bool = False,
    ) -> TuningReport:
        """Fit the weights and the threshold, tested on held-out targets.

        `labels`: rows as `core.tuning.read_labels` takes them; None uses the feedback on contexts and the links that
        people corrected. `rooms`: only these rooms. `apply`: give the rooms that had labels the new weights as their
        own settings, if they did better. Raise
        `InvalidInput` if there is too little to learn from.
        """
        rooms = [rooms] if isinstance(rooms, str) else rooms
        found: dict[str, list[Example]] = {}
        given = None if labels is None else self._from_labels(read_labels(labels), rooms)
        for source in [given] if given else [self._from_feedback(rooms), self._from_corrections(rooms)]:
            async for room_id, example in source:
                found.setdefault(room_id, []).append(example)
        if not found:
            raise InvalidInput(
                "There is nothing to learn from: no label, feedback or corrected link names a stored message."
            )
        report = tune(
            [example for examples in found.values() for example in examples],
            self._options.weights,
            threshold=self._options.relevance_threshold,
            max_messages=self._options.max_context_messages,
            folds=folds,
        )
        if apply and report.improved:
            await self._apply(report, list(found))
        return report

    async def _from_labels(
        self, labelled: Mapping[str, RoomLabels], rooms: Sequence[str] | None
    ) -> AsyncIterator[tuple[str, Example]]:
        for room_id, labels in labelled.items():
            if rooms is not None and room_id not in rooms:
                continue
            for message_id in labels.targets:
                async with self._storage.reading() as work:
                    example = await self._labelled(work, room_id, message_id, labels)
                if example is not None:
                    yield room_id, example

    async def _labelled(self, work: UnitOfWork, room_id: str, message_id: str, labels: RoomLabels) -> Example | None:
        target = await self._target(work, room_id, message_id)
        if target is None:
            return None
        pool, view = await Gatherer(tenant=self._tenant, work=work).weighted_view(target, self._options)
        wanted = labels.wanted(target.entry, pool)
        if wanted is None:
            return None
        rule = scorer(self._options)
        ids = [entry.message.id for entry in pool]
        return Example(
            signals=tuple(rule.signals(view, entry) for entry in pool),
            relevant=tuple(float(message_id in wanted) for message_id in ids),
            missing=len(wanted.difference(ids)),
        )

    async def _from_feedback(self, rooms: Sequence[str] | None) -> AsyncIterator[tuple[str, Example]]:
        after: str | None = None
        while True:
            async with self._storage.reading() as work:
                page = await work.usage.page(tenant=self._tenant, selection=_JUDGED, after=after, limit=_PAGE)
                for record in page:
                    if rooms is not None and record.room_id not in rooms:
                        continue
                    target = await self._target(work, record.room_id, record.trigger_message_id)
                    if target is not None and record.success_indicator is not None:
                        shown = set(record.context_message_ids)
                        yield record.room_id, await self._judged(work, target, shown, record.success_indicator)
            if len(page) < _PAGE:
                return
            after = page[-1].context_id

    async def _from_corrections(self, rooms: Sequence[str] | None) -> AsyncIterator[tuple[str, Example]]:
        after = ("", 0)
        while True:
            async with self._storage.reading() as work:
                page = await work.corrections.in_force(tenant=self._tenant, after=after, limit=_PAGE)
                for one in page:
                    wanted = rooms is None or one.room_id in rooms
                    target = await self._target(work, one.room_id, one.message_id) if wanted else None
                    if target is not None and target.entry.link.kind is LinkKind.CORRECTED:
                        yield one.room_id, await self._corrected(work, target)
            if len(page) < _PAGE:
                return
            after = page[-1].room_id, page[-1].number

    async def _corrected(self, work: UnitOfWork, target: Target) -> Example:
        """Return an example from what a person said that a message answers. Its signals are those that it had without
        being told."""
        link = target.entry.link
        unaware = replace(target, entry=replace(target.entry, link=replace(link, kind=LinkKind.GUESS)))
        pool, view = await Gatherer(tenant=self._tenant, work=work).weighted_view(unaware, self._options)
        rule, shares = scorer(self._options), link.thread_candidates.by_arrival()
        arrivals = [entry.message.arrival for entry in pool]
        return Example(
            signals=tuple(rule.signals(view, entry) for entry in pool),
            relevant=tuple(shares.get(arrival, 0.0) for arrival in arrivals),
            missing=int(link.parent is not None and link.parent not in arrivals),
        )

    async def _judged(self, work: UnitOfWork, target: Target, shown: set[str], success: float) -> Example:
        pool, view = await Gatherer(tenant=self._tenant, work=work).weighted_view(target, self._options)
        rule = scorer(self._options)
        return from_feedback([rule.signals(view, entry) for entry in pool if entry.message.id in shown], success)

    async def _target(self, work: UnitOfWork, room_id: str, message_id: str) -> Target | None:
        return await work.messages.target(tenant=self._tenant, room_id=room_id, message_id=message_id, window=0)

    async def _apply(self, report: TuningReport, rooms: Sequence[str]) -> None:
        weights = {f"{signal}_weight": round(weight, 4) for signal, weight in asdict(report.weights).items()}
        changes = {**weights, "relevance_threshold": report.threshold}
        for room_id in rooms:
            async with self._storage.writing() as work:
                room = await work.rooms.lock(tenant=self._tenant, room_id=room_id, now=self._clock.now())
                await work.rooms.configure(tenant=self._tenant, room_id=room_id, settings={**room.settings, **changes})
