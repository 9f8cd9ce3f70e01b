"""A bundled group chat to try roomlore on: one working day of a small team that writes English and Chinese.

Invented for this project; generic JSONL, 129 messages with a few platform replies, @mentions and a bot.
"""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

__all__ = ["DEMO_QUESTIONS", "DEMO_ROOM", "demo_path"]

DEMO_ROOM = "harbour-team"

DEMO_QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "m101": ("m099", "m100"),
    "m104": ("m099", "m100", "m102"),
    "m117": ("m110", "m114", "m115"),
    "m121": ("m066", "m075", "m119"),
}
"""Questions in English, in Chinese and in both, of a person or to the bot, each with the earlier messages without which
nobody can answer it, as a person judged. What roomlore finds has no say in them."""


def demo_path() -> Path:
    """Return the path of the chat on disk; the package must be installed unpacked, as pip does."""
    return Path(str(files(__name__))) / "demo.jsonl"
