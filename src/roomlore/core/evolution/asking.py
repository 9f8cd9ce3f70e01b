"""What a model is shown: memories and messages, a line each under its handle.

Whatever somebody wrote stays on its line, behind its own handle, and holds nothing that ends a block or that could be
read as an answer where a model repeats it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from roomlore.core.evolution.guards import clean_line
from roomlore.core.evolution.handles import message_handles
from roomlore.core.evolution.strength import is_stale
from roomlore.core.memory.models import Memory, Source
from roomlore.core.memory.reading import as_conversation
from roomlore.core.models import StoredMessage
from roomlore.core.text import fitting

MESSAGE_CHARACTERS = 24_000
"""Code points of all messages together; a short one leaves nothing to the others, so that who writes much crowds out
nobody."""
_LEAST_CHARACTERS = 120
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_INERT = str.maketrans(
    {
        **dict.fromkeys("<＜﹤", "‹"),
        **dict.fromkeys(">＞﹥", "›"),
        **dict.fromkeys("{｛﹛", "("),
        **dict.fromkeys("}｝﹜", ")"),
    }
)


@dataclass(frozen=True, slots=True)
class ShownMessages:
    """`text`: a line for each message that says something of its own. `handles`: of these messages alone."""

    text: str
    handles: Mapping[str, Source]


def inert(text: str) -> str:
    """The text on one line, without what could end a block, begin a tag or be JSON."""
    return clean_line(text.translate(_INERT))


def says_nothing(answer: str) -> bool:
    """Whether an answer says, as the prompts ask for, that there is nothing to do: an empty list, fenced or not."""
    return "".join(line for line in answer.split() if not line.startswith("```")) == "[]"


def show_memories(offered: Mapping[str, Memory], *, now: datetime, floor: float, half_life_days: float) -> str:
    """A line for each: handle, version, the day it was last supported, whether it has faded, statement."""
    return "\n".join(
        f"{handle} [{_about(memory, stale=is_stale(memory, now, floor, half_life_days))}]: {inert(memory.statement)}"
        for handle, memory in offered.items()
    )


def show_messages(
    messages: Sequence[StoredMessage],
    *,
    room_id: str,
    quoted: Mapping[str, StoredMessage],
    people: Mapping[str, str],
    zone: tzinfo,
) -> ShownMessages:
    """The messages of one room in order: handle, time in `zone`, name, text. `quoted`, `people`: as for
    `as_conversation`."""
    most = max(MESSAGE_CHARACTERS // max(len(messages), 1), _LEAST_CHARACTERS)
    said = ((message, inert(as_conversation([message], quoted=quoted, people=people))) for message in messages)
    told = [(message, cut) for message, line in said if (cut := fitting(line, most))]
    handles = message_handles(Source(room_id, message.id) for message, _ in told)
    lines = (
        f"{handle} [{_time(message.at, zone)}] {line}" for handle, (message, line) in zip(handles, told, strict=True)
    )
    return ShownMessages("\n".join(lines), handles)


def lines_of(shown: str) -> dict[str, str]:
    """What `show_messages` shows, by handle, without the times: 'name: text'."""
    told = (line.partition(" ") for line in shown.splitlines())
    return {handle: rest.partition("] ")[2] for handle, _, rest in told}


def _about(memory: Memory, *, stale: bool) -> str:
    words = [f"v{memory.version}", f"{memory.supported_at:%Y-%m-%d}", *(["stale"] if stale else [])]
    if memory.confidence is not None:
        words.append(f"confidence {memory.confidence:.2f}")
    return ", ".join(words)


def _time(at: datetime, zone: tzinfo) -> str:
    local = at.astimezone(zone)
    return f"{_DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M}"
