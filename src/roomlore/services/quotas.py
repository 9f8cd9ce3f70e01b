"""Quotas of tenants: counting what they use, refusing what is too much, and the verbs of `lore.quotas`.

Nothing is counted for a limit that a tenant does not have. What is used in a day is counted in the database, in the
transaction that uses it. Requests are taken from the database in blocks, so that a process asks it rarely.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack

from roomlore.core.errors import InvalidInput, QuotaExceeded, StorageUnavailable, describe
from roomlore.core.quotas import (
    ATTACHMENT_BYTES,
    ATTACHMENTS,
    KEPT,
    LIMITS,
    MESSAGES,
    REQUESTS,
    TOKENS,
    Quotas,
    Standing,
    block_of,
    check_limits,
    exceeded,
    period_of,
)
from roomlore.ports.coordination import OnceAMinute
from roomlore.ports.shared import Backends, Service
from roomlore.storage import UnitOfWork

log = logging.getLogger(__name__)

_FRESH_SECONDS = 10.0
_NEAR = 0.95
_MOST_LABELS = 100
OTHERS = "_others"
"""The label of the tenants beyond the first hundred with a limit, so that the number of series is bounded."""
Limits = Mapping[str, int | None]


class OwnLimits(TypedDict, total=False):
    """The limits that a tenant may have of its own; None is no limit."""

    messages_a_day: int | None
    model_tokens_a_day: int | None
    messages_kept: int | None
    requests_a_minute: int | None
    attachments_a_day: int | None
    attachment_bytes_a_day: int | None


@dataclass(slots=True)
class _Kept:
    """The messages that a tenant keeps: as they were read, and what was added here since."""

    amount: int
    read_at: float


@dataclass(slots=True)
class _Block:
    """The requests left of those that were taken for a minute. `spent`: there are no more in it."""

    period: datetime
    left: int = 0
    spent: bool = False


class QuotaKeeper(Service):
    """Keep the quotas of all tenants, for one process. `usual`: the limits of the settings."""

    def __init__(self, backends: Backends, *, usual: Quotas) -> None:
        super().__init__(backends)
        self.usual = usual
        self._own: Mapping[str, Mapping[str, int | None]] = {}
        self._read_at = -_FRESH_SECONDS
        self._reading = asyncio.Lock()
        self._kept: dict[str, _Kept] = {}
        self._blocks: dict[str, _Block] = {}
        self._uncharged: dict[str, int] = {}
        self._labels: set[str] = set()
        self._warnings = OnceAMinute(backends.clock.monotonic)

    async def of(self, tenant: str) -> Quotas:
        """Return the limits of a tenant. Those that differ from the settings are up to ten seconds old."""
        if self._clock.monotonic() - self._read_at >= _FRESH_SECONDS:
            async with self._reading:
                if self._clock.monotonic() - self._read_at >= _FRESH_SECONDS:
                    await self._read()
        own = self._own.get(tenant)
        return self.usual if own is None else self.usual.overridden(own)

    def forget(self) -> None:
        """Read the limits again at the next call: they were changed here."""
        self._read_at = -_FRESH_SECONDS
        self._blocks.clear()

    async def admit(self, tenant: str) -> None:
        """Count a request. Raise `QuotaExceeded`. While the database is down, none is counted and none is refused."""
        try:
            most = (await self.of(tenant)).requests_a_minute
            if most is not None:
                await self._take_request(tenant, most)
        except StorageUnavailable as error:
            self._warn("requests are not counted", error)

    async def count_messages(self, work: UnitOfWork, quotas: Quotas, *, added: int, refuses: bool = True) -> None:
        """Count messages in the transaction that adds them, after they are added. Raise `QuotaExceeded` if they are too
        many and `refuses` is True."""
        if quotas.messages_a_day is not None:
            now = self._clock.now()
            period = period_of(MESSAGES, now)[0]
            used = await work.tenants.count(name=MESSAGES, period=period, amount=added)
            if refuses and used > quotas.messages_a_day:
                raise self._refused(work.tenant, MESSAGES, used - added, added, quotas.messages_a_day)
            self._tell(work.tenant, MESSAGES, used, quotas.messages_a_day)
        if quotas.messages_kept is not None:
            await self._count_kept(work, quotas.messages_kept, added=added, refuses=refuses)

    async def check(self, tenant: str) -> None:
        """Raise `QuotaExceeded` if the tenant may add no message, or use no model. While the database is down, nothing
        is refused."""
        await self._check_all(tenant, (MESSAGES, KEPT, TOKENS))

    async def check_tokens(self, tenant: str) -> None:
        """Raise `TokensExceeded` if the tenant may use no model today. While the database is down, none is refused."""
        if tenant:
            await self._check_all(tenant, (TOKENS,))

    async def charge_tokens(self, tenant: str, tokens: int) -> None:
        """Count tokens that a model took. If the database is down, they are counted with the next ones."""
        if not tenant or not tokens:
            return
        self._uncharged[tenant] = self._uncharged.get(tenant, 0) + tokens
        try:
            most = (await self.of(tenant)).model_tokens_a_day
            amount = self._uncharged.pop(tenant, 0)
            if most is None or not amount:
                return
            try:
                used = await self._add(tenant, TOKENS, amount)
            except BaseException:
                self._uncharged[tenant] = self._uncharged.get(tenant, 0) + amount
                raise
            self._tell(tenant, TOKENS, used, most)
        except StorageUnavailable as error:
            self._warn("tokens of models are counted later", error)

    async def check_attachments(self, tenant: str) -> None:
        """Raise `QuotaExceeded` if the tenant may have no attachment described today."""
        await self._check_all(tenant, (ATTACHMENTS, ATTACHMENT_BYTES))

    async def charge_attachment(self, tenant: str, size: int) -> None:
        """Count an attachment of so many bytes that a model is asked about. Raise `QuotaExceeded`, and count nothing,
        if it is too much for today, `InvalidInput` if it is too much for any day."""
        await self._count_attachments(tenant, 1, size)

    async def refund_attachment(self, tenant: str, size: int) -> None:
        """Take back what was counted for an attachment: no model answered."""
        await self._count_attachments(tenant, -1, -size)

    async def _count_attachments(self, tenant: str, count: int, size: int) -> None:
        quotas, now = await self.of(tenant), self._clock.now()
        async with self._storage.writing(tenant, brief=True) as work:
            for name, amount in ((ATTACHMENTS, count), (ATTACHMENT_BYTES, size)):
                most = getattr(quotas, name)
                if most is None:
                    continue
                if amount > most > 0:
                    raise InvalidInput("attachment_too_long", most=most)
                used = await work.tenants.count(name=name, period=period_of(name, now)[0], amount=amount)
                if used > most and amount > 0:
                    raise self._refused(tenant, name, used - amount, amount, most)
                self._tell(tenant, name, used, most)

    async def standings(self, tenant: str) -> list[Standing]:
        """Return how much of each limit is used. Requests are counted in blocks of a fiftieth of their limit. Limits of
        attachments are left out where there are none."""
        quotas = await self.of(tenant)
        return await self._standings(tenant, quotas, [name for name in LIMITS if _is_shown(name, quotas)])

    async def _standings(self, tenant: str, quotas: Quotas, names: Sequence[str]) -> list[Standing]:
        limited = [name for name in names if getattr(quotas, name) is not None]
        now = self._clock.now()
        used: dict[str, int] = {}
        if limited:
            async with self._storage.reading(tenant) as work:
                counted = await work.tenants.counted()
                for name in limited:
                    period, amount = counted.get(name, (now, 0))
                    used[name] = amount if period >= period_of(name, now)[0] and name in counted else 0
                if KEPT in limited:
                    used[KEPT] = await work.tenants.messages_kept()
        own = self._own.get(tenant, {})
        standings = []
        for name in names:
            most = getattr(quotas, name)
            used_now = used.get(name)
            if used_now is not None and name == REQUESTS:
                used_now = min(used_now, most)
            standings.append(
                Standing(name, used_now, most, None if most is None else period_of(name, now)[1], name in own)
            )
        return standings

    async def _check_all(self, tenant: str, names: tuple[str, ...]) -> None:
        try:
            standings = await self._standings(tenant, await self.of(tenant), names)
        except StorageUnavailable as error:
            self._warn("quotas are not checked", error)
            return
        for standing in standings:
            if standing.most is None or standing.used is None:
                continue
            self._tell(tenant, standing.limit, standing.used, standing.most)
            if standing.used >= standing.most:
                raise self._refused(tenant, standing.limit, standing.used, 1, standing.most)

    async def _read(self) -> None:
        async with self._storage.reading() as work:
            self._own = await work.tenants.limits()
        self._read_at = self._clock.monotonic()

    async def _take_request(self, tenant: str, most: int) -> None:
        period = period_of(REQUESTS, self._clock.now())[0]
        block = self._blocks.get(tenant)
        if block is None or block.period != period:
            block = self._blocks[tenant] = _Block(period)
        if not block.left and not block.spent:
            size = block_of(most)
            used = await self._add(tenant, REQUESTS, size)
            got = max(min(size, most - (used - size)), 0)
            block.left += got
            block.spent = got < size
            self._tell(tenant, REQUESTS, min(used, most), most)
        if not block.left:
            raise self._refused(tenant, REQUESTS, most, 1, most)
        block.left -= 1

    async def _add(self, tenant: str, name: str, amount: int) -> int:
        period = period_of(name, self._clock.now())[0]
        async with self._storage.writing(tenant, brief=True) as work:
            return await work.tenants.count(name=name, period=period, amount=amount)

    async def _count_kept(self, work: UnitOfWork, most: int, *, added: int, refuses: bool) -> None:
        """Compare with the number of messages kept, which is summed up every ten seconds, and at each write near the
        limit."""
        kept, now = self._kept.get(work.tenant), self._clock.monotonic()
        if kept is None or now - kept.read_at >= _FRESH_SECONDS or kept.amount + added > most * _NEAR:
            kept = self._kept[work.tenant] = _Kept(await work.tenants.messages_kept(), now)
        else:
            kept.amount += added
        if refuses and kept.amount > most:
            used = kept.amount - added
            del self._kept[work.tenant]
            raise self._refused(work.tenant, KEPT, used, added, most)
        self._tell(work.tenant, KEPT, kept.amount, most)

    def _refused(self, tenant: str, limit: str, used: int, wanted: int, most: int) -> QuotaExceeded:
        labels = {"tenant": self._label(tenant), "limit": limit}
        self._telemetry.count("roomlore_quota_refusals_total", labels=labels)
        return exceeded(limit, used=used, wanted=wanted, most=most, now=self._clock.now())

    def _tell(self, tenant: str, limit: str, used: int, most: int) -> None:
        label = self._label(tenant)
        if label != OTHERS:
            labels = {"tenant": label, "limit": limit}
            self._telemetry.level("roomlore_quota_used", used, labels=labels)
            self._telemetry.level("roomlore_quota_limit", most, labels=labels)

    def _warn(self, text: str, error: StorageUnavailable) -> None:
        """Log a warning at most once a minute: while the database is down, every request leads to one."""
        if self._warnings.is_due(text):
            log.warning(text, extra={"why": describe(error)})

    def _label(self, tenant: str) -> str:
        if tenant not in self._labels and len(self._labels) < _MOST_LABELS:
            self._labels.add(tenant)
        return tenant if tenant in self._labels else OTHERS


def _is_shown(name: str, quotas: Quotas) -> bool:
    return name not in (ATTACHMENTS, ATTACHMENT_BYTES) or getattr(quotas, name) is not None


class QuotaService(Service):
    """The quotas of one tenant."""

    def __init__(self, backends: Backends, *, tenant: str, keeper: QuotaKeeper) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._keeper = keeper

    async def admit(self) -> None:
        """Count a request of the tenant. Raise `QuotaExceeded` if it may send no more in this minute."""
        await self._keeper.admit(self._tenant)

    async def standing(self, tenant: str | None = None) -> list[Standing]:
        """Return how much of each limit the tenant has used, by default this one."""
        return await self._keeper.standings(tenant or self._tenant)

    async def tenants(self) -> list[str]:
        """Return every tenant that has rooms, API keys or limits of its own, for the operator's own command line."""
        async with self._storage.reading() as work:
            return await work.tenants.all()

    async def own(self) -> Mapping[str, int | None]:
        """Return the limits of the tenant that differ from the settings."""
        async with self._storage.reading() as work:
            return (await work.tenants.limits()).get(self._tenant, {})

    async def set(self, **limits: Unpack[OwnLimits]) -> Mapping[str, int | None]:
        """Give the tenant limits of its own, in place of those of the settings: `messages_a_day`, `model_tokens_a_day`,
        `messages_kept`, `requests_a_minute`, `attachments_a_day` and `attachment_bytes_a_day`; None is no limit. Return
        all that it has of its own. Other processes know them within ten seconds. Raise `InvalidInput`.
        """
        given: dict[str, Any] = dict(limits)
        check_limits(given)
        return await self._change(lambda own: {**own, **given})

    async def reset(self, names: Sequence[str] = ()) -> Mapping[str, int | None]:
        """Give the tenant the limits of the settings again: those with these names, or all of them. Return those that
        stay its own."""
        check_limits(dict.fromkeys(names))
        gone = names or LIMITS
        return await self._change(lambda own: {name: most for name, most in own.items() if name not in gone})

    async def _change(self, change: Callable[[Limits], Limits]) -> Mapping[str, int | None]:
        async with self._storage.writing(self._tenant) as work:
            now = self._clock.now()
            changed = change(await work.tenants.limits_to_change(now=now))
            await work.tenants.set_limits(limits=changed, now=now)
        self._keeper.forget()
        return changed
