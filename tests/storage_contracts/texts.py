"""Helpers that fill rooms, and the contract of unusual texts."""

from collections.abc import Mapping, Sequence

from roomlore.core.experiments import UsageSelection
from roomlore.core.models import ApiKey, Entry, Link, Room
from roomlore.storage import Storage
from roomlore_testkit.builders import START, entry, features, link, usage_record
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.contracts.hard_texts import HARD_TEXTS

TENANT = "acme"
ROOM = "room"


async def fill(storage: Storage, entries: Sequence[Entry], *, tenant: str = TENANT, room_id: str = ROOM) -> Room:
    """Append the entries in one unit of work."""
    async with storage.writing(tenant) as work:
        await work.rooms.lock(room_id=room_id, now=START)
        return await work.messages.append(room_id=room_id, entries=entries)


def digest(name: str) -> str:
    """Return a stand-in for the hash of a key's secret."""
    return f"hash of {name}"


async def erase(storage: Storage, *arrivals: int) -> Room:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        return await work.messages.erase(room_id=ROOM, arrivals=arrivals, now=START)


async def replace(storage: Storage, *new: Entry, room_id: str = ROOM) -> Room:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=room_id, now=START)
        return await work.messages.replace(room_id=room_id, entries=new)


async def relink(storage: Storage, links: Mapping[int, Link]) -> Room:
    async with storage.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        return (await work.messages.relink(room_id=ROOM, links=links)).room


async def everything(storage: Storage, *, tenant: str = TENANT, room_id: str = ROOM) -> list[Entry]:
    async with storage.reading(tenant) as work:
        return await work.messages.tail(room_id=room_id, limit=1000)


async def threads_of(storage: Storage) -> dict[int, int]:
    """Return arrivals and their threads."""
    return {found.message.arrival: found.link.thread for found in await everything(storage)}


def conversation() -> list[Entry]:
    """Return four messages of two people in one thread, with keywords, a reply and a root."""
    return [
        entry(1, features=features(keywords=("deploy", "部署"))),
        entry(2, sender_id="bo", sender_name="Bo", reply_to="m1", root_id="m1", link=link(1, 1)),
        entry(3, features=features(keywords=("deploy",)), link=link(1, 2)),
        entry(4, sender_id="bo", reply_to="m3", root_id="m1", link=link(1, 3)),
    ]


def _filled_with(text: str) -> Entry:
    return entry(
        1,
        id=text,
        room_id=text,
        sender_id=text,
        sender_name=text,
        text=text,
        reply_to=text,
        root_id=text,
        topic_id=text,
        turn_id=text,
        mentions=(text,),
        metadata={text: [text]},
        features=features(mentions=(text,), addressed=(text,), keywords=(text,), partners=(text,)),
        link=link(1),
    )


class TextsContract:
    async def test_in_rooms_and_messages(self, storage: Storage) -> None:
        with all_cases() as case:
            for text in HARD_TEXTS:
                with case(text):
                    stored = _filled_with(text)
                    await fill(storage, [stored], tenant=text, room_id=text)
                    assert await everything(storage, tenant=text, room_id=text) == [stored]
                    async with storage.reading(text) as work:
                        assert await work.messages.by_id(room_id=text, message_ids=[text]) == [stored]
                        assert list(await work.messages.fingerprints(room_id=text, message_ids=[text])) == [text]
                        met = await work.messages.met(room_id=text, message_ids=[text])
                        assert met is not None
                        assert list(met.fingerprints) == [text]
                        assert await work.rooms.participants(room_id=text) == {text: text}
                        assert await work.rooms.of_sender(sender_id=text) == [text]
                        assert await work.messages.page(room_id=text, after=0, limit=9, sender_id=text) == [
                            stored.message
                        ]
                        assert await work.messages.count(room_id=text, after=0, sender_id=text) == 1
                        assert await work.messages.keyword_counts(room_id=text, keywords=[text]) == {text: 1}
                        assert await work.messages.waiting(room_id=text, message_ids=[text]) == [stored]
                        (room,) = await work.rooms.page(after=None, limit=9)
                        assert room.room_id == text
                        ((_, thread),) = await work.messages.threads(room_id=text, after=0, limit=9)
                    assert (thread.thread_id, thread.senders, thread.first_text) == (text, (text,), text)

    async def test_in_records_keys_and_settings(self, storage: Storage) -> None:
        with all_cases() as case:
            for text in HARD_TEXTS:
                with case(text):
                    record = usage_record(
                        text,
                        room_id=text,
                        user_id=text,
                        trigger_message_id=text,
                        context_message_ids=(text,),
                        relevance_scores={text: 0.5},
                        degraded=text,
                        arm=text,
                        llm_response=text,
                        user_feedback=text,
                    )
                    key = ApiKey(key_id=text, tenant=text, name=text, scopes=(text,), created_at=START)
                    await fill(storage, [], tenant=text, room_id=text)
                    async with storage.writing(text) as work:
                        await work.usage.record(records=[record])
                        await work.keys.add(key=key, secret_hash=digest(ascii(text)))
                        room = await work.rooms.configure(room_id=text, settings={text: text})
                        await work.progress.save_import_position(source=text, position=text, now=START)
                    async with storage.reading(text) as work:
                        assert await work.usage.find(context_id=text) == record
                        assert await work.usage.page(selection=UsageSelection(room_id=text), after=None, limit=9) == [
                            record
                        ]
                        assert await work.keys.page() == [key]
                        assert await work.progress.import_position(source=text) == text
                    assert room.settings == {text: text}
