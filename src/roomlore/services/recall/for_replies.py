"""What is known of a room, of the people who speak in it and of the agent, for the agent's replies."""

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from roomlore.core.memory.models import Memory
from roomlore.core.models import Role, StoredMessage
from roomlore.core.recall.rendering import line_of
from roomlore.core.speaking import Speakers
from roomlore.services.recall.service import RecallParts, RecallService

_MOST_PEOPLE = 8
"""Whose facts are brought to one reply: those who spoke last."""


class KnownForReplies:
    """The port `Recall` over facts and group memories, for all tenants.

    Of the room's own group, of those who spoke last, and of the agent. The agent's short memories are left out: they
    tell of every room it is in, and what one room says is nobody's business in another. `wait_seconds`: for vectors, so
    that there is time left to go by words.
    """

    def __init__(self, parts: RecallParts, *, wait_seconds: float) -> None:
        self._parts = replace(parts, wait_seconds=wait_seconds)

    @property
    def name(self) -> str:
        return "known"

    async def recall(
        self, *, tenant: str, room_id: str, agent_id: str, messages: Sequence[StoredMessage], max_tokens: int
    ) -> str:
        """One line a memory, which names whose it is. Raises `StorageUnavailable`."""
        if max_tokens <= 0:
            return ""
        people = _people(messages, agent_id)
        found = await RecallService(tenant=tenant, parts=self._parts).build(
            [f"group:{room_id}", f"agent:{agent_id}", *(f"user:{sender}" for sender in people)],
            messages,
            max_tokens=max_tokens,
            conversation_id=_conversation(room_id, agent_id),
        )
        speakers = Speakers(people, agents=[agent_id])
        return self._fitting([_line(one.memory, speakers) for one in found.facts], max_tokens)

    def _fitting(self, lines: list[str], max_tokens: int) -> str:
        """A name may take more than the id in whose place it stands."""
        while lines and self._parts.tokens.count(["".join(lines)])[0] > max_tokens:
            lines.pop()
        return "".join(lines).rstrip("\n")


def _people(messages: Sequence[StoredMessage], agent_id: str) -> dict[str, str]:
    """Sender ids to names of those who spoke last, in an order that does not follow who speaks."""
    found: dict[str, str] = {}
    for message in reversed(messages):
        if message.role is Role.USER and message.sender_id != agent_id and len(found) < _MOST_PEOPLE:
            found[message.sender_id] = found.get(message.sender_id) or message.sender_name
    return dict(sorted(found.items()))


def _line(memory: Memory, speakers: Speakers) -> str:
    """People are called as they are in what was said."""
    kind, _, name = memory.scope.partition(":")
    return line_of(memory.statement, f"user:{speakers.name_of(name)}" if kind == "user" else memory.scope)


def _conversation(room_id: str, agent_id: str) -> str:
    """A name that no caller's conversation has, and of bounded length."""
    return "reply:" + sha256(json.dumps([room_id, agent_id]).encode()).hexdigest()
