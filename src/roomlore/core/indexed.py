"""What of a message is indexed: its sender's name, its text and `metadata.caption`."""

from roomlore.core.models import Message
from roomlore.core.search import EmbeddingModel
from roomlore.core.terms import terms

WORDS_MODEL = EmbeddingModel(name="words-1", dimensions=0)
"""Renamed whenever `indexed_words` gives other words for the same message: the lexical index is then rebuilt."""


def _caption(message: Message) -> str:
    caption = message.metadata.get("caption")
    return caption if isinstance(caption, str) else ""


def indexed_words(message: Message) -> list[str]:
    """The words a message is found by, repeats kept."""
    return terms(message.sender_name or message.sender_id) + terms(message.text) + terms(_caption(message))


def passage(message: Message) -> str:
    """The text whose vector stands for the message; empty where there is nothing to embed."""
    said = " ".join(part for part in (message.text.strip(), _caption(message).strip()) if part)
    return f"{message.sender_name or message.sender_id}: {said}" if said else ""
