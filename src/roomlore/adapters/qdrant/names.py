"""What collections and points are called in Qdrant.

A collection of the port is an alias there. It stands for a collection that has its generation and the length of its
vectors in the name, as in `group_memories` for `group_memories@0197f3.384`. So a write or a search under a generation
fails by itself once another one, or none, is there.
"""

import json
import re
from dataclasses import dataclass
from uuid import UUID, uuid5

from roomlore.core.errors import InvalidInput
from roomlore.ports.vectors import MESSAGES

_NAMES = {MESSAGES: "room_messages"}
"""Other collections keep their name; `messages` says too little on a server that others use too."""

_PREFIX = re.compile(r"[A-Za-z0-9_-]{0,64}")
_GENERATION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PHYSICAL = re.compile(r"([A-Za-z0-9_-]+)@([A-Za-z0-9_-]{1,64})\.([1-9][0-9]{0,5})")
_ESCAPED = "\x1a"
_POINTS = UUID("5f0c5e3c-6c0f-4d52-9a53-0d6f6a1c7be4")


def check_prefix(prefix: str) -> str:
    if not _PREFIX.fullmatch(prefix):
        raise InvalidInput(
            f"A prefix of Qdrant collections is made of letters, digits, - and _, at most 64; {prefix!r} is not."
        )
    return prefix


def alias_of(prefix: str, collection: str) -> str:
    return prefix + _NAMES.get(collection, collection)


@dataclass(frozen=True, slots=True)
class Held:
    """What the name of a collection behind an alias says of it."""

    generation: str
    dimensions: int


def physical(alias: str, held: Held) -> str:
    """The collection behind an alias. Raises `InvalidInput` where the generation cannot be in a name."""
    if not _GENERATION.fullmatch(held.generation):
        raise InvalidInput(f"A generation is made of letters, digits, - and _, at most 64; {held.generation!r} is not.")
    return f"{alias}@{held.generation}.{held.dimensions}"


def held_by(alias: str, name: str) -> Held | None:
    """The reverse of `physical`; None for any other name."""
    match = _PHYSICAL.fullmatch(name)
    return Held(match[2], int(match[3])) if match and match[1] == alias else None


def storable(text: str) -> str:
    """The text as a key that JSON in UTF-8 can hold; different texts stay different."""
    if text.startswith(_ESCAPED) or not _is_utf8(text):
        return _ESCAPED + json.dumps(text)
    return text


def _is_utf8(text: str) -> bool:
    return text.encode("utf-8", "ignore").decode() == text


def point_id(tenant: str, scope: str, number: int) -> str:
    """The same for the same three, another for any others."""
    return str(uuid5(_POINTS, json.dumps([tenant, scope, number])))
