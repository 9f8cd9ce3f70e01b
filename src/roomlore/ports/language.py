"""What roomlore needs of language tools."""

from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """Counts tokens exactly as the configured encoding does, offline."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text; special tokens in a text count as plain text."""
