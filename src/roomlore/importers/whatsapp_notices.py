"""WhatsApp's notices about who came and went, in English, German and Chinese."""

import re

from roomlore.core.audience import RoomKind
from roomlore.core.membership import Move, RoomFacts

GROUP = RoomFacts(RoomKind.PRIVATE)
"""A chat with such a notice is a group."""

_BY = r"[^\n]{1,100}?"
_WHO = r"(?P<who>[^\n]{1,400}?)"
_END = r"[.。]?"
_NOTICES = tuple(
    (re.compile(pattern + _END), came)
    for pattern, came in (
        (rf"{_BY} ?已?[将將把] ?{_WHO} ?(?:加入|添加到|新增至)[^\n]{{0,40}}", True),
        (rf"{_BY} ?已?[将將把] ?{_WHO} ?(?:移除|移出)[^\n]{{0,20}}", False),
        (rf"{_WHO} created (?:this )?group(?: [^\n]{{0,200}})?", True),
        (rf"{_WHO} hat (?:die|diese) Gruppe(?: [^\n]{{0,200}})? erstellt", True),
        (rf"{_WHO} ?已?(?:创建|創建|建立)了?(?:此|这个|這個)?(?:群|「|“|\")[^\n]{{0,200}}", True),
        (rf"{_WHO} was added", True),
        (rf"{_BY} added {_WHO}", True),
        (rf"{_WHO} joined(?: (?:using|via|from|through) [^\n]{{1,100}})?", True),
        (rf"{_WHO} wurde hinzugefügt", True),
        (rf"{_BY} hat {_WHO} hinzugefügt", True),
        (rf"{_WHO} ist [^\n]{{0,100}}beigetreten", True),
        (rf"{_BY} ?已?(?:添加|新增)了? ?{_WHO}", True),
        (rf"{_WHO} ?(?:已?(?:通过|透過|使用|利用)[^\n]{{1,40}}?)?(?:已?加入)了?[^\n]{{0,20}}", True),
        (rf"{_WHO} left(?: the group)?", False),
        (rf"{_WHO} was removed", False),
        (rf"{_BY} removed {_WHO}", False),
        (rf"{_WHO} hat die Gruppe verlassen", False),
        (rf"{_WHO} wurde entfernt", False),
        (rf"{_BY} hat {_WHO} entfernt", False),
        (rf"{_BY} ?已?(?:移除|移出)了? ?{_WHO}", False),
        (rf"{_WHO} ?已?(?:退出|离开|離開)了?[^\n]{{0,20}}", False),
    )
)
_AND = re.compile(r", | and | und |、|，| 和 | 與 | 与 ")
_SELF = ("you", "du", "sie", "你", "您")
_MARGIN = "~\u200e\u200f\u2066\u2067\u2068\u2069\u202a\u202c\u202f\u00a0 "
_LONGEST = 1000


def moves_told(notice: str) -> tuple[Move, ...] | None:
    """Return who came or went, by name; None if the notice is about something else. The person who exported the chat is
    called "you" and left out, since the export does not name them."""
    line = notice.strip(_MARGIN)
    if len(line) > _LONGEST or "\n" in line:
        return None
    for pattern, came in _NOTICES:
        if match := pattern.fullmatch(line):
            people = (one.strip(_MARGIN) for one in _AND.split(match["who"]))
            return tuple(Move(one, came, by_name=True) for one in people if one and one.lower() not in _SELF)
    return None
