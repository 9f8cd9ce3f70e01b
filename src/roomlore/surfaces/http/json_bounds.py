"""Bounds on JSON that hold while it streams in: a few bytes can stand for many values, and each costs time to build."""

import re
from dataclasses import dataclass

import numpy as np

from roomlore.core.errors import InvalidInput
from roomlore.settings import Settings
from roomlore.surfaces.http.problems import Refused

# A string, or the part of one that the piece ends in. Possessive: each byte is read once.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = np.zeros(256, np.int64)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_SMALL_VALUES = 20_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """The largest body a route takes: `size` in bytes under the setting `named`, values, and levels of nesting."""

    size: int
    named: str
    values: int
    depth: int

    @classmethod
    def small(cls, settings: Settings) -> "Bounds":
        """Return the bounds of a route that asks, or writes a few words."""
        size, named = min(
            (settings.max_small_body_bytes, "max_small_body_bytes"), (settings.max_body_bytes, "max_body_bytes")
        )
        return cls(size, named, min(_SMALL_VALUES, settings.max_json_values), settings.max_json_depth)

    @classmethod
    def bulk(cls, settings: Settings) -> "Bounds":
        """Return the bounds of a route that takes messages, facts or sessions."""
        return cls(settings.max_body_bytes, "max_body_bytes", settings.max_json_values, settings.max_json_depth)

    def too_large(self) -> Refused:
        return Refused(
            413, f"The body is larger than {self.size} bytes (setting {self.named}); send it in smaller parts."
        )

    def too_deep(self) -> InvalidInput:
        return InvalidInput(f"The JSON is nested deeper than {self.depth} levels (setting max_json_depth); flatten it.")

    def too_many(self) -> Refused:
        told = "" if self.values == _SMALL_VALUES else " (setting max_json_values)"
        return Refused(413, f"The JSON has more than {self.values} values{told}; send it in smaller parts.")


class JsonMeter:
    """Measures JSON piece by piece, in linear time and without building a value.

    Text that is no JSON is measured as if it were; telling so is the parser's work.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open = b""
        self._size = self._depth = self._marks = self._strings = 0

    def take(self, piece: bytes) -> None:
        """Measure the next piece. Raises `Refused` where there are too many bytes or values, `InvalidInput` where they
        are nested too deeply."""
        self._size += len(piece)
        if self._size > self._bounds.size:
            raise self._bounds.too_large()
        bare = self._without_strings(self._open + piece)
        # Each value but the first follows a comma or an opening bracket; a member of an object has two strings at most.
        self._marks += bare.count(b",") + bare.count(b"[") + bare.count(b"{")
        if max(self._marks, self._strings // 2) > self._bounds.values:
            raise self._bounds.too_many()
        brackets = bare.translate(None, _NO_BRACKETS)
        if brackets:
            depths = self._depth + np.cumsum(_STEPS[np.frombuffer(brackets, np.uint8)])
            if int(depths.max()) > self._bounds.depth:
                raise self._bounds.too_deep()
            self._depth = int(depths[-1])

    def _without_strings(self, text: bytes) -> bytes:
        """Return the text with a quotation mark for each string, and keep what the next piece must begin with."""
        bare, found = _STRING.subn(rb"\1", text)
        closed = bare.count(b'"')
        self._strings += closed
        self._open = b""
        if found > closed:
            escaping = (len(text) - len(text.rstrip(b"\\"))) % 2
            self._open = b'"' + b"\\" * escaping
        return bare
