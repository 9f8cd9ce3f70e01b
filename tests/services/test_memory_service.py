"""`lore.memories`: adding, changing and deleting what is remembered."""

import asyncio
from functools import partial

import pytest

import roomlore
from meddling import Meddled
from roomlore import Conflict, InvalidInput, MemoryKind, MemoryStatus, Message, NewMemory, NotFound, Source
from roomlore.core.memory.memory import Action
from roomlore.services.memories import InForceCache
from roomlore_testkit import change

ANNA = "user:anna"


async def said(lore, scope=ANNA, **how):
    return sorted(one.statement for one in await lore.memories.page(scope, **how))


async def spoken(lore, *sources):
    """The messages that these name."""
    await lore.messages.add([Message(id=one.message_id, room_id=one.room_id, sender_id="anna") for one in sources])


async def test_a_fact_comes_back_as_it_went_in(lore):
    sources = (Source("茶", "m1"), Source("tea", "m1"))
    await spoken(lore, *sources)
    made = await lore.memories.add(
        ANNA, "对花生过敏 👋🏽", confidence=0, category="健康", tags=["药", "a,b"], sources=sources
    )
    assert await lore.memories.get(made.memory_id) == made == await lore.memories.head(made.memory_id)
    assert (made.kind, made.version, made.status, made.made_by) == (MemoryKind.FACT, 1, MemoryStatus.ACTIVE, "caller")
    assert (made.confidence, made.category, made.tags, made.sources) == (0.0, "健康", ("药", "a,b"), sources)
    [entry] = await lore.memories.changes(ANNA)
    assert (entry.number, entry.action, entry.memory, entry.actor) == (1, Action.CREATE, made, "caller")


@pytest.mark.parametrize("text", ["a\x00b", "\ud800 lone", "\x1a0", "‮reversed", "e\u0301 👨‍👩‍👧‍👦"])
async def test_odd_characters_survive(lore, text):
    scope = f"user:{text}"
    await spoken(lore, Source(text, text))
    made = await lore.memories.add(scope, text, category=text, tags=[text], sources=[Source(text, text)])
    assert await lore.memories.page(scope) == [made]
    assert (made.statement, made.category, made.tags, made.sources) == (text, text, (text,), (Source(text, text),))
    assert await lore.memories.add(scope, text, sources=[Source(text, text)]) == made
    changed = await lore.memories.update(made.memory_id, statement=f"{text}!", reason=text)
    assert (await lore.memories.head(made.memory_id)).statement == f"{text}!" == changed.statement


async def test_the_same_words_are_not_added_again(lore):
    tea = await lore.memories.add(ANNA, "Likes green tea", confidence=0.9)
    assert await lore.memories.add(ANNA, " likes  GREEN tea", confidence=0.1, category="x") == tea
    assert await lore.memories.add(ANNA, "likes green tea", memory_id="mine") == tea
    leaves = await lore.memories.add(ANNA, "喜欢绿茶")
    assert await lore.memories.add(ANNA, "喜欢绿茶　") == leaves
    assert len(await lore.memories.changes(ANNA)) == 2
    assert (await lore.memories.add("user:bob", "likes green tea")).memory_id != tea.memory_id
    assert (await lore.memories.add(ANNA, "likes green tea", kind=MemoryKind.GROUP)).memory_id != tea.memory_id
    await lore.memories.delete(tea.memory_id)
    assert (await lore.memories.add(ANNA, "likes green tea")).memory_id not in (tea.memory_id, "mine")


async def test_what_is_added_while_another_process_forgets_the_scope_is_kept(sqlite_url):
    """A regression: it was taken for what had just been forgotten, so nothing was stored."""
    async with (
        roomlore.open(sqlite_url, settings=roomlore.Settings(), background=False) as lore,
        roomlore.open(sqlite_url, settings=roomlore.Settings(), background=False) as other,
    ):
        old = await lore.memories.add(ANNA, "Likes green tea")
        forget = partial(other.privacy.forget, "anna", is_id=True)
        lore.memories._writer._storage = meddled = Meddled(lore.storage, "writing", forget)
        made = await lore.memories.add(ANNA, "Likes green tea")
        assert meddled.happened
        assert made.memory_id != old.memory_id
        assert await other.memories.page(ANNA) == [made]


async def test_an_id_of_the_callers_own(lore):
    async def again(statement="tea", scope=ANNA, **fields):
        return await lore.memories.add(scope, statement, **({"memory_id": "f1", "confidence": 0} | fields))

    made = await again()
    assert (made.memory_id, await again()) == ("f1", made)
    for other in ({"confidence": None}, {"statement": "Tea"}, {"scope": "user:bob"}, {"tags": ["x"]}):
        with pytest.raises(Conflict, match="'f1'"):
            await again(**other)
    changed = await lore.memories.update("f1", statement="oolong")
    assert await again() == changed, "what it has become"
    gone = await lore.memories.delete("f1")
    assert await again() == gone == await again("oolong")
    with pytest.raises(Conflict):
        await again("water")
    assert await said(lore) == []
    assert len(await lore.memories.changes(ANNA)) == 3


async def test_a_batch_is_all_or_nothing(lore):
    await lore.memories.add(ANNA, "tea", memory_id="t")
    batch = [
        NewMemory(scope=ANNA, statement="coffee"),
        NewMemory(scope="agent:bot", statement="is polite", kind=MemoryKind.FACT),
        NewMemory(scope=ANNA, statement="water", memory_id="t"),
        NewMemory(scope=ANNA, statement="Coffee"),
        NewMemory(scope=ANNA, statement="tea"),
    ]
    with pytest.raises(Conflict, match="nothing was added"):
        await lore.memories.add_all(batch)
    assert await said(lore) == ["tea"]
    assert await lore.memories.page("agent:bot") == []
    done = await lore.memories.add_all(batch, on_conflict="report")
    assert [one.outcome for one in done] == ["added", "added", "conflict", "unchanged", "unchanged"]
    assert done[2].memory.statement == "tea"
    assert done[3].memory == done[0].memory
    assert await said(lore) == ["coffee", "tea"]
    assert await lore.memories.add_all([]) == []


@pytest.mark.parametrize(
    ("batch", "how"),
    [
        ("tea", {}),
        (NewMemory(scope=ANNA, statement="x"), {}),
        (["tea"], {}),
        ([NewMemory(scope=ANNA, statement="x")], {"on_conflict": "ignore"}),
        ([NewMemory(scope=ANNA, statement="x")] * 10_001, {}),
        ([NewMemory(scope=ANNA, statement="good"), NewMemory(scope="anna", statement="bad")], {}),
    ],
    ids=str,
)
async def test_what_is_no_batch_is_refused(lore, batch, how):
    with pytest.raises(InvalidInput):
        await lore.memories.add_all(batch, **how)
    assert await said(lore) == []


async def test_an_update_is_a_version(lore):
    first = await lore.memories.add(ANNA, "tea", confidence=0.5, category="drink", tags=["a"])
    second = await lore.memories.update(first.memory_id, statement="oolong", reason="said so")
    third = await lore.memories.update(first.memory_id, confidence=0.7)
    assert [one.memory_id for one in await lore.memories.history(first.memory_id)] == [
        one.memory_id for one in (first, second, third)
    ]
    assert (second.version, second.parents, second.change_summary) == (2, (first.memory_id,), "said so")
    assert (third.statement, third.confidence, third.category, third.tags) == ("oolong", 0.7, "drink", ("a",))
    assert third.created_at == first.created_at <= second.updated_at <= third.updated_at
    assert await lore.memories.page(ANNA) == [third]
    heads = [await lore.memories.head(one.memory_id) for one in (first, second, third)]
    assert heads == [third] * 3
    log = await lore.memories.changes(ANNA)
    assert [(one.action, one.old_statement, one.closes, one.reason) for one in log[1:]] == [
        (Action.UPDATE, "tea", (first.memory_id,), "said so"),
        (Action.UPDATE, "oolong", (second.memory_id,), ""),
    ]


async def test_nothing_is_not_none_is_not_zero(lore):
    fact = await lore.memories.add(ANNA, "tea", confidence=0.5)
    assert (await lore.memories.update(fact.memory_id, confidence=0)).confidence == 0.0
    assert (await lore.memories.update(fact.memory_id, category="drink")).confidence == 0.0
    assert (await lore.memories.update(fact.memory_id, confidence=None)).confidence is None
    assert (await lore.memories.update(fact.memory_id, statement="oolong")).confidence is None
    assert (await lore.memories.update(fact.memory_id, category="")).category == ""
    zero = await lore.memories.add(ANNA, "zero", confidence=0)
    assert (await lore.memories.head(zero.memory_id)).confidence == 0.0
    assert len(await lore.memories.changes(ANNA)) == 7


async def test_an_update_that_changes_nothing_makes_no_version(lore):
    await spoken(lore, Source("r", "1"))
    fact = await lore.memories.add(ANNA, "tea", confidence=0.5, tags=["a"], sources=[Source("r", "1")])
    same = {"statement": "tea ", "confidence": 0.5, "category": "", "tags": ["a"], "sources": [Source("r", "1")]}
    assert await lore.memories.update(fact.memory_id, **same) == fact
    assert await lore.memories.update(fact.memory_id, reason="no reason") == fact
    assert (await lore.memories.update(fact.memory_id, statement="Tea")).version == 2, "its own words in other letters"


async def test_a_message_that_is_not_there_is_no_source(lore):
    await spoken(lore, Source("r", "1"), Source("r", "2"), Source("s", "3"))
    unknown = [Source("r", "1"), Source("r", "3"), Source("s", "1"), *(Source("t", f"{n}") for n in range(5))]
    named = "no message '3' of room 'r', '1' of room 's', '0' of room 't' and 4 more.*add the messages first"
    with pytest.raises(InvalidInput, match=named):
        await lore.memories.add(ANNA, "tea", sources=unknown)
    good = NewMemory(scope=ANNA, statement="coffee", sources=[Source("r", "2")])
    with pytest.raises(InvalidInput, match="'3' of room 'r'"):
        await lore.memories.add_all([good, NewMemory(scope="user:bob", statement="tea", sources=[Source("r", "3")])])
    assert await said(lore) == await said(lore, "user:bob") == []
    made = await lore.memories.add(ANNA, "tea", sources=[Source("r", "1")], memory_id="mine")
    with pytest.raises(InvalidInput, match="'2' of room 's'"):
        await lore.memories.update("mine", sources=[Source("r", "1"), Source("s", "2")])
    assert await lore.memories.head("mine") == made
    await lore.messages.delete("r", "1")
    assert await lore.memories.add(ANNA, "tea", sources=[Source("r", "1")], memory_id="mine") == made
    await lore.memories.update("mine", sources=[Source("r", "1"), Source("r", "2")])


async def test_a_message_of_another_tenant_is_no_source(lore):
    await spoken(lore.for_tenant("other"), Source("r", "1"))
    with pytest.raises(InvalidInput, match="'1' of room 'r'"):
        await lore.memories.add(ANNA, "tea", sources=[Source("r", "1")])


async def test_what_is_expected_must_be_in_force(lore):
    first = await lore.memories.add(ANNA, "tea")
    second = await lore.memories.update(first.memory_id, confidence=1, expected=first.memory_id)
    for stale in (
        lore.memories.update(first.memory_id, confidence=0, expected=first.memory_id),
        lore.memories.update(second.memory_id, statement="tea", expected=""),
        lore.memories.delete(first.memory_id, expected=first.memory_id),
    ):
        with pytest.raises(Conflict, match="Read it again"):
            await stale
    assert await lore.memories.page(ANNA) == [second]
    await lore.memories.delete(first.memory_id, expected=second.memory_id)


async def test_an_update_must_not_say_what_another_one_says(lore):
    tea, coffee = [await lore.memories.add(ANNA, text) for text in ("tea", "coffee")]
    with pytest.raises(Conflict, match=tea.memory_id):
        await lore.memories.update(coffee.memory_id, statement="TEA")
    await lore.memories.delete(tea.memory_id)
    assert (await lore.memories.update(coffee.memory_id, statement="TEA")).statement == "TEA"


async def test_deleting_keeps_the_history(lore):
    first = await lore.memories.add(ANNA, "tea")
    second = await lore.memories.update(first.memory_id, confidence=0.1)
    gone = await lore.memories.delete(first.memory_id, "stale")
    assert (gone.memory_id, gone.status, gone.change_summary) == (second.memory_id, MemoryStatus.DEPRECATED, "stale")
    assert await lore.memories.delete(second.memory_id) == gone
    assert await lore.memories.page(ANNA) == []
    assert await lore.memories.page(ANNA, status="deprecated") == [gone]
    assert (await lore.memories.count(ANNA), await lore.memories.count(ANNA, status="all")) == (0, 1)
    assert [one.status.value for one in await lore.memories.history(first.memory_id)] == ["deprecated"] * 2
    assert [one.action.value for one in await lore.memories.changes(ANNA)] == ["create", "update", "delete"]
    with pytest.raises(Conflict, match="was deleted"):
        await lore.memories.update(first.memory_id, confidence=1)


async def test_tenants_are_strangers(lore):
    ours = await lore.memories.add(ANNA, "tea", memory_id="f1")
    theirs = lore.for_tenant("theirs")
    for asked in (
        theirs.memories.head("f1"),
        theirs.memories.get("f1"),
        theirs.memories.history("f1"),
        theirs.memories.update("f1", confidence=0),
        theirs.memories.delete("f1"),
    ):
        with pytest.raises(NotFound, match="no memory 'f1'"):
            await asked
    made = await theirs.memories.add(ANNA, "TEA")
    assert made.statement == "TEA", "not the one that says so elsewhere"
    assert (await theirs.memories.add("user:x", "coffee", memory_id="f1")).statement == "coffee"
    assert (await lore.memories.page(ANNA), await lore.memories.count(ANNA)) == ([ours], 1)
    assert [one.number for one in await lore.memories.changes(ANNA)] == [1]


async def test_what_tenants_remember_in_one_scope_stays_apart(lore):
    tenants = [lore.for_tenant(name) for name in ("a", "b")]
    for text in ("one", "two", "三"):
        for tenant in tenants:
            made = await tenant.memories.add(ANNA, text)
            assert await tenant.memories.add(ANNA, f" {text}") == made == await tenant.memories.head(made.memory_id)
    assert [await said(tenant) for tenant in tenants] == [["one", "two", "三"]] * 2


async def test_after_an_earlier_version_was_restored_versions_go_on(lore):
    first = await lore.memories.add(ANNA, "tea")
    second = await lore.memories.update(first.memory_id, statement="oolong")
    async with lore.storage.writing(lore.tenant) as work:
        now = second.updated_at
        await work.memories.lock(scope=ANNA, now=now)
        restored = change(3, first, action=Action.RESTORE, closes=(second.memory_id,), at=now)
        await work.memories.apply(scope=ANNA, changes=[restored])
    third = await lore.memories.update(second.memory_id, confidence=0)
    assert (third.version, third.statement, third.parents) == (3, "tea", (first.memory_id,))


@pytest.mark.parametrize("memory_id", ["nowhere", "", "x" * 9_999, "\ud800"])
async def test_there_is_no_such_memory(lore, memory_id):
    for asked in (
        lore.memories.update(memory_id, confidence=0),
        lore.memories.delete(memory_id),
        lore.memories.head(memory_id),
    ):
        with pytest.raises(NotFound):
            await asked


async def test_many_adders_of_one_fact_make_one(lore):
    made = await asyncio.gather(*(lore.memories.add(ANNA, text) for text in ["喜欢喝茶", "喜欢喝茶 "] * 5))
    assert len({one.memory_id for one in made}) == 1
    assert len(await lore.memories.changes(ANNA)) == 1


async def test_the_cache_follows_what_others_write(tmp_path, monkeypatch):
    """Two writers who do not share a cache, and a cache that holds next to nothing."""
    monkeypatch.setattr(InForceCache.__init__, "__kwdefaults__", {"size": 1})
    shared = f"sqlite:///{tmp_path}/shared.db"
    async with roomlore.open(shared, background=False) as one, roomlore.open(shared, background=False) as two:
        for number in range(12):
            scope = f"user:{number % 3}"
            first, second = (one, two) if number % 2 else (two, one)
            made = await first.memories.add(scope, f"fact {number}")
            assert await second.memories.add(scope, f"FACT {number}") == made
            changed = await second.memories.update(made.memory_id, statement=f"事实 {number}")
            assert await first.memories.add(scope, f"事实 {number}") == changed
            await first.memories.delete(changed.memory_id)
            assert (await second.memories.add(scope, f"事实 {number}")).version == 1


async def test_a_long_absence_is_read_anew(lore, monkeypatch):
    monkeypatch.setattr("roomlore.services.memories.writer._FOLLOWED", 3)
    await lore.memories.add(ANNA, "tea")
    await lore.memories.add_all([NewMemory(scope=ANNA, statement=str(n)) for n in range(9)])
    assert (await lore.memories.add(ANNA, "8")).statement == "8"
    assert await lore.memories.count(ANNA) == 10


@pytest.mark.parametrize("given", [{"kinds": 5}, {"kinds": None}, {"kinds": ["magic"]}, {"status": ["active"]}])
async def test_what_is_no_kind_and_no_status_is_told(lore, given):
    with pytest.raises(roomlore.InvalidInput, match=r"kinds|Kinds|status"):
        await lore.memories.page(ANNA, **given)
