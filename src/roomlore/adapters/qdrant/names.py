"""What collections and points are called in Qdrant.

A collection of the port is an alias there. It stands for a collection that has its generation in the name, as in
`group_memories` for `group_memories@0197...`. So a write or a search under a generation fails by itself once another
one, or none, is there.
"""

import json
import re
from uuid import UUID, uuid5

from roomlore.core.errors import InvalidInput
from roomlore.ports.vectors import MESSAGES

_NAMES = {MESSAGES: "room_messages"}
"""Other collections keep their name; `messages` says too little on a server that others use too."""

_MARK = "@"
_PREFIX = re.compile(r"[A-Za-z0-9_-]{0,64}")
_GENERATION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_POINTS = UUID("5f0c5e3c-6c0f-4d52-9a53-0d6f6a1c7be4")


def check_prefix(prefix: str) -> str:
    if not _PREFIX.fullmatch(prefix):
        raise InvalidInput(
            f"A prefix of Qdrant collections is made of letters, digits, - and _, at most 64; {prefix!r} is not."
        )
    return prefix


def alias_of(prefix: str, collection: str) -> str:
    return prefix + _NAMES.get(collection, collection)


def physical(alias: str, generation: str) -> str:
    """The collection of one generation behind an alias."""
    if not _GENERATION.fullmatch(generation):
        raise InvalidInput(f"A generation is made of letters, digits, - and _, at most 64; {generation!r} is not.")
    return f"{alias}{_MARK}{generation}"


def generation_of(alias: str, name: str) -> str | None:
    """The generation in the name of a collection behind this alias; None in any other name."""
    front, mark, generation = name.partition(_MARK)
    return generation if front == alias and mark and _GENERATION.fullmatch(generation) else None


def point_id(tenant: str, scope: str, number: int) -> str:
    """The same for the same three, another for any others."""
    return str(uuid5(_POINTS, json.dumps([tenant, scope, number])))
