"""The material of a reply: its stored messages, the context, the session and the recalled memories."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from roomlore.core.audience import RoomKind
from roomlore.core.chat import Usage
from roomlore.core.errors import BudgetTooSmall, Conflict, NotFound, StorageDamaged, StorageUnavailable, describe
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.recall import recollection
from roomlore.core.replies.prompt import Material, ReplyPrompt, Round, as_function, assemble, said_before
from roomlore.core.replies.reply import (
    BROKEN_OFF,
    MAX_ROUNDS,
    REPLY,
    about,
    calls_as_json,
    calls_id,
    calls_of,
    is_one_to_one,
    is_same,
    reply_ids,
    result_id,
    usage_of,
)
from roomlore.core.sessions.session import Session
from roomlore.core.transcript import is_own, language_of, text_or_caption
from roomlore.ports.language import Language
from roomlore.ports.memories import Recall
from roomlore.ports.shared import Service
from roomlore.ports.verbs import ContextVerbs, MessageVerbs
from roomlore.services.replies.deferred import Deferred
from roomlore.services.replies.request import CheckedRequest, ReplyParts, ReplySessions
from roomlore.storage import UnitOfWork

log = logging.getLogger(__name__)


_TOOL = Role.TOOL.value
_FEW = 8
"""The most who may have spoken in a room whose people are read."""
_WAITS_SECONDS = (0.1, 0.5)
PROMPT = "reply"
_INLINE_CHARACTERS = 150_000
"""Characters that are assembled and counted on the event loop; more use another thread."""
_SHARE_OF_BLOCKS = 4
RECALL_TOKENS = 2000
"""The limit of what a reply recalls, and a quarter of its window: some hundred facts, which models still read well."""
WITHOUT_DATABASE = "The database could not be used: the reply knows only what was just said."


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The progress of a reply. `reply`: the earlier reply. `session`: None if the room has none of its own. `people`:
    the room's senders with their names. `is_one_to_one`: it is a conversation of one person and an agent. `problem`:
    why the message is not stored yet, '' if it is."""

    message: StoredMessage
    agent_id: str
    agent_name: str
    reply_id: str
    reply: StoredMessage | None
    rounds: tuple[Round, ...]
    session: Session | None
    people: Mapping[str, str]
    is_one_to_one: bool = False
    problem: str = ""


class ReplyStore(Service):
    """The stored replies of one tenant."""

    def __init__(self, *, tenant: str, parts: ReplyParts, messages: MessageVerbs, sessions: ReplySessions) -> None:
        super().__init__(parts.backends)
        self.tenant = self._tenant = tenant
        self._later = parts.later
        self._messages = messages
        self._sessions = sessions

    async def begin(self, message: Message, *, agent_id: str, agent_name: str) -> Place:
        """Store the message unless it exists, and return the progress of its reply. With the database down it is stored
        when it is back.

        Raise `Conflict` if it exists with other content, `NotFound` if it was deleted.
        """
        waiting = self._later.of_room(self._tenant, message.room_id)
        if any(queued.id == message.id for queued in waiting):
            return self._unstored(message, waiting, agent_id, agent_name, "It waits for the database.")
        try:
            place = await self._begin(message, agent_id, agent_name)
            reply = next((queued for queued in waiting if queued.id == place.reply_id), None)
            if place.reply is None and reply is not None:
                return replace(place, reply=reply, problem="The reply waits for the database.")
            return place
        except StorageDamaged:
            raise
        except StorageUnavailable as error:
            log.warning("a reply begins without the database", extra={"why": describe(error)})
            waiting = self._later.of_room(self._tenant, message.room_id)
            if all(queued.id != message.id for queued in waiting):  # another agent may have been asked meanwhile
                self._later.add(self._tenant, Deferred(message, agent_id, [self._dated(message)]), self._write_later)
                waiting = self._later.of_room(self._tenant, message.room_id)
            return self._unstored(message, waiting, agent_id, agent_name, str(error))

    def _unstored(
        self, message: Message, waiting: Sequence[StoredMessage], agent_id: str, agent_name: str, why: str
    ) -> Place:
        """Return the progress of a reply to a message that waits for the database, from what waits there."""
        question = next(queued for queued in waiting if queued.id == message.id)
        if not is_same(question, message):
            raise Conflict("message_given_differently", message=f"{message.id!r:.80}")
        reply_id = reply_ids(message.id, agent_id)[0]
        people = {queued.sender_id: queued.sender_name for queued in waiting if queued.role is Role.USER}
        return Place(
            message=question,
            agent_id=agent_id,
            agent_name=agent_name,
            reply_id=reply_id,
            reply=next((queued for queued in waiting if queued.id == reply_id), None),
            rounds=(),
            session=None,
            people=people,
            problem=why,
        )

    def waiting(self, place: Place) -> list[StoredMessage]:
        """Return what waits for the room's database, before the message."""
        queue = self._later.of_room(self._tenant, place.message.room_id)
        return [queued for queued in queue if queued.arrival < place.message.arrival]

    async def begun(self, message: Message, *, agent_id: str) -> bool:
        """Return True if the reply to the message is stored, or has called tools."""
        place = await self._place(message, agent_id, "")
        return place is not None and (place.reply is not None or bool(place.rounds))

    async def _begin(self, message: Message, agent_id: str, agent_name: str) -> Place:
        place = await self._place(message, agent_id, agent_name)
        if place is None:
            await self._later.settle(self._tenant, message.room_id)
            await self._store(message, agent_id)
            place = await self._place(message, agent_id, agent_name)
        if place is None:
            raise NotFound("message_deleted_say_anew", message=f"{message.id!r:.80}")
        if not is_same(place.message, message):
            raise Conflict("message_stored_use_edit", message=f"{message.id!r:.80}")
        return place

    async def _store(self, message: Message, agent_id: str) -> None:
        """Store the message, in a turn of its own, with the current time if it has none."""
        question = self._dated(message)
        try:
            await self._write(await self._session(message.room_id), [question], message.sender_id, agent_id)
        except Conflict:
            return  # Another writer was faster: what it stored is compared.

    def _dated(self, message: Message) -> Message:
        turn_id, sent_at = message.turn_id or message.id, message.sent_at or self._clock.now()
        return replace(message, turn_id=turn_id, sent_at=sent_at)

    async def _write_later(self, waited: Sequence[Deferred]) -> None:
        """Write what waited for a room. A question may have been stored before the database failed, at its first time.

        Raise `NotFound` if a question was deleted meanwhile, or with its person, and `Conflict` if its id is stored
        with other content; then nothing is written. What each agent waited for is written in a transaction of its own.
        """
        room_id, ids = waited[0].asked.room_id, list({deferred.asked.id for deferred in waited})
        async with self._storage.reading(self._tenant) as work:
            known = await self._stored_by_id(work, room_id, ids)
            taken = await work.messages.fingerprints(room_id=room_id, message_ids=ids)
            session = await self._own_session(work, room_id)
        _check_questions(waited, known, gone=taken.keys() - known.keys())
        missing = [deferred for deferred in waited if not (deferred.is_question and deferred.asked.id in known)]
        for agent_id, ones in groupby(missing, key=lambda deferred: deferred.agent_id):
            group = list(ones)
            messages = [message for deferred in group for message in deferred.messages]
            await self._write(session, messages, group[0].asked.sender_id, agent_id)

    async def find(self, room_id: str, message_id: str, agent_id: str) -> StoredMessage | None:
        """Return the agent's reply to the message, None if there is none."""
        async with self._storage.reading(self._tenant) as work:
            replies = await self._stored_by_id(work, room_id, reply_ids(message_id, agent_id))
        return next((reply for reply in replies.values() if is_own(reply, agent_id)), None)

    async def keep_calls(self, place: Place, made: Round) -> None:
        """Store the tool calls that the model requested, with the known results."""
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
        """Store the results of tools."""
        await self._keep(place, self._results(place, made, results))

    def _results(self, place: Place, made: Round, results: Mapping[str, str]) -> list[Message]:
        tool_messages = []
        for call_id, content in results.items():
            at = made.place(call_id)
            name = made.calls[at].name
            kept = {"round": made.number, "tool_call_id": call_id, "tool": name}
            message = self._message(place, result_id(place.reply_id, made.number, at), content, kept)
            tool_messages.append(replace(message, role=Role.TOOL, sender_id=_TOOL, sender_name=name))
        return tool_messages

    async def keep_reply(self, place: Place, text: str, kept: Mapping[str, Any]) -> str:
        """Store the whole reply, or return why it is stored later. Raise `Conflict` if another process was faster."""
        return await self._keep(place, [self._message(place, place.reply_id, text, kept)])

    async def keep_broken(self, place: Place, text: str, kept: Mapping[str, Any], *, why: str) -> None:
        """Store a partial reply that broke off, beside the one that may still come."""
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
            # An answer is never earlier than its question, unless that was dated days ahead.
            sent_at=max(self._clock.now(), place.message.dated_at),
            reply_to=place.message.id,
            topic_id=place.message.topic_id,
            turn_id=place.message.turn_id,
            metadata={REPLY: dict(kept)},
        )

    async def _keep(self, place: Place, messages: Sequence[Message]) -> str:
        """Store the messages, and retry after a brief error: a paid answer must not be lost, and storing it twice
        changes nothing. With the database down they are stored when it is back; then return why. If the person was
        forgotten meanwhile, or deleted the message, the answer is dropped with it: `NotFound`."""
        problem = place.problem
        if not problem and not self._later.of_room(self._tenant, place.message.room_id):
            try:
                await self._keep_now(place, messages)
            except StorageDamaged:
                raise
            except StorageUnavailable as error:
                problem = str(error)
            else:
                return ""
        self._later.add(self._tenant, Deferred(place.message, place.agent_id, messages), self._write_later)
        return problem or "What was said before waits for the database."

    async def _keep_now(self, place: Place, messages: Sequence[Message]) -> None:
        for wait in (*_WAITS_SECONDS, None):
            try:
                async with self._storage.reading(self._tenant) as work:
                    if not await self._stored_by_id(work, place.message.room_id, [place.message.id]):
                        raise NotFound("message_deleted_meanwhile")
                await self._write(place.session, messages, place.message.sender_id, place.agent_id)
            except StorageUnavailable:
                if wait is None:
                    raise
                await asyncio.sleep(wait)
            except Conflict as error:
                raise Conflict("replied_elsewhere") from error
            else:
                return

    async def _write(self, session: Session | None, messages: Sequence[Message], user_id: str, agent_id: str) -> None:
        """Write through the session if the room has one: it records who speaks and updates its cache."""
        if session is None:
            await self._messages.add(messages)
        else:
            await self._sessions.add_messages(session.conversation_id, messages, user_id=user_id, agent_code=agent_id)

    async def _session(self, room_id: str) -> Session | None:
        async with self._storage.reading(self._tenant) as work:
            return await self._own_session(work, room_id)

    async def _own_session(self, work: UnitOfWork, room_id: str) -> Session | None:
        stored_session = await work.sessions.find(conversation_id=room_id)
        return stored_session if stored_session and stored_session.version else None

    async def _place(self, message: Message, agent_id: str, agent_name: str) -> Place | None:
        """Return the progress of the reply, None if the message is not stored."""
        room_id = message.room_id
        ids = reply_ids(message.id, agent_id)
        async with self._storage.reading(self._tenant) as work:
            known = await self._stored_by_id(work, room_id, [message.id, ids[0]])
            if message.id not in known:
                return None
            reply_id, reply = ids[0], known.get(ids[0])
            if reply is None:
                reply_id, reply = await self._after_deleted(work, room_id, ids)
            rounds = () if reply else await self._rounds(work, room_id, reply_id, agent_id)
            people = await work.rooms.participants(room_id=room_id)
            return Place(
                message=known[message.id],
                agent_id=agent_id,
                agent_name=agent_name,
                reply_id=reply_id,
                reply=_by_agent(reply, agent_id) if reply else None,
                rounds=rounds,
                session=await self._own_session(work, room_id),
                people=people,
                is_one_to_one=await self._is_one_to_one(work, room_id, people, agent_id),
            )

    async def _is_one_to_one(self, work: UnitOfWork, room_id: str, spoke: Mapping[str, str], agent_id: str) -> bool:
        """Return if a room is one-to-one. Of a large one, whose people are many, only the kind is read."""
        if len(spoke) > _FEW:
            room = await work.rooms.find(room_id=room_id)
            return room is not None and room.kind is RoomKind.DIRECT
        people = await work.rooms.people(room_ids=[room_id])
        return room_id in people and is_one_to_one(people[room_id], spoke, agent_id)

    async def _after_deleted(
        self, work: UnitOfWork, room_id: str, ids: Sequence[str]
    ) -> tuple[str, StoredMessage | None]:
        """Return the first id that no deleted reply holds: a deleted reply may be requested again."""
        taken = await work.messages.fingerprints(room_id=room_id, message_ids=list(ids))
        for reply_id in ids:
            if reply_id not in taken:
                return reply_id, None
            if taken[reply_id]:
                return reply_id, (await self._stored_by_id(work, room_id, [reply_id])).get(reply_id)
        raise Conflict("replies_deleted", count=len(ids))

    async def _rounds(self, work: UnitOfWork, room_id: str, reply_id: str, agent_id: str) -> tuple[Round, ...]:
        if not await self._stored_by_id(work, room_id, [calls_id(reply_id, 0)]):
            return ()
        calls_made = await self._stored_by_id(
            work, room_id, [calls_id(reply_id, number) for number in range(MAX_ROUNDS)]
        )
        rounds: list[Round] = []
        while made := calls_made.get(calls_id(reply_id, len(rounds))):
            text = str(about(_by_agent(made, agent_id)).get("text", ""))
            rounds.append(Round(number=len(rounds), text=text, calls=calls_of(made), usage=usage_of(made)))
        places = {
            result_id(reply_id, round_.number, place): (round_.number, call.id)
            for round_ in rounds
            for place, call in enumerate(round_.calls)
        }
        for message_id, message in (await self._stored_by_id(work, room_id, list(places))).items():
            number, call_id = places[message_id]
            rounds[number] = rounds[number].with_results({call_id: message.text})
        return tuple(rounds)

    async def _stored_by_id(self, work: UnitOfWork, room_id: str, ids: list[str]) -> dict[str, StoredMessage]:
        entries = await work.messages.by_id(room_id=room_id, message_ids=ids)
        return {entry.message.id: entry.message for entry in entries}


def _check_questions(
    waited: Sequence[Deferred], stored_messages: Mapping[str, StoredMessage], *, gone: Set[str]
) -> None:
    """Raise `NotFound` or `Conflict` unless each question is stored or can be, before what answers it."""
    known = set(stored_messages)
    for deferred in waited:
        stored = stored_messages.get(deferred.asked.id)
        if stored is not None and not stored.edited_at and not is_same(stored, replace(deferred.asked, sent_at=None)):
            raise Conflict("message_stored_differently", message=f"{deferred.asked.id!r:.80}")
        if deferred.asked.id in gone or not (deferred.is_question or deferred.asked.id in known):
            raise NotFound("message_deleted_meanwhile")
        known.add(deferred.asked.id)


def _by_agent(message: StoredMessage, agent_id: str) -> StoredMessage:
    """Return the message. Raise `Conflict` if it is another sender's with the id of the agent's reply."""
    if is_own(message, agent_id):
        return message
    raise Conflict("reply_id_taken", message=f"{message.id!r:.80}")


def usage_so_far(rounds: Sequence[Round]) -> Usage:
    """Return the token usage of the rounds."""
    return sum((round_.usage for round_ in rounds), Usage())


@dataclass(frozen=True, slots=True)
class Gathered:
    """The gathered material. `truncated`: something was left out before the prompt was assembled."""

    material: Material
    context_id: str | None
    degraded: str | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Window:
    messages: Sequence[StoredMessage] = ()
    summary: str = ""
    truncated: bool = False


class MaterialReader(Service):
    """Gather the material of replies, for one tenant."""

    def __init__(
        self,
        *,
        tenant: str,
        parts: ReplyParts,
        contexts: ContextVerbs,
        sessions: ReplySessions,
        recalls: Sequence[Recall],
        waiting: Callable[[Place], Sequence[StoredMessage]],
    ) -> None:
        super().__init__(parts.backends)
        self._tenant = tenant
        self._parts = parts
        self._contexts = contexts
        self._sessions = sessions
        self._recalls = recalls
        self._waiting = waiting

    async def gather(self, ask: CheckedRequest, place: Place) -> Gathered:
        """Return everything that may enter the prompt; with the database down what the request itself holds."""
        if place.problem:
            return await self._bare(ask, place, place.problem)
        try:
            return await self._gather(ask, place)
        except StorageDamaged:
            raise
        except StorageUnavailable as error:
            return await self._bare(ask, place, str(error))

    async def _bare(self, ask: CheckedRequest, place: Place, why: str) -> Gathered:
        log.warning("a reply goes without what the database holds", extra={"why": why})
        material = Material(
            trigger=place.message,
            agent_id=ask.request.agent_id,
            agent_name=ask.request.agent_name,
            window=self._waiting(place) if place.problem else (),
            people=place.people,
            zone=self._parts.options.zone,
            now=self._clock.now(),
        )
        spoken = language_of(list(material.window), place.message)
        material = replace(material, language=spoken, system=await self._system(ask, spoken))
        return Gathered(material, None, f"{WITHOUT_DATABASE} {why}", False)

    async def _gather(self, ask: CheckedRequest, place: Place) -> Gathered:
        trigger = place.message
        context = await self._contexts.build(trigger.room_id, trigger.id)
        window = await self._window(place, ask.window)
        boundary = place.session.boundary if place.session else 0
        material = Material(
            trigger=trigger,
            agent_id=ask.request.agent_id,
            agent_name=ask.request.agent_name,
            context=[message for message in context.messages if message.is_far or message.message.arrival > boundary],
            window=[*window.messages, *await self._wanted(ask, window.messages)],
            summary=window.summary,
            people=place.people,
            zone=self._parts.options.zone,
            now=self._clock.now(),
        )
        spoken = language_of([*_chosen(material), *material.window], trigger)
        material = replace(material, language=spoken, system=await self._system(ask, spoken))
        blocks, lost = await self._remembered(ask, material)
        return Gathered(
            replace(material, blocks=blocks), context.context_id, context.degraded, window.truncated or lost
        )

    async def prompt(
        self, gathered: Gathered, ask: CheckedRequest, rounds: Sequence[Round], *, tools: bool
    ) -> ReplyPrompt:
        """Return the prompt for the next call of the model. Raise `BudgetTooSmall`."""
        offered = [as_function(tool) for tool in ask.request.tools] if tools else []
        material = replace(gathered.material, rounds=rounds, tools=offered)
        count = self._tokens.for_models(ask.names).count
        if _characters(material) <= _INLINE_CHARACTERS:
            prompt_built = assemble(material, budget=ask.budget, count=count)
        else:
            prompt_built = await asyncio.to_thread(assemble, material, budget=ask.budget, count=count)
        return replace(prompt_built, truncated=True) if gathered.truncated else prompt_built

    async def _window(self, place: Place, window: int) -> _Window:
        if place.session is None and not place.is_one_to_one:
            return _Window()
        room_id = place.message.room_id
        try:
            shown = await self._sessions.query_window(room_id, window)
        except BudgetTooSmall:
            known = None if _tells_of_later(place.session, place) else place.session
            return _Window(summary=known.summary if known else "", truncated=True)
        async with self._storage.reading(self._tenant) as work:
            entries = await work.messages.by_id(room_id=room_id, message_ids=list(shown.message_ids))
            session = await work.sessions.find(conversation_id=room_id) or place.session
        messages = [entry.message for entry in entries]
        if _tells_of_later(session, place):
            return _Window(messages, truncated=True)
        return _Window(messages, shown.summary, shown.truncated)

    async def _wanted(self, ask: CheckedRequest, window: Sequence[StoredMessage]) -> list[StoredMessage]:
        """Return the messages that the caller wants shown, without those of the window."""
        wanted = list(dict.fromkeys(ask.request.shown))
        if not wanted:
            return []
        known = {message.id for message in window}
        async with self._storage.reading(self._tenant) as work:
            entries = await work.messages.by_id(room_id=ask.request.message.room_id, message_ids=wanted)
        return [entry.message for entry in entries if entry.message.id not in known]

    async def _system(self, ask: CheckedRequest, spoken: Language) -> str:
        request = ask.request
        if request.system_prompt is not None:
            return request.system_prompt
        prompt = await self._parts.prompts.find(PROMPT, language=spoken)
        return prompt.fill({"name": request.agent_name or request.agent_id}).strip()

    async def _remembered(self, ask: CheckedRequest, material: Material) -> tuple[list[str], bool]:
        """Return the blocks of the hooks, in order, and True if one was longer than allowed."""
        if not self._recalls:
            return [], False
        limit = min(RECALL_TOKENS, ask.budget // _SHARE_OF_BLOCKS) // len(self._recalls)
        seen = said_before(material, {m.id: m for m in (*_chosen(material), *material.window)}.values())
        messages = [*sorted(seen, key=lambda message: (message.at, message.arrival)), material.trigger]
        recalled = await asyncio.gather(*(self._ask(hook, ask, messages, limit) for hook in self._recalls))
        return [text for text, _ in recalled if text], any(lost for _, lost in recalled)

    async def _ask(
        self, hook: Recall, ask: CheckedRequest, messages: Sequence[StoredMessage], limit: int
    ) -> tuple[str, bool]:
        try:
            async with asyncio.timeout(recollection.RECALL_SECONDS):
                text = await hook.recall(
                    tenant=self._tenant,
                    room_id=ask.request.message.room_id,
                    agent_id=ask.request.agent_id,
                    messages=messages,
                    max_tokens=limit,
                )
        except Exception as error:  # noqa: BLE001 - a hook is somebody else's code: no reply fails because of it
            result = "timeout" if isinstance(error, TimeoutError) else "failed"
            return self._without(hook, result, describe(error))
        if not isinstance(text, str):
            return self._without(hook, "failed", f"it gave a {type(text).__name__}")
        text = text.strip()
        if text and self._tokens.count([text])[0] > limit:
            return self._without(hook, "too_long", f"more than {limit} tokens")
        self._count(hook, "used" if text else "nothing")
        return text, False

    def _without(self, hook: Recall, result: str, why: str) -> tuple[str, bool]:
        log.warning("a reply goes without what it might recall", extra={"recall": hook.name, "why": why})
        self._count(hook, result)
        return "", result == "too_long"

    def _count(self, hook: Recall, result: str) -> None:
        self._telemetry.count("roomlore_recalls_total", labels={"recall": hook.name, "result": result})


def _tells_of_later(session: Session | None, place: Place) -> bool:
    """Return True if the summary covers messages after the one to answer."""
    return (
        session is not None
        and session.checkpoint is not None
        and session.checkpoint.covers_arrival > place.message.arrival
    )


def _chosen(material: Material) -> list[StoredMessage]:
    return [candidate.message for candidate in material.context]


def _characters(material: Material) -> int:
    trigger = text_or_caption(material.trigger)
    texts = [material.system, material.summary, *material.blocks, trigger, *map(str, material.tools)]
    results = [content for round_ in material.rounds for content in round_.results.values()]
    messages = (text_or_caption(message) for message in (*_chosen(material), *material.window))
    return sum(map(len, (*texts, *results, *messages, *material.people, *material.people.values())))
