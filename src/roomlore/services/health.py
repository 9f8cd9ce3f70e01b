"""Health checks: probes that run concurrently, and the readiness of the database."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from roomlore.core.errors import InvalidInput, RoomloreError, StorageUnavailable, describe
from roomlore.core.health import Finding, say, worst
from roomlore.ports.coordination import Clock
from roomlore.storage import Storage

_FRESH_SECONDS = 5.0
_PATIENCE_SECONDS = 2.0
_GRACE_SECONDS = 60.0
"""The time a write may wait for others, such as a large import, before the database counts as not writable."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A check of one part. `look` raises roomlore's errors, which say what to do. `slow_ms`: a successful check that
    takes longer is a warning; None if no other system is asked."""

    part: str
    look: Callable[[], Awaitable[Sequence[Finding]]]
    slow_ms: float | None = None


async def examine(probes: Sequence[Probe], *, clock: Clock, timeout_seconds: float) -> list[Finding]:
    """Run all probes and return their findings in order, within little more than twice `timeout_seconds`.

    A probe that fails, hangs or breaks becomes a finding too. The probes run concurrently, load packages and delay each
    other. So a probe that seems late, unavailable or slow runs once more alone, and the second result counts.
    """
    findings_of_probes = await asyncio.gather(*(_findings_of(probe, clock, timeout_seconds) for probe in probes))
    until = clock.monotonic() + timeout_seconds
    for place, probe in enumerate(probes):
        left = until - clock.monotonic()
        if left > 0 and probe.slow_ms is not None and worst(findings_of_probes[place]) != "ok":
            findings_of_probes[place] = await _findings_of(probe, clock, left)
    return [finding for findings in findings_of_probes for finding in findings]


async def _findings_of(probe: Probe, clock: Clock, seconds: float) -> list[Finding]:
    begun = clock.monotonic()
    try:
        async with asyncio.timeout(seconds):
            findings = list(await probe.look())
    except TimeoutError:
        return [Finding(probe.part, "fail", say("look.late", seconds=seconds), say("look.late.do"))]
    except RoomloreError as error:
        return [_of_error(probe.part, error)]
    except Exception as error:  # noqa: BLE001 - one look that breaks must not hide the others
        return [Finding(probe.part, "fail", say("look.broken", error=describe(error)), say("look.broken.do"))]
    return [_timed(finding, probe, (clock.monotonic() - begun) * 1000) for finding in findings]


def _of_error(part: str, error: RoomloreError) -> Finding:
    if isinstance(error, InvalidInput):
        return Finding(part, "fail", say("look.refused", error=str(error)), say("look.refused.do"))
    return Finding(part, "fail", say("look.failed", error=str(error)), say("look.failed.do"))


def _timed(finding: Finding, probe: Probe, ms: float) -> Finding:
    if probe.slow_ms is None or finding.ms is not None:
        return finding
    if ms > probe.slow_ms and finding.verdict == "ok":
        return replace(finding, verdict="warn", todo=say("look.slow.do", ms=probe.slow_ms), ms=ms)
    return replace(finding, ms=ms)


class Readiness:
    """Try a write that changes nothing, at most every few seconds. An instance belongs to one event loop."""

    def __init__(self, *, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._trying: asyncio.Task[None] | None = None
        self._tried: float | None = None
        self._begun = 0.0
        self._error: StorageUnavailable | None = None

    async def check(self) -> None:
        """Return if the database answers and takes writes. Raise `StorageUnavailable` if it does not."""
        await self._storage.ping()
        if self._trying is not None or self._tried is None or self._clock.monotonic() - self._tried >= _FRESH_SECONDS:
            await self._try()
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        if self._trying is not None:
            await asyncio.wait({self._trying})

    async def _try(self) -> None:
        """Wait for the write for a moment. It is not cancelled: a database waits for its lock anyway."""
        if self._trying is None:
            self._begun = self._clock.monotonic()
            self._trying = asyncio.create_task(self._write())
        trying = self._trying
        await asyncio.wait({trying}, timeout=_PATIENCE_SECONDS)
        if not trying.done() and self._clock.monotonic() - self._begun > _GRACE_SECONDS:
            self._error = StorageUnavailable("write_waiting", seconds=f"{_GRACE_SECONDS:.0f}")

    async def _write(self) -> None:
        try:
            await self._storage.try_writing()
        except StorageUnavailable as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - nobody else would see it
            self._error = StorageUnavailable("write_failed", error=describe(error))
        else:
            self._error = None
        finally:
            self._tried, self._trying = self._clock.monotonic(), None
