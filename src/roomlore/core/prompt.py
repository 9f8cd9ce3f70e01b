"""A prompt: a text with places for values, known by the hash of the text."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from roomlore.core.errors import InvalidInput

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """`version`: of whoever keeps prompts, '' for one that ships."""

    name: str
    text: str
    version: str = ""

    @property
    def hash(self) -> str:
        """SHA-256 of the text, 64 hex digits."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def places(self) -> frozenset[str]:
        """The names of the values it asks for."""
        return frozenset(_PLACE.findall(self.text))

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with its places filled, all at once: what looks like a place inside a value stays as it is.

        Raises `InvalidInput` where a value is missing.
        """
        missing = sorted(self.places - values.keys())
        if missing:
            raise InvalidInput(f"The prompt {self.name!r} asks for {', '.join(missing)}, which nothing gives it.")
        return _PLACE.sub(lambda place: values[place[1]], self.text)
