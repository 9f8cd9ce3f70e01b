"""Forgetting where it is hard to tell what is a person's: changed and deleted messages, ids that are words, numbers or
in capital letters, and what comes in while a person is being forgotten."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis import Redis

import roomlore
from forget_rig import NOW, replays
from meddling import Meddled
from reply_rig import replying
from roomlore import Lore, MemoryKind, Message, ReplyText, Role, Settings, Source
from roomlore.core.memory.memory import Evolution
from roomlore.services.privacy.forget_messages import MessageEraser
from roomlore_testkit.model_server import Says

WHO = "lena-5c1d"
OLD = {"en": "my first address is Elm Street 5 behind the mill", "zh": "我以前住在梧桐路十四号磨坊的后面"}
NEW = {"en": "my address is known to nobody any more, thank you", "zh": "我现在的地址没有人知道了谢谢大家"}
both = pytest.mark.parametrize("tongue", ["en", "zh"])


@pytest.fixture
async def lore(storage_url) -> AsyncIterator[Lore]:
    settings = Settings(durable_work="process")
    async with roomlore.open(storage_url, settings=settings, background=False) as opened:
        yield opened


def said(message_id: str, sender: str, text: str, **more) -> Message:
    return Message(id=message_id, room_id="r", sender_id=sender, text=text, **more)


async def remember(lore: Lore, statement: str, *message_ids: str, scope: str = "group:r", memory_id: str = "m") -> None:
    sources = [Source("r", one) for one in message_ids]
    kind = MemoryKind.GROUP if scope.startswith("group:") else MemoryKind.FACT
    await lore.memories.add(scope, statement, kind=kind, sources=sources, memory_id=memory_id)


async def statements(lore: Lore) -> list[str]:
    """Of every version and of every entry of the log."""
    async with lore.storage.reading(lore.tenant) as work:
        versions = [memory for _, memory in await work.maintenance.versions(after=0, limit=1_000)]
    log = [one for scope in {memory.scope for memory in versions} for one in await lore.memories.changes(scope)]
    return [*(memory.statement for memory in versions), *(f"{one.memory.statement}{one.old_statement}" for one in log)]


@both
async def test_a_memory_of_words_that_were_changed_since_says_nothing(lore, tongue):
    await lore.messages.add([said("1", WHO, OLD[tongue]), said("2", "ben", "who lives where?")])
    await remember(lore, f"they say: {OLD[tongue]}", "1", "2")
    await lore.messages.edit("r", "1", text=NEW[tongue])
    report = await lore.privacy.forget(WHO)
    assert (report.left, report.retired) == ((), ("m",))
    assert not [one for one in await statements(lore) if OLD[tongue] in one]
    assert await replays(lore)


@both
async def test_a_memory_of_deleted_messages_alone_says_nothing(lore, tongue):
    await lore.messages.add(
        [said("1", WHO, OLD[tongue]), said("2", WHO, "hello"), said("3", "ben", "hi"), said("4", "ben", "ok")]
    )
    await remember(lore, OLD[tongue], "1")
    await remember(lore, "Ben says hi", "3", memory_id="ben")
    await remember(lore, "Ben is a baker", "3", scope="user:ben", memory_id="baker")
    await lore.messages.delete("r", ["1", "3"])
    report = await lore.privacy.forget(WHO)
    assert report.left == ()
    assert not [one for one in await statements(lore) if OLD[tongue] in one]
    assert [memory.memory_id for memory in await lore.memories.page("user:ben")] == ["baker"]
    assert await replays(lore)


async def test_a_deleted_message_loses_an_id_that_names_the_person(lore):
    await lore.messages.add([said(f"{WHO}:1", WHO, "hello there"), said("2", "ben", "hi", reply_to=f"{WHO}:1")])
    await remember(lore, "they say hello", f"{WHO}:1")
    await lore.messages.delete("r", f"{WHO}:1")
    report = await lore.privacy.forget(WHO)
    assert (report.left, report.retired) == ((), ("m",))
    assert (await lore.messages.get("r", "2")).message.reply_to is None


async def test_an_id_in_capital_letters_goes_and_others_of_that_name_stay(lore):
    other = WHO.upper()
    await lore.messages.add([said("1", WHO, "hello"), said("2", "ben", f"thanks {other}!"), said("3", other, "hi")])
    await remember(lore, "likes tea", "3", scope=f"user:{other}")
    await lore.sessions.create_session("r", other)
    report = await lore.privacy.forget(WHO)
    assert report.left == ()
    assert [(one.sender_id, one.text) for one in await lore.messages.page("r")] == [
        ("ben", "thanks [forgotten]!"),
        (other, "hi"),
    ]
    async with lore.storage.reading(lore.tenant) as work:
        assert (await work.sessions.find(conversation_id="r")).user_id == other
    assert [memory.statement for memory in await lore.memories.page(f"user:{other}")] == ["likes tea"]


async def test_somebody_whose_id_is_a_word_of_roomlores(lore):
    await lore.messages.add([said("1", "user", "I rent the flat over the mill at Elm Street"), said("2", "ben", "ok")])
    await remember(lore, "likes tea", "2", scope="user:ben")
    await lore.memories.add("user:user", "rents a flat")
    report = await lore.privacy.forget("user")
    assert report.left == ()
    assert [(one.id, one.text) for one in await lore.messages.page("r")] == [("2", "ok")]
    assert [memory.statement for memory in await lore.memories.page("user:ben")] == ["likes tea"]


@pytest.mark.parametrize(
    ("user_id", "other", "text"),
    [
        ("u1", "U1", "u1 is a room"),
        ("user", "users", "users only"),
        ("小林", "小林子", "大家好"),
        ("ann!", "ann!b", "hi"),
    ],
    ids=["short", "stem", "chinese", "sign"],
)
async def test_ids_that_are_parts_of_others(lore, user_id, other, text):
    await lore.messages.add([said("1", user_id, "hello"), said("2", other, text, mentions=(other,))])
    report = await lore.privacy.forget(user_id)
    assert report.left == ()
    assert [(one.sender_id, one.text, one.mentions) for one in await lore.messages.page("r")] == [
        (other, text, (other,))
    ]


async def test_a_number_in_what_platforms_say_goes_too(lore):
    entity = {"type": "mention", "user": {"id": 123456789}}
    await lore.messages.add(
        [said("1", "123456789", "hello"), said("2", "ben", "hi", metadata={"raw": [entity], "size": 123456})]
    )
    report = await lore.privacy.forget("123456789")
    assert report.left == ()
    left = (await lore.messages.get("r", "2")).message.metadata
    assert left == {"raw": [{"type": "mention", "user": {"id": "[forgotten]"}}], "size": 123456}


async def test_positions_of_other_imports_stay(lore):
    async with lore.storage.writing(lore.tenant) as work:
        for source in ("annual.json", "chats/ann.json"):
            await work.progress.save_import_position(source=source, position="7", now=lore._resources.clock.now())
    await lore.messages.add(said("1", "ann", "hello"))
    await lore.privacy.forget("ann")
    async with lore.storage.reading(lore.tenant) as work:
        assert await work.progress.import_position(source="annual.json") == "7"
        assert await work.progress.import_position(source="chats/ann.json") is None


class Meanwhile:
    """Lets something happen after everything was rewritten, before the messages go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, happens) -> None:
        erase = MessageEraser.erase

        async def first(its, person, tally):
            monkeypatch.setattr(MessageEraser, "erase", erase)
            await happens()
            await erase(its, person, tally)

        monkeypatch.setattr(MessageEraser, "erase", first)


@both
async def test_what_comes_in_meanwhile_goes_too(lore, monkeypatch, tongue):
    await lore.messages.add([said("1", WHO, OLD[tongue], turn_id="t"), said("2", "ben", "hi")])

    async def happens() -> None:
        await remember(lore, "they live behind a mill", "1")
        await lore.messages.add([said("3", WHO, NEW[tongue]), said("4", "ben", f"> {NEW[tongue]}")])
        await lore.messages.add(said("5", "bot", f"noted: {OLD[tongue]}", role=Role.ASSISTANT, turn_id="t"))

    Meanwhile(monkeypatch, happens)
    report = await lore.privacy.forget(WHO)
    assert (report.left, report.retired) == ((), ("m",))
    left = " ".join([*(one.text for one in await lore.messages.page("r")), *await statements(lore)])
    assert not [one for one in (OLD[tongue], NEW[tongue], "mill") if one in left]
    assert await replays(lore)


async def test_caches_of_rooms_where_others_quote_go_too(sqlite_url, redis_url):
    settings = Settings(durable_work="process", redis_url=redis_url)
    async with roomlore.open(sqlite_url, settings=settings, background=False) as lore:
        quoting = Message(id="1", room_id="other", sender_id="ben", text=f"I heard: “{OLD['en']}”")
        await lore.messages.add([said("1", WHO, OLD["en"]), quoting])
        await lore.sessions.query_context("other")
        with Redis.from_url(redis_url) as redis:
            assert OLD["en"].encode() in b"".join(redis.get(key) or b"" for key in list(redis.scan_iter()))
            await lore.privacy.forget(WHO)
            assert OLD["en"].encode() not in b"".join(redis.get(key) or b"" for key in list(redis.scan_iter()))


async def test_two_at_once(lore):
    await lore.messages.add(
        [said("1", WHO, OLD["en"]), said("2", "ben", f"> {OLD['en']}"), said("3", "cleo-88", NEW["en"])]
    )
    await remember(lore, OLD["en"], "1")
    reports = await asyncio.gather(*(lore.privacy.forget(who) for who in (WHO, WHO, "cleo-88")))
    assert [report.left for report in reports] == [(), (), ()]
    assert [one.text for one in await lore.messages.page("r")] == ["> [forgotten]"]
    assert await replays(lore)


BOB = "my hidden salary is ninety thousand euros a year"


@pytest.fixture
async def other(lore, storage_url) -> AsyncIterator[Lore]:
    """The same store, as another process has it."""
    async with roomlore.open(storage_url, settings=Settings(durable_work="process"), background=False) as opened:
        await lore.messages.add([said("1", WHO, OLD["en"]), said("2", "bob-31", BOB), said("3", "cid", "ok then")])
        yield opened


def forgets_bob_first(lore: Lore, other: Lore, write: int = 1) -> Meddled:
    """Let the other process forget Bob right before this write to memories."""

    async def forget() -> None:
        assert (await other.privacy.forget("bob-31")).complete

    lore.privacy._forgetter._memories._storage = meddled = Meddled(lore.storage, "writing", forget, number=write)
    return meddled


async def test_two_processes_at_once_leave_nothing_in_the_log(lore, other):
    """A regression: the one that had read the log wrote back what the other had removed from it."""
    await remember(lore, f"{OLD['en']}; {BOB}", "1", "2", "3")
    await lore.memories.update("m", statement=f"{OLD['en']}; {BOB}!")
    meddled = forgets_bob_first(lore, other)
    report = await lore.privacy.forget(WHO)
    assert (report.complete, meddled.happened) == (True, True)
    left = " ".join(await statements(other))
    assert [one for one in (OLD["en"], BOB) if one in left] == []
    assert await replays(other)


async def scopes(lore: Lore) -> list[str]:
    async with lore.storage.reading(lore.tenant) as work:
        return [one.scope for one in await work.memories.scopes(after=None, limit=10)]


@pytest.mark.parametrize("write", [1, 2], ids=["the log", "the memories"])
async def test_a_scope_that_another_process_renames_meanwhile_is_redacted_and_not_made_anew(lore, other, write):
    """A regression: writing to the old name failed, and brought the id that had been removed back."""
    await remember(lore, OLD["en"], "1", "2", scope="user:bob-31")
    meddled = forgets_bob_first(lore, other, write)
    report = await lore.privacy.forget(WHO)
    assert (report.complete, meddled.happened) == (True, True)
    assert [one for one in await statements(other) if OLD["en"] in one] == []
    (scope,) = await scopes(other)
    assert scope.startswith("user:forgotten-")
    assert await replays(other)


async def test_two_processes_at_once_leave_nothing_in_the_records_of_evolutions(lore, other):
    """A regression: the one that had read the records wrote back what the other had removed from them."""
    record = Evolution(
        evolution_id="e", scope="group:elsewhere", kind="evolution", status="nothing", room_id="elsewhere",
        first_arrival=1, last_arrival=1, messages=1, raw_answer=f"{WHO} met bob-31", started_at=NOW, finished_at=NOW,
    )  # fmt: skip
    async with lore.storage.writing(lore.tenant) as work:
        await work.memories.add_evolution(evolution=record)
    meddled = forgets_bob_first(lore, other)
    report = await lore.privacy.forget(WHO)
    assert (report.complete, meddled.happened) == (True, True)
    assert (await other.memories.evolution("e")).raw_answer == "[forgotten] met [forgotten]"


@both
async def test_a_reply_that_is_written_meanwhile_is_not_stored(tongue):
    async with replying([Says(pieces=["you said: ", OLD[tongue]])]) as (lore, _):
        first = True

        async def listen() -> None:
            nonlocal first
            async for event in lore.replies.stream(said("1", WHO, OLD[tongue])):
                if isinstance(event, ReplyText) and first:
                    first = False
                    assert (await lore.privacy.forget(WHO)).left == ()

        with pytest.raises(roomlore.NotFound, match="deleted meanwhile"):
            await listen()
        assert not first
        assert [one async for one in lore.messages.export()] == []


@both
async def test_a_fact_without_messages_goes_with_the_only_one_who_said_it(lore, tongue):
    fact = {"en": "Ben mends the printer, says Lena", "zh": "莱娜说小本会修打印机"}[tongue]
    for name, said_by in (("alone", (WHO,)), ("both", (WHO, "ann")), ("other", ("ann",)), ("nobody", ())):
        await lore.memories.add("user:ben", f"{name}: {fact}", said_by=said_by, memory_id=name)
    await lore.messages.add([said("1", WHO, "hello there"), said("2", "ben", "hello to you")])
    report = await lore.privacy.forget(WHO)
    assert (report.left, report.retired) == ((), ("alone",))
    kept = {one.memory_id: one.said_by for one in await lore.memories.page("user:ben")}
    assert kept == {"both": ("ann",), "other": ("ann",), "nobody": ()}
    assert not [one for one in await statements(lore) if "alone" in one]
    assert await replays(lore)
    assert (await lore.privacy.verify()).faults == ()
