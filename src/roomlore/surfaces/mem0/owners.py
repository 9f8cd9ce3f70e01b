"""Whose a memory is in mem0's words, and which scope and room that is here.

A memory lies in the scope of its user, else of its agent, else of its run. What it rests on lies in a room of its own
for each set of owners, so that the room's id tells all of them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roomlore import InvalidInput

KEYS = ("user_id", "agent_id", "run_id")
ROOMS = "mem0:"
"""What the ids of the rooms begin with."""
_SCOPES = {"user_id": "user", "agent_id": "agent", "run_id": "group"}


@dataclass(frozen=True, slots=True)
class Owners:
    """One of them is there at least."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], example: str) -> "Owners":
        """Those that are given; numbers become texts. `example`: how to give one, for the error. Raises
        `InvalidInput`."""
        owners = cls(**{key: _name(key, given.get(key)) for key in KEYS})
        if not owners.named():
            raise InvalidInput(f"Say whose: give a user_id, an agent_id or a run_id, as in {example}.")
        return owners

    @classmethod
    def of_room(cls, room_id: str) -> "Owners | None":
        """Those that a room of this client was made for; None for any other room."""
        if not room_id.startswith(ROOMS):
            return None
        try:
            named = json.loads(room_id.removeprefix(ROOMS))
        except (ValueError, RecursionError):
            return None
        sound = isinstance(named, dict) and named and named.keys() <= set(KEYS)
        return cls(**named) if sound and all(isinstance(name, str) and name for name in named.values()) else None

    @classmethod
    def of_scope(cls, scope: str) -> "Owners":
        kind, _, name = scope.partition(":")
        return cls(**{key: name for key, its in _SCOPES.items() if its == kind})

    @property
    def scope(self) -> str:
        key, name = next(iter(self.named().items()))
        return f"{_SCOPES[key]}:{name}"

    @property
    def room_id(self) -> str:
        return ROOMS + json.dumps(self.named(), ensure_ascii=False, separators=(",", ":"))

    @property
    def rooms(self) -> str:
        """Return the beginning of the ids of all rooms with this user, else agent, else run: those of one scope."""
        key, name = next(iter(self.named().items()))
        return ROOMS + json.dumps({key: name}, ensure_ascii=False, separators=(",", ":")).removesuffix("}")

    def named(self) -> dict[str, str]:
        """The owners that are there, the user first."""
        return {key: name for key in KEYS if (name := getattr(self, key)) is not None}

    def include(self, wanted: "Owners") -> bool:
        return wanted.named().items() <= self.named().items()

    def sender_id(self, role: str) -> str:
        """Who says it: messages of the role 'user' are the user's, others the agent's."""
        if role == "user":
            return self.user_id or "user"
        return self.agent_id or role


def _name(key: str, given: Any) -> str | None:
    if given is None:
        return None
    if isinstance(given, bool | float | Mapping) or not (name := str(given).strip()) or name == "*":
        raise InvalidInput(f"{key} is {given!r:.60}; give the id of one, a text or a whole number.")
    return name
