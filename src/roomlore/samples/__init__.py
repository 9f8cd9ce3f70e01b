"""A bundled group chat to try roomlore on: one working day of a small team that writes English and Chinese.

Invented for this project; generic JSONL, 129 messages with a few platform replies, @mentions and a bot.
"""

from importlib.resources import files
from pathlib import Path

__all__ = ["DEMO_QUESTIONS", "DEMO_ROOM", "demo_path"]

DEMO_ROOM = "harbour-team"

DEMO_QUESTIONS: tuple[str, ...] = ("m104", "m117", "m121")
"""Messages that the bot is asked to answer: in English, in Chinese and in both, each in another thread."""


def demo_path() -> Path:
    """Return the path of the chat on disk; the package must be installed unpacked, as pip does."""
    return Path(str(files(__name__))) / "demo.jsonl"
