"""A bundled group chat to try roomlore on: one working day of a small team that writes English and Chinese.

Invented for this project; generic JSONL, 129 messages with a few platform replies, @mentions and a bot.
"""

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

__all__ = ["DEMO_QUESTIONS", "DEMO_ROOM", "DemoQuestion", "demo_path"]

DEMO_ROOM = "harbour-team"


class DemoQuestion(NamedTuple):
    """A question that somebody asks an hour after the end of the chat. `needed`: the messages without which nobody can
    answer it, as a person judged."""

    sender_id: str
    sender_name: str
    text: str
    needed: tuple[str, ...]
    mentions: tuple[str, ...] = ()


DEMO_QUESTIONS = (
    DemoQuestion("u_priya", "Priya", "how can a customer get the dates in their export as 17/06?", ("m100", "m102")),
    DemoQuestion(
        "u_tom",
        "Tom",
        "@Skipper what do we tell people whose app crashes on an old route?",
        ("m043",),
        mentions=("skipper",),
    ),
    DemoQuestion("u_liuyang", "刘洋", "中午的面是谁付的钱？我还没转", ("m093",)),
)
"""They were written before anybody saw what roomlore finds, and stay as they were written."""


def demo_path() -> Path:
    """Return the path of the chat on disk; the package must be installed unpacked, as pip does."""
    return Path(str(files(__name__))) / "demo.jsonl"
