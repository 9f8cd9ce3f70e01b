"""What a search says in words: why a message was found, and why nothing was, or nothing of the time asked for."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo

import numpy as np

from roomlore.core.dates import FAR_PAST, TimeSpan
from roomlore.core.search.facts import chosen, from_micros, to_micros
from roomlore.core.search.hits import Ints, MessageFacts
from roomlore.core.search.query import SearchQuery

BETWEEN = "; "
"""Stands between the reasons of a hit."""
WEAK = "a weak match"
"""The reason of a hit that has no other one."""
_SHOWN_WORDS = 8
_WORTH_SAYING = 0.05
_LONGEST_TIME = 60
_SHOWN = {
    "answers": "answers a question like yours",
    "meaning": "close to it in meaning",
    "neighbours": "in the same thread as a message with your words",
    "beside": "near a message with your words",
    "speaker": "by someone you named",
}
_SIDES = {"asker": "by a person, not an agent", "agent": "by the agent"}


def reason(
    query: SearchQuery, signals: Mapping[str, float], held: Sequence[str], at: datetime, talk: tuple[bool, bool]
) -> str:
    """Return why a message was found, the strongest reason first. `held`: the words of the question that it holds;
    `talk`: if it is in one talk with the question that it answers, and with a message that has such words.

    That the talk around it has the words is a reason only for a message that has none of its own.
    """
    codes = [code for code in ("answers", "meaning", "neighbours", "speaker") if signals[code] >= _WORTH_SAYING]
    codes = [code for code in codes if code != "answers" or talk[0]]
    if held or "answers" in codes:
        codes = [code for code in codes if code not in ("meaning", "neighbours")]
    elif not talk[1]:
        codes = ["beside" if code == "neighbours" else code for code in codes]
    reasons = [_held(held)] if held else []
    reasons += [_SHOWN[code] for code in codes]
    if then := [span for span in query.begun if span.start <= at < span.end]:
        reasons.append("from " + ", ".join(f"“{span.text[:_LONGEST_TIME]}”" for span in then))
    if signals["voice"] and query.voice:
        reasons.append(_SIDES[query.voice])
    return BETWEEN.join(reasons) or WEAK


def _held(words: Sequence[str]) -> str:
    some = ", ".join(words[:_SHOWN_WORDS])
    return f"has your words: {some}" if len(words) > 1 else f"has your word: {some}"


def nothing_then(query: SearchQuery, facts: MessageFacts, only: Ints | None, zone: tzinfo, *, others: bool) -> str:
    """Return the sentences that say that nothing was found from the times asked for, or that nothing is from them.
    `only` as in `why_nothing`. `others`: messages of other times were found."""
    times = ", ".join(f"“{span.text[:_LONGEST_TIME]}” ({_days(span, zone)})" for span in query.begun)
    searched = facts.senders >= 0
    if only is not None:
        searched &= np.isin(facts.arrivals, only)
    at = facts.sent_at[searched]
    if any(((to_micros(span.start) <= at) & (at < to_micros(span.end))).any() for span in query.begun):
        sentence = f"Nothing from {times} has your words."
    else:
        sentence = f"Nothing is from {times}."
    return sentence + (" What follows is from other times." if others else "")


def _days(span: TimeSpan, zone: tzinfo) -> str:
    first, last = ends_of(span, zone)
    return last if first == last else f"{first or '…'} – {last}"


def ends_of(span: TimeSpan, zone: tzinfo) -> tuple[str, str]:
    """Return when a time span begins and ends: whole days by their dates, both included; '' for the beginning of one
    that is open to the past."""
    start, end = _local(span.start, zone), _local(span.end, zone)
    if not any((start.hour, start.minute, start.second, end.hour, end.minute, end.second)):
        first, last = _day(start), _day(end - timedelta(days=1))
    else:
        first, last = _clock(start), _clock(end).removeprefix(f"{_day(start)} ")
    return ("" if span.start <= FAR_PAST else first), last


def _local(moment: datetime, zone: tzinfo) -> datetime:
    """Return the moment in the zone; unchanged at the ends of the calendar."""
    try:
        return moment if moment <= FAR_PAST else moment.astimezone(zone)
    except OverflowError:
        return moment


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _clock(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")


def why_nothing(
    query: SearchQuery,
    facts: MessageFacts,
    only: Ints | None,
    *,
    since: datetime | None,
    until: datetime | None,
    zone: tzinfo,
) -> str:
    """Return why nothing was found, and what to try. `only`: the messages that the filters leave, None for all;
    `since`, `until`: those of the filters."""
    sent = facts.sent_at[facts.senders >= 0]
    if not sent.size:
        return "No messages are here yet: add or import some."
    then = chosen(facts, senders=None, since=since, until=until)
    if then is not None and not then.size:
        first, last = (_day(_local(from_micros(int(moment)), zone)) for moment in (sent.min(), sent.max()))
        return f"No message is from that time: the first here is from {first}, the last from {last}."
    if only is not None and not only.size:
        return "These people wrote nothing in that time: leave out a filter."
    if not query.words:
        return "These words are in nearly every message: search for a name, a thing or a place."
    words = ", ".join(word.text for word in query.words[:_SHOWN_WORDS])
    where = "here" if only is None or only.size == sent.size else "of those that the filters leave"
    return f"No message {where} has your words: {words}. Try other words, or fewer."
