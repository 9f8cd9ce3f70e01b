"""Memories from a small room stay there: recall, search and replies for a viewer."""

from datetime import timedelta

import pytest

import audience_rig
import roomlore
from roomlore import EvidenceRoom, Member, Message, Role, RoomKind, Source
from roomlore.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from roomlore_testkit import START
from roomlore_testkit.embedding import HashEmbedder

DAY = timedelta(days=1)
ASKED = [{"role": "user", "content": "What about the job, the allergy and the city? 工作、过敏和城市怎么样？"}]
FACTS = {
    "dm": "Ann is looking for another job 安想换工作",
    "team": "Ann is allergic to nuts 安对坚果过敏",
    "square": "Ann lives in the city of Kyiv 安住在基辅",
}


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def lore(request):
    async with roomlore.open(
        request.getfixturevalue(request.param), settings=roomlore.Settings(), background=False
    ) as opened:
        await rooms(opened)
        yield opened


async def rooms(lore) -> None:
    """Ann alone with an agent, a team of two, a public square, and a room of which nothing is told."""
    said = [
        Message(id=f"{room}-{who}", room_id=room, sender_id=who, text=f"{who} says something", sent_at=START)
        for room, people in {"dm": "a", "team": "ab", "square": "abe", "old": "ab"}.items()
        for who in ({"a": "ann", "b": "bo", "e": "eve"}[letter] for letter in people)
    ]
    agent = Message(id="hello", room_id="dm", sender_id="bot", role=Role.ASSISTANT, text="Hello", sent_at=START)
    await lore.messages.add([*said, agent])
    await lore.rooms.set_kind("dm", "direct")
    await lore.rooms.set_kind("team", "private")
    await lore.rooms.set_members("team", [Member("ann", START - DAY), Member("bo", START - DAY)])
    await lore.rooms.set_kind("square", RoomKind.PUBLIC)


async def remember(lore, *where: str) -> None:
    for room in where:
        await lore.memories.add("user:ann", FACTS[room], sources=[Source(room, f"{room}-ann")])


async def known(lore, viewer: str | None) -> set[str]:
    """The rooms whose fact is recalled, and found."""
    rooms = {text: room for room, text in FACTS.items()}
    recalled = await lore.recall.build(["user:ann"], ASKED, viewer=viewer)
    found = await lore.memories.search("user:ann", "job allergy city", threshold=0, viewer=viewer)
    here = {rooms[one.memory.statement] for one in recalled.facts}
    assert here == {rooms[hit.memory.statement] for hit in found.hits}
    assert here == {rooms[one.statement] for one in await lore.memories.page("user:ann", viewer=viewer)}
    assert recalled.considered == len(here) == await lore.memories.count("user:ann", viewer=viewer)
    return here


async def test_each_viewer_knows_what_they_heard(lore):
    await remember(lore, *FACTS)
    assert await known(lore, "room:dm") == {"dm", "team", "square"}
    assert await known(lore, "room:team") == {"team", "square"}
    assert await known(lore, "room:square") == {"square"}
    assert await known(lore, "room:old") == {"square"}
    assert await known(lore, "room:nowhere") == {"square"}
    assert await known(lore, "user:ann") == {"dm", "team", "square"}
    assert await known(lore, "user:bo") == {"team", "square"}
    assert await known(lore, "user:eve") == {"square"}
    assert await known(lore, None) == {"dm", "team", "square"}


async def test_a_room_that_changes_changes_what_is_known_at_once(lore):
    await remember(lore, *FACTS)
    await lore.rooms.add_members("team", ["eve"])
    assert await known(lore, "room:team") == {"team", "square"}
    assert await known(lore, "user:eve") == {"square"}, "she joined after it was said"
    await lore.rooms.set_kind("team", "public")
    assert await known(lore, "user:eve") == {"square"}, "it was private when it was said"
    await lore.rooms.set_kind("team", "public", since=START)
    assert await known(lore, "user:eve") == {"team", "square"}
    await lore.rooms.set_kind("old", "direct")
    await lore.rooms.set_members("old", ["ann"])
    assert await known(lore, "room:old") == {"dm", "team", "square"}


async def test_a_fact_of_a_caller_is_for_all_unless_told(lore):
    await lore.memories.add("user:ann", FACTS["square"])
    await lore.memories.add("user:ann", FACTS["dm"], evidence=[EvidenceRoom("dm", START, START)])
    assert await known(lore, "room:old") == {"square"}
    assert await known(lore, "room:dm") == {"dm", "square"}


async def test_what_ended_in_a_talk_is_listed_as_ended_for_those_who_heard_it(lore):
    """Others are shown it as before: they are not told that it ended."""
    known = await lore.memories.add("user:ann", "在读研究生", sources=[Source("square", "square-ann")])
    said = [Source("square", "square-ann"), Source("dm", "dm-ann")]
    await lore.memories.update(known.memory_id, valid_until=START, sources=said)
    for viewer, active, ended in (("room:dm", 0, 1), ("user:ann", 0, 1), ("room:square", 1, 0), ("user:bo", 1, 0)):
        for status, total in (("active", active), ("ended", ended), ("all", 1)):
            listed = await lore.memories.page("user:ann", viewer=viewer, status=status)
            assert [one.statement for one in listed].count("在读研究生") == total, (viewer, status)
        shown = [
            one for one in await lore.memories.visible(viewer) if one.shown and one.memory.statement == "在读研究生"
        ]
        assert len(shown) == (active if viewer != "user:bo" else 0), viewer


async def test_an_edit_keeps_the_evidence(lore):
    await remember(lore, "dm")
    memory = (await lore.memories.page("user:ann"))[0]
    edited = await lore.memories.update(memory.memory_id, statement=FACTS["square"], sources=[])
    assert edited.evidence == (EvidenceRoom("dm", START, START),)
    assert await known(lore, "room:team") == set()
    both = await lore.memories.update(memory.memory_id, sources=[Source("team", "team-ann")])
    assert [one.room_id for one in both.evidence] == ["dm", "team"]


@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["words", "meaning"])
@pytest.mark.parametrize("viewer", ["room:team", "user:bo"])
async def test_answers_are_the_same_byte_for_byte(embedder, viewer):
    """Two stores that differ in what Ann said alone."""
    answers = []
    for secrets in (0, 40):
        async with roomlore.open(
            "sqlite://", settings=roomlore.Settings(), embedder=embedder, background=False
        ) as lore:
            await rooms(lore)
            for number in range(secrets):
                text = f"Ann told her secret {number} of the job, the city and the allergy"
                await lore.memories.add(
                    "user:ann", text, sources=[Source("dm", "dm-ann")], memory_id=f"secret-{number}"
                )
            for room in ("team", "square"):
                source = [Source(room, f"{room}-ann")]
                await lore.memories.add("user:ann", FACTS[room], sources=source, memory_id=room)
            _ = [one async for one in lore.index.drain()]
            recalled = await lore.recall.build(["user:ann", "group:team"], ASKED, viewer=viewer, conversation_id="c")
            found = await lore.memories.search("user:ann", "the city", threshold=0, viewer=viewer, limit=50)
            shown = [(one.memory.memory_id, one.score, one.similarity) for one in recalled.facts]
            hits = [(hit.memory.memory_id, hit.score, dict(hit.signals)) for hit in found.hits]
            answers.append(
                (recalled.text, recalled.tokens, recalled.considered, shown, hits, found.mode, found.degraded)
            )
    assert answers[0] == answers[1]
    assert len(answers[0][4]) == 2


@pytest.mark.parametrize("viewer", ["", "team", "agent:bot", "room:"])
async def test_a_viewer_that_is_none_is_refused(lore, viewer):
    with pytest.raises(InvalidInput, match="viewer"):
        await lore.recall.build(["user:ann"], ASKED, viewer=viewer)
    with pytest.raises(InvalidInput, match="viewer"):
        await lore.memories.search("user:ann", "job", viewer=viewer)


async def test_forgetting_leaves_the_evidence(lore):
    """A memory that lost its messages must not become one for all."""
    both = [Source("team", "team-ann"), Source("team", "team-bo")]
    await lore.memories.add("user:ann", FACTS["team"], sources=both)
    await lore.privacy.forget("bo")
    left = (await lore.memories.page("user:ann"))[0]
    assert [one.room_id for one in left.evidence] == ["team"]
    assert await known(lore, "user:eve") == set()


async def test_a_share_is_logged_reaches_its_room_and_ends(lore):
    await remember(lore, "dm")
    fact = (await lore.memories.page("user:ann"))[0]
    shared = await lore.memories.share(fact.memory_id, "room:team", by="ann", reason="she said so")
    assert shared.shared_with == ("room:team",)
    assert [await known(lore, viewer) for viewer in ("room:team", "user:bo", "room:square")] == [{"dm"}, {"dm"}, set()]
    assert await lore.memories.share(fact.memory_id, "room:team") == shared
    await lore.memories.share(fact.memory_id, "everyone")
    assert await known(lore, "room:old") == {"dm"}
    for target in ("everyone", "room:team"):
        await lore.memories.unshare(fact.memory_id, target)
    assert await known(lore, "room:team") == set()
    log = await lore.memories.changes("user:ann")
    assert [change.action.value for change in log] == ["create", "share", "share", "share", "share"]
    assert log[1].reason == "she said so"
    report = await lore.privacy.verify()
    assert report.faults == ()


async def test_only_the_person_or_an_administrator_shares(lore):
    await remember(lore, "dm")
    fact = (await lore.memories.page("user:ann"))[0]
    with pytest.raises(Forbidden):
        await lore.memories.share(fact.memory_id, "everyone", by="bo")
    with pytest.raises(InvalidInput):
        await lore.memories.share(fact.memory_id, "user:bo")
    await lore.memories.delete(fact.memory_id)
    with pytest.raises(Conflict):
        await lore.memories.share(fact.memory_id, "everyone")


async def test_a_share_ends_with_what_was_shared(lore):
    await remember(lore, "dm")
    fact = (await lore.memories.page("user:ann"))[0]
    await lore.memories.share(fact.memory_id, "everyone")
    kept = await lore.memories.update(fact.memory_id, tags=["work"])
    assert kept.shared_with == ("everyone",)
    said_anew = await lore.memories.update(fact.memory_id, statement="Ann was dismissed")
    assert said_anew.shared_with == ()


async def test_what_a_viewer_may_not_see_is_not_there(lore):
    await remember(lore, "dm", "square")
    public, alone = sorted(await lore.memories.page("user:ann"), key=lambda one: one.evidence, reverse=True)
    for read in (lore.memories.get, lore.memories.head, lore.memories.history):
        with pytest.raises(NotFound) as hidden:
            await read(alone.memory_id, viewer="room:team")
        with pytest.raises(NotFound) as unknown:
            await read("nothing", viewer="room:team")
        assert str(hidden.value).replace(alone.memory_id, "nothing") == str(unknown.value)
        assert await read(alone.memory_id, viewer="room:dm")
        assert await read(public.memory_id, viewer="room:team")
    page = await lore.memories.page("user:ann", viewer="room:team", limit=1, offset=0)
    assert page == [public]
    assert await lore.memories.page("user:ann", viewer="room:team", limit=1, offset=1) == []


async def test_the_same_words_said_elsewhere_do_not_keep_a_memory_away(lore):
    """The team would otherwise learn from what it is not shown that Ann said the same alone."""
    alone = await lore.memories.add("user:ann", FACTS["dm"], sources=[Source("dm", "dm-ann")])
    again = await lore.memories.add("user:ann", FACTS["dm"], sources=[Source("dm", "dm-ann")])
    open_ = await lore.memories.add("user:ann", FACTS["dm"], sources=[Source("team", "team-ann")])
    assert again == alone
    assert open_.memory_id != alone.memory_id
    assert [one.memory_id for one in await lore.memories.page("user:ann", viewer="room:team")] == [open_.memory_id]
    other = await lore.memories.add("user:ann", "Ann is well 安很好", sources=[Source("team", "team-ann")])
    said = await lore.memories.update(other.memory_id, statement="Ann slept badly 安没睡好")
    await lore.memories.add("user:ann", "Ann rests 安在休息", sources=[Source("dm", "dm-ann")])
    assert (await lore.memories.update(said.memory_id, statement="Ann rests 安在休息")).version == 3


async def test_what_is_said_for_all_takes_the_place_of_what_fewer_were_told_and_tells_nothing_of_it(lore):
    told = {"confidence": 0.9, "category": "health", "tags": ["nuts"]}
    alone = await lore.memories.add("user:ann", FACTS["dm"], sources=[Source("dm", "dm-ann")], **told)
    open_ = await lore.memories.add("user:ann", f"  {FACTS['dm'].upper()}")
    for viewer in (None, "room:team", "room:dm", "user:ann"):
        assert await lore.memories.page("user:ann", viewer=viewer) == [open_], viewer
    assert (open_.version, open_.parents, open_.sources, open_.confidence, open_.tags) == (1, (), (), None, ())
    assert await lore.memories.head(alone.memory_id) == open_
    changed = await lore.memories.update(alone.memory_id, statement="Ann is fine 安没事")
    assert (changed.lineage_id, changed.version) == (open_.lineage_id, 2)
    await lore.memories.delete(alone.memory_id)
    assert await lore.memories.page("user:ann") == []
    assert (await lore.privacy.verify()).faults == ()


async def test_a_change_that_rests_on_what_others_did_not_hear_leaves_them_what_they_know(lore):
    await remember(lore, "team")
    (before,) = await lore.memories.page("user:ann")
    private = [*before.sources, Source("dm", "dm-ann")]
    after = await lore.memories.update(
        before.memory_id, statement="Ann nearly died of nuts 安差点死于坚果", sources=private
    )
    assert (after.version, after.parents) == (1, (before.memory_id,))
    for viewer, known in (("room:team", before), ("user:bo", before), ("user:ann", after), ("room:dm", after)):
        assert await lore.memories.page("user:ann", viewer=viewer) == [known], viewer
    heard = [*before.sources, Source("team", "team-bo")]
    assert (await lore.memories.update(before.memory_id, statement="Ann eats no nuts", sources=heard)).version == 2


async def test_a_viewer_is_not_told_with_which_other_rooms_a_memory_was_shared():
    async with audience_rig.heard_in({"dm": "ann", "team": "ann bo", "secret-board": "eve"}, direct="dm") as lore:
        known = await audience_rig.remember(lore, "is allergic to nuts 坚果过敏", "team")
        for room in ("room:secret-board", "room:team"):
            await lore.memories.share(known, room)
        for viewer in ("room:team", "user:ann", "user:bo"):
            asked = {"viewer": viewer}
            shown = [
                await lore.memories.get(known, **asked),
                await lore.memories.head(known, **asked),
                *await lore.memories.page("user:ann", **asked),
                *await lore.memories.history(known, **asked),
                *(hit.memory for hit in (await lore.memories.search("user:ann", "nuts", threshold=0, **asked)).hits),
                *(one.memory for one in (await lore.recall.build(["user:ann"], ASKED, **asked)).facts),
            ]
            assert len(shown) == 6
            assert "secret-board" not in str(shown)
            assert {one.shared_with for one in shown} == {("room:team",)}
        everything = await lore.memories.head(known)
        assert everything.shared_with == ("room:secret-board", "room:team")


async def test_a_shared_memory_tells_what_it_says_and_not_where_it_comes_from():
    people = {"dm": "ann", "team": "ann bo", "secret-board": "ann eve"}
    async with audience_rig.heard_in(people, direct="dm") as lore:
        first = await audience_rig.remember(lore, "wants another job 想换工作", "secret-board")
        sources = [Source(room, f"{room}-ann") for room in ("secret-board", "dm")]
        known = (await lore.memories.update(first, statement="quits 辞职", sources=sources, reason="eve")).memory_id
        await lore.memories.share(known, "room:team")
        asked = {"viewer": "room:team"}
        shown = [
            await lore.memories.get(known, **asked),
            await lore.memories.head(known, **asked),
            *await lore.memories.page("user:ann", **asked),
            *await lore.memories.history(known, **asked),
            *(hit.memory for hit in (await lore.memories.search("user:ann", "quits", threshold=0, **asked)).hits),
            *(one.memory for one in (await lore.recall.build(["user:ann"], ASKED, **asked)).facts),
            *await lore.memories.as_told([await lore.memories.get(known)], "room:team"),
        ]
        assert len(shown) == 7
        for word in ("secret-board", "dm-ann", "eve'", first):
            assert word not in str(shown)
        assert {(one.version, one.parents, one.lineage_id, one.evidence, one.sources) for one in shown} == {
            (1, (), known, (), ())
        }
        whole = await lore.memories.get(known)
        assert (whole.parents, [one.room_id for one in whole.evidence]) == ((first,), ["dm", "secret-board"])


async def test_a_shared_version_replaces_the_one_that_was_heard_for_those_it_is_shared_with(lore):
    await remember(lore, "team")
    (before,) = await lore.memories.page("user:ann")
    private = [*before.sources, Source("dm", "dm-ann")]
    after = await lore.memories.update(before.memory_id, statement="Ann eats no nuts 不吃坚果", sources=private)
    await lore.memories.share(after.memory_id, "room:team")
    (shown,) = await lore.memories.page("user:ann", viewer="room:team")
    assert (shown.statement, shown.parents) == ("Ann eats no nuts 不吃坚果", (before.memory_id,))
    assert [one.room_id for one in shown.evidence] == ["team"]
    assert (await lore.memories.get(after.memory_id, viewer="room:team")).parents == (before.memory_id,)


async def test_whoever_a_memory_is_only_shared_with_may_not_change_it(lore):
    await remember(lore, "dm")
    (fact,) = await lore.memories.page("user:ann")
    await lore.memories.share(fact.memory_id, "room:team")
    with pytest.raises(Forbidden, match="only shared"):
        await lore.memories.check_changeable(fact.memory_id, "room:team")
    for viewer in ("user:ann", "room:dm", None):
        await lore.memories.check_changeable(fact.memory_id, viewer)
    with pytest.raises(NotFound):
        await lore.memories.check_changeable(fact.memory_id, "room:square")
