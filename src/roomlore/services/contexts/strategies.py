"""The strategies by name: the one place that names them all."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from roomlore.core.context import ContextOptions, within_tokens
from roomlore.core.errors import InvalidInput
from roomlore.core.explained import Explanation, Weighed
from roomlore.core.models import Candidate, Target
from roomlore.services.contexts.explaining import Explainer
from roomlore.services.contexts.gather import Gatherer


class Strategy(NamedTuple):
    """How a context is chosen.

    `gather` reads and chooses, in people's order. `weigh` tells people also what was left and why; without it they see
    what was taken.
    """

    gather: Callable[[Gatherer, Target, ContextOptions], Awaitable[list[Candidate]]]
    weigh: Callable[[Explainer, Target, ContextOptions], Awaitable[list[Weighed]]] | None = None


async def _recent(gatherer: Gatherer, target: Target, options: ContextOptions) -> list[Candidate]:
    return await gatherer.recent(target, options.max_context_messages)


STRATEGIES: dict[str, Strategy] = {
    "threaded": Strategy(Gatherer.threaded, Explainer.threaded),
    "weighted": Strategy(Gatherer.weighted, Explainer.weighted),
    "recent": Strategy(_recent),
}


def strategy_named(name: str) -> Strategy:
    """Return the strategy. Raises `InvalidInput` for a name that there is not."""
    found = STRATEGIES.get(name)
    if found is None:
        raise InvalidInput(f"strategy is {name!r:.60}; it must be one of {', '.join(STRATEGIES)}.")
    return found


async def choose(gatherer: Gatherer, target: Target, options: ContextOptions) -> list[Candidate]:
    """Return what the strategy in force takes, inside the token budget, in people's order."""
    if options.enable_intelligent_memory:
        found = await strategy_named(options.strategy).gather(gatherer, target, options)
    else:
        found = await gatherer.plain(target, options)
    return within_tokens(found, options.max_context_tokens)


async def explain(explainer: Explainer, target: Target, options: ContextOptions) -> list[Explanation]:
    """Return what each strategy takes and leaves, in the order of `STRATEGIES`."""
    return [await _explained(explainer, target, options, name) for name in STRATEGIES]


async def _explained(explainer: Explainer, target: Target, options: ContextOptions, name: str) -> Explanation:
    strategy = STRATEGIES[name]
    in_force = name == (options.strategy if options.enable_intelligent_memory else "recent")
    if in_force and not options.enable_intelligent_memory:
        weighed = [_taken(one) for one in await explainer.gatherer.plain(target, options)]
    elif strategy.weigh:
        weighed = await strategy.weigh(explainer, target, options)
    else:
        weighed = [_taken(one) for one in await strategy.gather(explainer.gatherer, target, options)]
    weighed = _inside_budget(weighed, options.max_context_tokens)
    return Explanation(
        target=target.entry,
        strategy=name,
        in_force=in_force,
        weighed=tuple(sorted(weighed, key=lambda one: (one.message.at, one.message.arrival))),
        tokens=sum(one.message.tokens for one in weighed if one.taken),
        window_tokens=target.window_tokens,
        window_messages=target.window_messages,
        threshold=options.relevance_threshold if name == "weighted" else None,
    )


def _taken(one: Candidate) -> Weighed:
    score = None if one.signals is None else one.score
    return Weighed(message=one.message, score=score, signals=one.signals, reason=one.reason)


def _inside_budget(weighed: list[Weighed], most: int | None) -> list[Weighed]:
    """Mark what the token budget leaves no room for as left."""
    taken = [
        Candidate(message=one.message, score=one.score or 0.0, signals=one.signals, reason=one.reason)
        for one in weighed
        if one.taken
    ]
    kept = {one.message.arrival for one in within_tokens(taken, most)}
    return [
        replace(one, reason="", left="crowded") if one.taken and one.message.arrival not in kept else one
        for one in weighed
    ]
