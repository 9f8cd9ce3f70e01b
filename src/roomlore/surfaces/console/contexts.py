"""A message's context: what each strategy takes and leaves, why, and what that saves."""

from dataclasses import dataclass
from functools import partial

from starlette.responses import Response

from roomlore.core.explained import Explanation, Weighed
from roomlore.core.models import StoredMessage
from roomlore.services.contexts.strategies import strategy_named
from roomlore.surfaces.console.frame import Page
from roomlore.surfaces.console.reasons import reason
from roomlore.surfaces.console.tongues import Tongue


@dataclass(frozen=True, slots=True)
class Compared:
    """An earlier message with what each strategy says of it, in their order; None where one did not look at it."""

    message: StoredMessage
    said: tuple[Weighed | None, ...]


async def context(page: Page) -> Response:
    room_id = page.needed("room")
    found = await page.lore.context.compare(room_id, page.asked("message") or None)
    return page.show(
        "context.html",
        room_id=room_id,
        target=found[0].target,
        strategies=found,
        chosen=_chosen(found, page.asked("strategy")),
        compared=_compared(found),
        saved=[_saved(one) for one in found],
        reason=partial(reason, tongue=page.tongue),
        named=partial(_named, tongue=page.tongue),
    )


def _named(strategy: str, ending: str = "", *, tongue: Tongue) -> str:
    """Return what a strategy is called, or with an ending what is told of it; one without words goes by its name."""
    return tongue.words.get(f"strategy.{strategy}{ending}", "" if ending else strategy)


def _chosen(found: list[Explanation], name: str) -> Explanation:
    if name:
        strategy_named(name)
    return next(one for one in found if one.strategy == name or (not name and one.in_force))


def _saved(one: Explanation) -> int:
    """Percent of the plain window's tokens; below zero where more is shown."""
    return round(100 * (1 - one.tokens / one.window_tokens)) if one.window_tokens else 0


def _compared(found: list[Explanation]) -> list[Compared]:
    by_strategy = [{one.message.arrival: one for one in each.weighed} for each in found]
    messages = {one.message.arrival: one.message for each in found for one in each.weighed}
    ordered = sorted(messages.values(), key=lambda one: (one.at, one.arrival))
    return [Compared(one, tuple(known.get(one.arrival) for known in by_strategy)) for one in ordered]
