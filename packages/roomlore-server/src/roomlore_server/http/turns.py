"""Turns at the processor: a tenant that floods the service does not slow the others.

A tenant that sent requests alone is let in at once. Where several do, the one that has lately used much more of the
server than another waits: one of its requests is at work at a time, none begins while a request of the others is at
work, and after each there is a pause as long as the request took, in which a request of another tenant finds the
processor free. Tenants that wait are served in turn.

A request counts for a quarter of a second at most. One that takes longer waits for something else, such as a model.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

ACTIVE_SECONDS = 2.0
"""A tenant whose last request is older than this does not hold others back."""
_HALF_LIFE_SECONDS = 1.0
_MUCH_MORE, _SLACK_SECONDS = 2.0, 0.05
_LONGEST_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 0.05
AT_WORK = 16
"""The most requests of a tenant at work, also while no other tenant is there: as many are in the way of the next."""


@dataclass(slots=True)
class _Tenant:
    """`used`: its seconds at work, as of `at`, halved every second. `seen`: when a request of it came or ended."""

    name: str
    seen: float
    used: float = 0.0
    at: float = 0.0
    working: int = 0
    waiting: deque["asyncio.Future[None]"] = field(default_factory=deque)

    def spent(self, now: float) -> float:
        self.used *= 0.5 ** ((now - self.at) / _HALF_LIFE_SECONDS)
        self.at = now
        return self.used


@dataclass(slots=True)
class _Turn:
    """A request at work. `held_back`: it is of a tenant that waits for the others."""

    tenant: _Tenant
    begun: float
    held_back: bool
    limit: asyncio.TimerHandle | None = None
    open: bool = True


class Turns:
    """The turns of one process's requests. `now`: a clock, by default the event loop's."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or (lambda: asyncio.get_running_loop().time())
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()
        self._free_at = 0.0
        self._held_back = self._waiting = 0
        self._wakes: asyncio.TimerHandle | None = None

    def waiting(self, tenant: str) -> int:
        """Return how many requests of the tenant wait."""
        known = self._tenants.get(tenant)
        return len(known.waiting) if known else 0

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Wait for the turn of a request, and hold it while the block runs."""
        tenant_turns = self._seen(tenant)
        held_back = bool(tenant_turns.waiting) or tenant_turns.working >= AT_WORK or self._ahead(tenant_turns)
        if held_back:
            await self._wait(tenant_turns)
        turn = self._begin(tenant_turns, held_back=held_back)
        try:
            yield
        finally:
            self._end(turn)

    async def _wait(self, tenant: _Tenant) -> None:
        granted = asyncio.get_running_loop().create_future()
        tenant.waiting.append(granted)
        self._waiting += 1
        self._serve()
        try:
            await granted
        except asyncio.CancelledError:
            if granted in tenant.waiting:
                tenant.waiting.remove(granted)
                self._waiting -= 1
            elif not granted.cancelled():  # it was granted at this very moment
                tenant.working -= 1
                self._held_back -= 1
            self._serve()
            raise
        tenant.working -= 1  # counted at once when it was granted, and anew as it begins
        self._held_back -= 1

    def _begin(self, tenant: _Tenant, *, held_back: bool) -> _Turn:
        tenant.working += 1
        self._held_back += held_back
        turn = _Turn(tenant, self._now(), held_back)
        turn.limit = asyncio.get_running_loop().call_later(_LONGEST_SECONDS, self._end, turn)
        return turn

    def _end(self, turn: _Turn) -> None:
        if not turn.open:
            return
        turn.open = False
        if turn.limit is not None:
            turn.limit.cancel()
        tenant_turns, now = turn.tenant, self._now()
        took = now - turn.begun
        tenant_turns.used = tenant_turns.spent(now) + took
        tenant_turns.seen = now
        tenant_turns.working -= 1
        if turn.held_back:
            self._held_back -= 1
            self._free_at = now + min(took, _LONGEST_PAUSE_SECONDS)
        if self._waiting:
            self._serve()

    def _seen(self, tenant: str) -> _Tenant:
        now = self._now()
        tenant_turns = self._tenants.get(tenant)
        if tenant_turns is None:
            tenant_turns = self._tenants[tenant] = _Tenant(tenant, now, at=now)
        tenant_turns.seen = now
        self._tenants.move_to_end(tenant)
        while not (first := next(iter(self._tenants.values()))).working and not first.waiting:
            if now - first.seen <= ACTIVE_SECONDS:
                break
            del self._tenants[first.name]
        return tenant_turns

    def _ahead(self, tenant: _Tenant) -> bool:
        """Return True if another tenant that is active has used much less than this one."""
        now = self._now()
        if len(self._tenants) == 1 or tenant.spent(now) <= _SLACK_SECONDS:
            return False
        others = [
            other.spent(now)
            for other in self._tenants.values()
            if other is not tenant and (other.working or other.waiting or now - other.seen <= ACTIVE_SECONDS)
        ]
        return bool(others) and tenant.used > _MUCH_MORE * min(others) + _SLACK_SECONDS

    def _serve(self) -> None:
        """Let in what may begin now, and come back when the next may."""
        while (tenant_turns := self._next()) is not None:
            granted = tenant_turns.waiting.popleft()
            self._waiting -= 1
            self._tenants.move_to_end(tenant_turns.name)
            if not granted.done():
                tenant_turns.working += 1
                self._held_back += 1
                granted.set_result(None)

    def _next(self) -> _Tenant | None:
        """Return the tenant whose request begins next, the one served longest ago; None if none may begin now."""
        waiting = [tenant for tenant in self._tenants.values() if tenant.waiting]
        for tenant_turns in waiting:
            if tenant_turns.working >= AT_WORK:
                continue
            if not self._ahead(tenant_turns):
                return tenant_turns
            others_work = any(
                other.working and other is not tenant_turns and not other.waiting for other in self._tenants.values()
            )
            if tenant_turns.working or self._held_back or others_work:
                continue
            pause = self._free_at - self._now()
            if pause <= 0:
                return tenant_turns
            self._wake_after(pause)
        return None

    def _wake_after(self, seconds: float) -> None:
        if self._wakes is None:
            self._wakes = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._wakes = None
        self._serve()
