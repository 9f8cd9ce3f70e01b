"""Read rooms and people from what Hermes' `initialize` is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ASKED_BY_NOBODY = {"cron", "flush", "subagent"}
_GROUPS = {"group", "channel", "thread", "supergroup", "forum"}
_NEW_MESSAGE = "[New message]\n"


@dataclass(frozen=True, slots=True)
class Place:
    """A room, the person who speaks in it, and the agent. `kind` is "" where Hermes does not say it."""

    room_id: str
    kind: str
    person_id: str
    name: str
    agent_id: str
    agent_name: str

    @property
    def scopes(self) -> list[str]:
        """Return whose memories may matter, whoever else is in the context."""
        return [f"group:{self.room_id}", f"agent:{self.agent_id}", f"user:{self.person_id}"]


def place_of(session_id: str, told: Mapping[str, Any]) -> Place | None:
    """Return where a session takes place, None for a run that nobody asked for."""
    platform = str(told.get("platform") or "cli")
    if told.get("agent_context") in _ASKED_BY_NOBODY or platform == "cron":
        return None
    agent = str(told.get("agent_identity") or "default")
    user = str(told.get("user_id") or "")
    at_home = platform in ("cli", "tui") and not user
    chat = str(told.get("chat_id") or "") or ("local" if at_home else user or session_id)
    person = user or ("local" if at_home else f"unknown-{chat}")
    return Place(
        room_id=f"hermes:{platform}:{chat}",
        kind="direct" if at_home else _kind(str(told.get("chat_type") or "")),
        person_id=f"{platform}:{person}",
        name=_plain(str(told.get("user_name") or "")),
        agent_id=f"hermes:{agent}",
        agent_name=agent,
    )


def said_by(name: str, text: str) -> str:
    """Return what the person wrote, without what Hermes puts before it in a group: earlier messages and the name."""
    said = text.rpartition(_NEW_MESSAGE)[2] if text.startswith("[") else text
    prefix = f"[{name}] "
    return (said.removeprefix(prefix) if name else said).strip()


def _kind(chat_type: str) -> str:
    if chat_type in ("dm", "direct", "private"):
        return "direct"
    return "private" if chat_type in _GROUPS else ""


def _plain(name: str) -> str:
    """Return the name on one line. People choose their names, and may try to write lines of their own."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in name).split())
