"""A reply's messages in its room: what is there already, and what comes about."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roomlore.core.chat.models import Usage
from roomlore.core.errors import Conflict, NotFound, StorageUnavailable
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.replies.identity import (
    BROKEN_OFF,
    MOST_ROUNDS,
    REPLY,
    about,
    calls_as_json,
    calls_id,
    calls_of,
    reply_ids,
    result_id,
    usage_of,
)
from roomlore.core.replies.rounds import Round
from roomlore.core.replies.sameness import is_same
from roomlore.core.sessions.models import Session
from roomlore.core.speaking import is_own
from roomlore.ports.storage import UnitOfWork
from roomlore.services.replies.needs import Messages, ReplyParts, Sessions

_TOOL = Role.TOOL.value
_WAITS_SECONDS = (0.1, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a reply stands. `reply`: what was replied before. `session`: None where the room has none of its own.
    `people`: the room's senders with their names."""

    message: StoredMessage
    agent_id: str
    agent_name: str
    reply_id: str
    reply: StoredMessage | None
    rounds: tuple[Round, ...]
    session: Session | None
    people: Mapping[str, str]


class ReplyStore:
    """The replies of one tenant."""

    def __init__(self, *, tenant: str, parts: ReplyParts, messages: Messages, sessions: Sessions) -> None:
        self._tenant = tenant
        self._storage = parts.storage
        self._clock = parts.clock
        self._ids = parts.ids
        self._messages = messages
        self._sessions = sessions

    async def begin(self, message: Message, *, agent_id: str, agent_name: str) -> Place:
        """Stores the message unless it is there, and says what became of a reply to it so far.

        Raises `Conflict` where it is there with other content, `NotFound` where it was deleted.
        """
        place = await self._place(message, agent_id, agent_name)
        if place is None:
            await self._store(message, agent_id)
            place = await self._place(message, agent_id, agent_name)
        if place is None:
            raise NotFound(f"Message {message.id!r:.80} was deleted; give what is said anew another id.")
        if not is_same(place.message, message):
            raise Conflict(
                f"Message {message.id!r:.80} is stored already with other content; use edit to change a message, or "
                "give this one another id."
            )
        return place

    async def _store(self, message: Message, agent_id: str) -> None:
        """The message, in a turn of its own, as said now unless it says when."""
        asked = replace(message, turn_id=message.turn_id or message.id, sent_at=message.sent_at or self._clock.now())
        try:
            await self._write(await self._session(message.room_id), [asked], message.sender_id, agent_id)
        except Conflict:
            return  # another was faster: what it stored is compared

    async def find(self, room_id: str, message_id: str, agent_id: str) -> StoredMessage | None:
        """The agent's reply to the message, None where there is none."""
        async with self._storage.reading() as work:
            found = await self._found(work, room_id, reply_ids(message_id, agent_id))
        return next((reply for reply in found.values() if is_own(reply, agent_id)), None)

    async def keep_calls(self, place: Place, made: Round) -> None:
        """Stores what the model wants called, with what is known of the results."""
        kept = {
            "round": made.number,
            "text": made.text,
            "calls": calls_as_json(made.calls),
            "input_tokens": made.usage.input_tokens,
            "output_tokens": made.usage.output_tokens,
        }
        message = self._message(place, calls_id(place.reply_id, made.number), "", kept)
        await self._keep(place, [replace(message, has_tool_calls=True), *self._results(place, made, made.results)])

    async def keep_results(self, place: Place, made: Round, results: Mapping[str, str]) -> None:
        """Stores what tools gave."""
        await self._keep(place, self._results(place, made, results))

    def _results(self, place: Place, made: Round, results: Mapping[str, str]) -> list[Message]:
        said = []
        for call_id, content in results.items():
            at = made.place(call_id)
            name = made.calls[at].name
            kept = {"round": made.number, "tool_call_id": call_id, "tool": name}
            message = self._message(place, result_id(place.reply_id, made.number, at), content, kept)
            said.append(replace(message, role=Role.TOOL, sender_id=_TOOL, sender_name=name))
        return said

    async def keep_reply(self, place: Place, text: str, kept: Mapping[str, Any]) -> None:
        """Stores the whole reply. Raises `Conflict` where another process was faster."""
        await self._keep(place, [self._message(place, place.reply_id, text, kept)])

    async def keep_broken(self, place: Place, text: str, kept: Mapping[str, Any], *, why: str) -> None:
        """Stores what there is of a reply that broke off, beside the one that may still come."""
        own = f"{place.reply_id}-{self._ids.new()}"
        await self._keep(place, [self._message(place, own, text, {**kept, BROKEN_OFF: why})])

    def _message(self, place: Place, message_id: str, text: str, kept: Mapping[str, Any]) -> Message:
        return Message(
            id=message_id,
            room_id=place.message.room_id,
            sender_id=place.agent_id,
            sender_name=place.agent_name,
            role=Role.ASSISTANT,
            text=text,
            # Nobody answers before they are asked, whatever the clocks say.
            sent_at=max(self._clock.now(), place.message.at),
            reply_to=place.message.id,
            turn_id=place.message.turn_id,
            metadata={REPLY: dict(kept)},
        )

    async def _keep(self, place: Place, messages: Sequence[Message]) -> None:
        """What was paid for is not given up because of a moment's trouble; to store it twice changes nothing. What a
        person who was forgotten meanwhile, or deleted the message, was told goes with it: `NotFound`."""
        async with self._storage.reading() as work:
            if not await self._found(work, place.message.room_id, [place.message.id]):
                raise NotFound("The message was deleted meanwhile.")
        for wait in (*_WAITS_SECONDS, None):
            try:
                await self._write(place.session, messages, place.message.sender_id, place.agent_id)
            except StorageUnavailable:
                if wait is None:
                    raise
                await asyncio.sleep(wait)
            except Conflict as error:
                raise Conflict(
                    "Another process replied to this message meanwhile, and was faster; ask again for what it said."
                ) from error
            else:
                return

    async def _write(self, session: Session | None, messages: Sequence[Message], user_id: str, agent_id: str) -> None:
        """Through the session where the room has one, which notes who speaks and brings its cache up to date."""
        if session is None:
            await self._messages.add(messages)
        else:
            await self._sessions.add_messages(session.conversation_id, messages, user_id=user_id, agent_code=agent_id)

    async def _session(self, room_id: str) -> Session | None:
        async with self._storage.reading() as work:
            return await self._own_session(work, room_id)

    async def _own_session(self, work: UnitOfWork, room_id: str) -> Session | None:
        found = await work.sessions.find(tenant=self._tenant, conversation_id=room_id)
        return found if found and found.version else None

    async def _place(self, message: Message, agent_id: str, agent_name: str) -> Place | None:
        """None where the message is not stored."""
        room_id = message.room_id
        ids = reply_ids(message.id, agent_id)
        async with self._storage.reading() as work:
            found = await self._found(work, room_id, [message.id, ids[0]])
            if message.id not in found:
                return None
            reply_id, reply = ids[0], found.get(ids[0])
            if reply is None:
                reply_id, reply = await self._after_deleted(work, room_id, ids)
            rounds = () if reply else await self._rounds(work, room_id, reply_id, agent_id)
            return Place(
                message=found[message.id],
                agent_id=agent_id,
                agent_name=agent_name,
                reply_id=reply_id,
                reply=_by_agent(reply, agent_id) if reply else None,
                rounds=rounds,
                session=await self._own_session(work, room_id),
                people=await work.rooms.participants(tenant=self._tenant, room_id=room_id),
            )

    async def _after_deleted(
        self, work: UnitOfWork, room_id: str, ids: Sequence[str]
    ) -> tuple[str, StoredMessage | None]:
        """The first id that no deleted reply holds: one that was deleted may be asked for anew."""
        taken = await work.messages.fingerprints(tenant=self._tenant, room_id=room_id, message_ids=list(ids))
        for reply_id in ids:
            if reply_id not in taken:
                return reply_id, None
            if taken[reply_id]:
                return reply_id, (await self._found(work, room_id, [reply_id])).get(reply_id)
        raise Conflict(f"{len(ids)} replies to this message were deleted; give what is said anew another id.")

    async def _rounds(self, work: UnitOfWork, room_id: str, reply_id: str, agent_id: str) -> tuple[Round, ...]:
        if not await self._found(work, room_id, [calls_id(reply_id, 0)]):
            return ()
        asked = await self._found(work, room_id, [calls_id(reply_id, number) for number in range(MOST_ROUNDS)])
        rounds: list[Round] = []
        while made := asked.get(calls_id(reply_id, len(rounds))):
            text = str(about(_by_agent(made, agent_id)).get("text", ""))
            rounds.append(Round(number=len(rounds), text=text, calls=calls_of(made), usage=usage_of(made)))
        places = {
            result_id(reply_id, one.number, place): (one.number, call.id)
            for one in rounds
            for place, call in enumerate(one.calls)
        }
        for message_id, message in (await self._found(work, room_id, list(places))).items():
            number, call_id = places[message_id]
            rounds[number] = rounds[number].with_results({call_id: message.text})
        return tuple(rounds)

    async def _found(self, work: UnitOfWork, room_id: str, ids: list[str]) -> dict[str, StoredMessage]:
        entries = await work.messages.by_id(tenant=self._tenant, room_id=room_id, message_ids=ids)
        return {entry.message.id: entry.message for entry in entries}


def _by_agent(message: StoredMessage, agent_id: str) -> StoredMessage:
    """Raises `Conflict` where somebody else's message has the id of the agent's."""
    if is_own(message, agent_id):
        return message
    raise Conflict(
        f"The message {message.id!r:.80} has the id of this reply and is none of the agent's; delete it, or give the "
        "message to reply to another id."
    )


def usage_so_far(rounds: Sequence[Round]) -> Usage:
    """What the rounds took."""
    return sum((one.usage for one in rounds), Usage())
