"""Probes run side by side; one that fails, hangs or breaks becomes a finding like the others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from roomlore.core.errors import InvalidInput, RoomloreError, describe
from roomlore.core.health import Finding, worst
from roomlore.core.health_words import say
from roomlore.ports.coordination import Clock


@dataclass(frozen=True, slots=True)
class Probe:
    """A look at one part. `look` raises roomlore's errors, which say what to do. `slow_ms`: from when a look that went
    well is worth a warning; None where nothing is asked of anybody."""

    part: str
    look: Callable[[], Awaitable[Sequence[Finding]]]
    slow_ms: float | None = None


async def examine(probes: Sequence[Probe], *, clock: Clock, timeout_seconds: float) -> list[Finding]:
    """Return what all probes find, in their order, within little more than twice `timeout_seconds`, whatever hangs.

    Side by side the probes load packages and hold each other up. So whoever was asked and seems late, away or slow is
    asked once more alone, and the second look counts."""
    found = await asyncio.gather(*(_one(probe, clock, timeout_seconds) for probe in probes))
    until = clock.monotonic() + timeout_seconds
    for place, probe in enumerate(probes):
        left = until - clock.monotonic()
        if left > 0 and probe.slow_ms is not None and worst(found[place]) != "ok":
            found[place] = await _one(probe, clock, left)
    return [finding for findings in found for finding in findings]


async def _one(probe: Probe, clock: Clock, seconds: float) -> list[Finding]:
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
