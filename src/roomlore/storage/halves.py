"""Vectors as psycopg sends them to pgvector: float16 in binary."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format


@dataclass(frozen=True, slots=True)
class Half:
    """A vector in pgvector's binary form: its length, two unused bytes, then float16, all big-endian."""

    data: bytes


class _HalfDumper(Dumper):
    """Dumps without a declared type: the statement casts it."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        data: bytes = obj.data
        return data


def register() -> None:
    """Register the dumper. Call it before creating an engine, which copies psycopg's adapters."""
    psycopg.adapters.register_dumper(Half, _HalfDumper)
