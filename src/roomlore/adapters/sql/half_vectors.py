"""How a vector of 16-bit numbers is handed to psycopg. Needs the extra `postgres`."""

import struct
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from roomlore.core.search import Vectors


@dataclass(frozen=True, slots=True)
class Half:
    """A vector as the extension reads it: its length, two bytes unused, then float16, all big-endian."""

    data: bytes


class _HalfDumper(Dumper):
    """Of no declared type: the statement says what it is cast to."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        data: bytes = obj.data
        return data


def register() -> None:
    """To be called before an engine is made, which copies psycopg's adapters."""
    psycopg.adapters.register_dumper(Half, _HalfDumper)


def halves(vectors: Vectors) -> list[Half]:
    head = struct.pack(">HH", vectors.shape[1], 0)
    return [Half(head + vector.tobytes()) for vector in vectors.astype(">f2")]
