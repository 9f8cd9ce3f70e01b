"""The attachments of messages in words: noted in the transaction that stores a message, described by durable work.

What is left to do is read from the messages themselves: an attachment whose description was not tried has none, and one
that cannot be described gets an empty one. So work that is repeated asks no model twice, and a message that was edited,
deleted or archived meanwhile is left as it is.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from roomlore.core.analysis import read_anew
from roomlore.core.attachments import (
    LONGEST_DESCRIPTION,
    Attachment,
    caption_of,
    counted_text,
    media_type_of,
    with_descriptions,
)
from roomlore.core.chat import ChatRequest, Recording, about_picture
from roomlore.core.errors import InvalidInput, ModelUnavailable, QuotaExceeded, StorageUnavailable, describe
from roomlore.core.intake import METADATA_CHARS
from roomlore.core.json_values import storable
from roomlore.core.models import Entry, Message
from roomlore.core.text import language
from roomlore.ports.durable import DurableWork, Json, Steps
from roomlore.ports.language import Describer, Language, LanguageModels, Prompts, ReadAttached
from roomlore.ports.noted import NotedRooms
from roomlore.ports.quotas import QuotaChecks
from roomlore.ports.shared import Backends, Service
from roomlore.ports.verbs import DueWork
from roomlore.storage import UnitOfWork
from roomlore.storage.values import ATTACHMENTS

log = logging.getLogger(__name__)

PROMPT = "attachment_caption"
_AT_ONCE = 4
"""Messages of a room whose attachments are described at the same time."""
_HEARD = 8
"""The messages of which the language of a description is that of most words."""
_TRIED = timedelta(days=3)
"""For so long an attachment is tried again that cannot be fetched, or that the model refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescriber:
    """The port `Describer` with two models, '' for none: one says what pictures show, in `language`, and one writes
    down what is said in recordings. `tenant`: whose quota their tokens count for."""

    models: LanguageModels
    prompts: Prompts
    captions: str
    transcripts: str
    tenant: str = ""
    language: Language = "en"

    async def can_ask(self) -> bool:
        """Return True if a provider of one of the models has a key, or needs none."""
        return any([name and await self.models.has_provider(name) for name in (self.captions, self.transcripts)])

    async def describe(self, attachment: Attachment, content: bytes) -> str | None:
        """Return the description, None for what neither model reads. Raise as `LanguageModels.complete` does."""
        media_type, ending = media_type_of(content)
        if media_type.startswith("image/") and self.captions:
            prompt = await self.prompts.find(PROMPT, language=self.language)
            request = about_picture(prompt.text, media_type, content, tenant=self.tenant)
            return (await self.models.complete(self.captions, request)).text
        if media_type.startswith(("audio/", "video/")) and self.transcripts:
            recording = Recording(f"attachment.{ending}", media_type, content)
            request = ChatRequest(recording=recording, tenant=self.tenant)
            return (await self.models.complete(self.transcripts, request)).text
        return None


class Attachments(Service):
    """The attachments of the messages of all tenants. `left`: returns those of a message that are to be described, by
    their places. `vectors`: the work that a changed message makes due."""

    def __init__(
        self,
        backends: Backends,
        *,
        durable: DurableWork,
        left: Callable[[Message], dict[int, Attachment]],
        read: ReadAttached,
        describer: ModelDescriber,
        quotas: QuotaChecks,
        vectors: DueWork,
    ) -> None:
        super().__init__(backends)
        self._rooms = NotedRooms(backends, durable=durable, kinds=(ATTACHMENTS,))
        self._left = left
        self._read = read
        self._describer = describer
        self._quotas = quotas
        self._vectors = vectors

    async def note(self, work: UnitOfWork, room_id: str, entries: Sequence[Entry]) -> bool:
        """Note messages that were added or edited, and their room, in the transaction that writes them."""
        arrivals = [entry.message.arrival for entry in entries if self._left(entry.message)]
        now = self._clock.now()
        for arrival in arrivals:
            move = partial(work.progress.move_mark, room_id=room_id, name=_mark(arrival), arrival=arrival, now=now)
            if not await move(was=0):
                await move(was=arrival)  # edited: its time begins anew
        if arrivals:
            await work.progress.note_room(room_id=room_id, work=ATTACHMENTS, now=now)
        return bool(arrivals)

    def announce(self) -> None:
        """Request the work once the transaction is committed."""
        self._jobs.ask(ATTACHMENTS)

    async def sweep(self) -> list[str]:
        """Enqueue the noted rooms and return the ids of the work. They wait while no model can be asked."""
        return await self._rooms.sweep() if await self._describer.can_ask() else []

    async def work(self, steps: Steps, arguments: Json) -> None:
        """Describe what is due in a room, as durable work. Raise the last error if something is to be tried again; once
        the day's limit is used up, the rest waits for the next day."""
        tenant, room_id = str(arguments["tenant"]), str(arguments["room_id"])
        async with self._storage.reading(tenant) as work:
            rooms = await work.progress.noted(work=ATTACHMENTS, room_id=room_id)
            times = await work.progress.times_of_marks(room_id=room_id, prefix=_mark(""))
        if not rooms:
            return
        arrivals, described, failures = sorted(times), 0, list[Exception]()
        while arrivals and not any(map(_stops, failures)):
            batch, arrivals = arrivals[:_AT_ONCE], arrivals[_AT_ONCE:]
            messages = (self._message(tenant, room_id, arrival, times[arrival]) for arrival in batch)
            results = await asyncio.gather(*messages, return_exceptions=True)
            described += sum(result for result in results if isinstance(result, int))
            failures += [result for result in results if isinstance(result, Exception)]
            await steps.report(f"{described} attachments described")
        until = next((failure.resets_at for failure in failures if isinstance(failure, QuotaExceeded)), None)
        if until is None and failures:
            raise failures[-1]
        async with self._storage.writing(tenant) as work:
            if until is None:
                await work.progress.done(room=rooms[0], work=ATTACHMENTS)
            else:
                await work.progress.put_off(room=rooms[0], work=ATTACHMENTS, until=until)
                await steps.report(f"{described} attachments described; the day's limit is used up until {until}")

    async def _message(self, tenant: str, room_id: str, arrival: int, since: datetime) -> int:
        """Describe what is left of a message, and return how much was described. Raise the last error if something is
        to be tried again. `since`: when the message was noted."""
        async with self._storage.reading(tenant) as work:
            entries = await work.messages.by_arrival(room_id=room_id, arrivals=[arrival])
            heard = await work.messages.tail(room_id=room_id, before=arrival + 1, limit=_HEARD)
        left = self._left(entries[0].message) if entries else {}
        words = "\n".join(f"{entry.message.text} {caption_of(entry.message)}" for entry in heard)
        describer = replace(self._describer, language=language(words), tenant=tenant)
        texts: dict[int, str] = {}
        failure: Exception | None = None
        for place, attachment in left.items():
            try:
                texts[place] = await self._text(tenant, attachment, describer)
            except Exception as error:  # noqa: BLE001 - one that fails must not hold up the others
                if not self._is_given_up(error, since):
                    failure = error
                    if _stops(error):
                        break
                    continue
                why = describe(error)
                log.warning("an attachment is not described: %s", why, extra={"room": room_id, "why": why})
                texts[place] = ""
        described = await self._keep(tenant, room_id, arrival, left, texts)
        if failure is not None:
            raise failure
        return described

    async def _text(self, tenant: str, attachment: Attachment, describer: Describer) -> str:
        """Return the description, '' if there is nothing to say."""
        await self._quotas.check_attachments(tenant)
        await self._quotas.check_tokens(tenant)
        content = await self._read(tenant, attachment)
        if media_type_of(content) == ("", ""):
            raise InvalidInput("attachment_type_unknown")
        await self._quotas.charge_attachment(tenant, len(content))
        try:
            return storable(await describer.describe(attachment, content) or "").strip()
        except ModelUnavailable:
            await self._quotas.refund_attachment(tenant, len(content))
            raise

    def _is_given_up(self, error: Exception, since: datetime) -> bool:
        """Return True if the attachment is not tried again: it cannot be read at all, or it failed for long, and not
        since no model or no database answers."""
        stops = _stops(error) or isinstance(error, StorageUnavailable)
        return isinstance(error, InvalidInput) or (not stops and self._clock.now() - since > _TRIED)

    async def _keep(
        self, tenant: str, room_id: str, arrival: int, left: Mapping[int, Attachment], texts: Mapping[int, str]
    ) -> int:
        """Store the descriptions and return how many are stored. Those of a message that is gone, or of attachments
        that are others by now, are dropped."""
        async with self._storage.writing(tenant) as work:
            is_there = await work.rooms.lock_known(room_id=room_id) is not None
            entries = await work.messages.by_arrival(room_id=room_id, arrivals=[arrival]) if is_there else []
            now = self._left(entries[0].message) if entries else {}
            kept = {place: text for place, text in texts.items() if now.get(place) == left[place]}
            if kept:
                kept = _fitting(entries[0].message, kept)
                await self._rewrite(work, entries[0], kept)
            if not now.keys() - kept.keys():
                await work.progress.drop_mark(room_id=room_id, name=_mark(arrival))
        self._vectors.announce()
        return sum(map(bool, kept.values()))

    async def _rewrite(self, work: UnitOfWork, entry: Entry, texts: Mapping[int, str]) -> None:
        room_id, message = entry.message.room_id, with_descriptions(entry.message, texts)
        people = await work.rooms.participants(room_id=room_id)
        tokens = self._tokens.count([counted_text(message)])[0]
        changed = await asyncio.to_thread(read_anew, entry, message, people, tokens)
        await work.messages.replace(room_id=room_id, entries=[changed])
        await self._vectors.note(work, room_id, [changed])


def _mark(arrival: int | str) -> str:
    """Return the name of the mark of a message that is due."""
    return f"{ATTACHMENTS}:{arrival}"


def _fitting(message: Message, texts: Mapping[int, str]) -> dict[int, str]:
    """Return the descriptions, with '' for each that the metadata has no room for."""
    kept = dict.fromkeys(texts, "")
    left = METADATA_CHARS - _length(with_descriptions(message, kept).metadata)
    for place, text in texts.items():
        length = _length(text[:LONGEST_DESCRIPTION]) - len('""')
        if length <= left:
            kept[place], left = text, left - length
        else:
            log.warning("a description is too long for its message", extra={"room": message.room_id})
    return kept


def _length(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _stops(error: Exception) -> bool:
    """Return True if nothing else can be described now either."""
    is_down = isinstance(error, ModelUnavailable) and error.cause != "refused"
    return is_down or isinstance(error, QuotaExceeded)
