"""The page of a context: why a message was chosen or left out by each strategy, and the correction of what it answers;
and the page of the experiment, arm by arm."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.experiments import Experiment, feedback_differences
from roomlore.core.linking.corrections import FOLLOWING
from roomlore.core.models import FAR_REASON, MAYBE_FAR_REASON, Entry, Explanation, LinkKind, StoredMessage, Weighed
from roomlore.core.patterns import lazy_pattern
from roomlore.surfaces.people_named import with_people_named
from roomlore.wiring import Lore
from roomlore_console.frame import Page, Tongue

_CONSOLE = "console"
"""Who corrects links here, for the log."""
_MOVED = 50
"""The messages that are listed because a correction moved them."""

_PHRASES = tuple(
    (lazy_pattern(rf"(?P<lead>^|, ){form}"), key)
    for form, key in (
        (r"directly answered \(platform reply\)", "platform"),
        (r"directly answered \(corrected by a person\)", "corrected"),
        (r"direct parent, ([\d.]+) likely", "parent"),
        (r"same platform thread \(([\d.]+)\)", "platform_thread_p"),
        (r"same platform thread", "platform_thread"),
        (r"likely the same thread \(([\d.]+)\)", "likely"),
        (r"possibly the same thread \(([\d.]+)\)", "possibly"),
        (r"(\d+) replies away", "replies"),
        (r"a direct reply", "reply"),
        (r"its sender is addressed", "addressed"),
        (r"less than a minute apart", "minute"),
        (r"(\d+) min apart", "minutes"),
        (r"shared words: ", "words"),
        (r"same sender", "sender"),
        (r"the sender was talking with them", "talking"),
        (r"one mentions the other's sender", "mentions"),
        (r"both mention the same person", "both"),
        (r"recent$", "recent"),
        (rf"{FAR_REASON} \(a message found replies to it\)", "found_below"),
        (rf"{FAR_REASON} \(it replies to a message found\)", "found_above"),
        (rf"{FAR_REASON} \(it stands between messages found\)", "found_between"),
        (FAR_REASON, "found"),
        (MAYBE_FAR_REASON, "maybe"),
    )
)


def reason(weighed: Weighed, tongue: Tongue) -> str:
    if weighed.left:
        return tongue.say(f"left.{weighed.left}")
    text = weighed.reason
    for form, key in _PHRASES:
        text = form.sub(lambda match, key=key: _reworded(match, tongue, key), text)  # type: ignore[misc]
    return text


def _reworded(match: "re.Match[str]", tongue: Tongue, key: str) -> str:
    return match["lead"] + tongue.words[f"reason.{key}"].format(*match.groups()[1:])


@dataclass(frozen=True, slots=True)
class Compared:
    """An earlier message with each strategy's result for it, in order; None for a strategy that did not consider it."""

    message: StoredMessage
    said: tuple[Weighed | None, ...]


async def context(page: Page) -> Response:
    lore, room_id = page.lore, page.needed("room")
    compared = await lore.context.compare(room_id, page.asked("message") or None, viewer=page.viewer)
    explanations = await _with_people_named(lore, compared)
    target = explanations[0].target
    return page.show(
        "context.html",
        room_id=room_id,
        target=target,
        answered=await _answered(lore, target),
        may_correct=page.is_admin or (page.visitor is not None and "write" in page.visitor.scopes),
        strategies=explanations,
        chosen=_chosen(explanations, page.asked("strategy")),
        compared=_compared(explanations),
        saved=[_saved(explanation) for explanation in explanations],
        done=page.choice("done", ("", "correct", "undo")),
        moved=await _read(lore, room_id, [int(at) for at in re.findall("[0-9]{1,18}", page.asked("moved"))]),
        left=page.number("left"),
        reason=partial(reason, tongue=page.tongue),
        named=partial(_named, tongue=page.tongue),
    )


async def correct(page: Page) -> Response:
    """Correct what a message answers, or take a correction back, and show its context again."""
    lore = page.need("write", "read")
    room_id, message_id = await page.room("room"), page.needed("message")
    choice, answers = page.form.get("said"), page.form.get("answers")
    before = await _places_after(lore, room_id, message_id)
    if choice == "undo":
        done = await lore.links.undo(room_id, message_id, by=_CONSOLE)
    elif choice == "nothing" or (choice == "answers" and answers):
        done = await lore.links.correct(
            room_id, message_id, answers=None if choice == "nothing" else answers, by=_CONSOLE
        )
    else:
        raise InvalidInput("form_answer_missing")
    after = await _places_after(lore, room_id, message_id)
    moved = [str(arrival) for arrival, place in after.items() if before.get(arrival, place) != place]
    return page.go(
        "/context",
        room=room_id,
        message=message_id,
        strategy=page.asked("strategy"),
        done="undo" if choice == "undo" else "correct",
        moved=".".join(moved[:_MOVED]),
        left=done.left or None,
    )


async def _places_after(lore: Lore, room_id: str, message_id: str) -> Mapping[int, object]:
    """Return the thread of each message after this one that a correction links anew, and what it answers."""
    async with lore.storage.reading(lore.tenant) as work:
        arrival = await work.messages.arrival_of(room_id=room_id, message_id=message_id)
        following = await work.messages.page(room_id=room_id, after=arrival or 0, limit=FOLLOWING)
        entries = await work.messages.by_arrival(room_id=room_id, arrivals=[one.arrival for one in following])
    return {entry.message.arrival: (entry.link.thread, entry.link.kind, entry.link.parent) for entry in entries}


async def _with_people_named(lore: Lore, explanations: list[Explanation]) -> list[Explanation]:
    """Return the explanations with names in place of the ids of people whom the messages mention."""
    messages = [each.target.message for each in explanations] + [
        message.message for each in explanations for message in each.weighed
    ]
    by_arrival = {message.arrival: message for message in messages}
    named = {message.arrival: message for message in await with_people_named(lore, by_arrival.values())}
    return [
        replace(
            each,
            target=replace(each.target, message=named[each.target.message.arrival]),
            weighed=tuple(replace(weighed, message=named[weighed.message.arrival]) for weighed in each.weighed),
        )
        for each in explanations
    ]


async def _answered(lore: Lore, target: Entry) -> StoredMessage | None:
    """Return the message that this one most likely answers."""
    parent = None if target.link.kind is LinkKind.NEW else target.link.parent
    return next(iter(await _read(lore, target.message.room_id, [parent] if parent else [])), None)


async def _read(lore: Lore, room_id: str, arrivals: Sequence[int]) -> Sequence[StoredMessage]:
    """Return messages, with names in place of the ids of people whom they mention."""
    async with lore.storage.reading(lore.tenant) as work:
        known = await work.messages.messages_by_arrival(room_id=room_id, arrivals=arrivals[:_MOVED])
    return await with_people_named(lore, known)


def _named(strategy: str, ending: str = "", *, tongue: Tongue) -> str:
    """Return a strategy's name, or with an ending its text of that key. An unknown strategy has its own name."""
    return tongue.words.get(f"strategy.{strategy}{ending}", "" if ending else strategy)


def _chosen(explanations: list[Explanation], name: str) -> Explanation:
    chosen = next(
        (
            explanation
            for explanation in explanations
            if explanation.strategy == name or (not name and explanation.in_force)
        ),
        None,
    )
    if chosen is None:
        names = ", ".join(explanation.strategy for explanation in explanations)
        raise InvalidInput("choice_not_allowed", name="strategy", value=f"{name!r:.60}", known=names)
    return chosen


def _saved(explanation: Explanation) -> int:
    """Return the saving in percent of the plain window's tokens; negative if the context is larger."""
    return round(100 * (1 - explanation.tokens / explanation.window_tokens)) if explanation.window_tokens else 0


def _compared(explanations: list[Explanation]) -> list[Compared]:
    by_strategy = [{weighed.message.arrival: weighed for weighed in each.weighed} for each in explanations]
    messages = {weighed.message.arrival: weighed.message for each in explanations for weighed in each.weighed}
    ordered = sorted(messages.values(), key=lambda message: (message.at, message.arrival))
    return [Compared(message, tuple(known.get(message.arrival) for known in by_strategy)) for message in ordered]


_DAYS = (1, 7, 30, 90)
_USUAL_DAYS = 30


_PLOT = {"width": 320, "row": 24, "left": 8, "right": 312}
"""The frame of the picture of the arms' feedback, from 0 to 1."""


async def used(page: Page) -> Response:
    """Return the page of the experiment: its arms with their settings, what was measured of each, and whether their
    feedback differs."""
    lore = page.need("admin", "read")
    days = page.number("days") or _USUAL_DAYS
    report = await lore.usage.report(days=days)
    arms = Experiment(lore.settings.context.experiment).arms
    plain = next((arm.name for arm in arms if not arm.settings), None)
    return page.show(
        "usage.html",
        report=report,
        arms=arms,
        shares=sum(arm.share for arm in arms),
        differences=feedback_differences(report, base=plain),
        judged=[arm for arm in report.arms if arm.success is not None],
        plot=_PLOT,
        along=_place,
        days=days,
        choices=_DAYS,
    )


def _place(value: float) -> float:
    """Return the place of a feedback in the picture."""
    return _PLOT["left"] + (_PLOT["right"] - _PLOT["left"]) * max(0.0, min(1.0, value))
