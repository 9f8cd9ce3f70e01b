"""Why a message was taken or left, in the words of the reader's language."""

import re

from roomlore.core.explained import Weighed
from roomlore.core.models import FAR_REASON
from roomlore.surfaces.console.tongues import Tongue

_PHRASES = tuple(
    (re.compile(rf"(?P<lead>^|, ){form}"), key)
    for form, key in (
        (r"directly answered \(platform reply\)", "platform"),
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
    )
)


def reason(one: Weighed, tongue: Tongue) -> str:
    if one.left:
        return tongue.say(f"left.{one.left}")
    told = one.reason
    for form, key in _PHRASES:
        told = form.sub(lambda found, key=key: _said(found, tongue, key), told)  # type: ignore[misc]
    return told


def _said(found: "re.Match[str]", tongue: Tongue, key: str) -> str:
    values = found.groups()[1:]
    return found["lead"] + tongue.words[f"reason.{key}"].format(*values)
