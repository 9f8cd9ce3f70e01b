"""`lore.remember` and `lore.ask`: the plain verbs, and the people and rooms that their callers name."""

from datetime import date

import pytest

import roomlore
from roomlore import InvalidInput, Message, NewMemory, NotFound
from roomlore.core.errors import NameNotId, RoomloreError
from roomlore.storage.sqlite import SqliteConnection

_SAID = (("crew", "u1", "Ann", "The ferry leaves at nine."), ("crew", "u2", "Bo", "ok"), ("tea", "u3", "Bo", "Milk?"))
_ANN = "Nobody who wrote here has the id {!r}; did you mean 'u1' ('Ann')?"


@pytest.fixture
async def crew(lore):
    for number, (room, person, name, text) in enumerate(_SAID):
        await lore.messages.add(Message(id=f"{number}", room_id=room, sender_id=person, sender_name=name, text=text))
    await lore.rooms.rename("crew", "The Crew")
    return lore


ABOUT = (
    ("crew", "group:crew", ()),
    ("the crew", "group:crew", ()),
    ("room:The Crew", "group:crew", ()),
    ("group:The Crew", "group:crew", ()),
    ("u1", "user:u1", ()),
    ("Ann", "user:u1", ()),
    ("@ann", "user:u1", ()),
    ("user:u1", "user:u1", ()),
    ("user:Ann", "user:Ann", (_ANN.format("Ann"),)),
    ("user:Annn", "user:Annn", (_ANN.format("Annn"),)),
    ("user:zoe", "user:zoe", ()),
    ("agent:Ann", "agent:Ann", ()),
    ("group:new", "group:new", ()),
)
NOBODY = (
    ("Bo", NameNotId, r"it is the name of u3 \(tea\), u2 \(crew\)"),
    ("Crw", NotFound, "Did you mean 'crew'"),
    ("zoe", InvalidInput, "write 'group:zoe' or 'user:zoe'"),
    ("", InvalidInput, "give the id of a room"),
    (None, InvalidInput, "give the id of a room"),
    (7, InvalidInput, "give the id of a room"),
)


@pytest.mark.parametrize(("about", "scope", "notes"), ABOUT)
async def test_a_fact_is_of_whom_its_caller_names(crew, about, scope, notes):
    fact = await crew.remember(about, "Likes oolong", valid_until=date(2999, 1, 1), category="taste")
    assert (fact.scope, fact.outcome, fact.notes, fact.category) == (scope, "added", notes, "taste")
    assert (await crew.memories.head(fact.memory_id)).statement == "Likes oolong"
    again = await crew.remember(about, "likes  OOLONG")
    assert (again.memory_id, again.outcome, again.notes) == (fact.memory_id, "unchanged", ())


@pytest.mark.parametrize(("about", "kind", "why"), NOBODY)
async def test_nothing_is_stored_of_a_name_that_means_nobody_or_several(crew, about, kind, why):
    with pytest.raises(kind, match=why):
        await crew.remember(about, "Likes oolong")
    async with crew.storage.reading(crew.tenant) as work:
        assert await work.memories.scopes(after=None, limit=9) == []


async def test_a_room_and_a_viewer_may_be_given(crew):
    room = await crew.rooms.get("crew")
    assert (await crew.remember(room, "They sail")).scope == "group:crew"
    fact = await crew.remember("The Crew", "They row", viewer="room:crew")
    assert [where.room_id for where in fact.evidence] == ["crew"]
    assert (await crew.remember("user:Ann", "Rows", viewer="room:crew")).notes == (_ANN.format("Ann"),)
    assert (await crew.remember("user:Ann", "Rows", viewer="room:tea")).notes == (), "it does not see her"
    for about in ("Ann", "The Crew"):
        with pytest.raises(NotFound, match="that the viewer may see"):
            await crew.remember(about, "Rows", viewer="room:tea")


async def test_a_question_is_asked_of_a_room_by_its_id_its_name_or_itself_or_of_all(crew):
    for room in ("crew", "the crew", await crew.rooms.get("crew"), None):
        answer = await crew.ask(room, "When does the ferry leave?")
        assert [(hit.message.id, hit.reason) for hit in answer.hits] == [("0", "has your words: ferry, leave")]
    assert (await crew.ask("crew", "ferry", sender_ids=["u2"])).hits == ()
    assert (await crew.ask(None, "ferry", viewer="room:tea")).hits == ()
    for room, viewer in (("nowhere", None), ("the crew", "room:tea")):
        with pytest.raises(NotFound):
            await crew.ask(room, "ferry", viewer=viewer)


async def test_over_http_a_fact_has_notes(crew, http):
    for body in ({"scope": "user:Ann", "statement": "Rows"}, {"facts": [{"scope": "user:Ann", "statement": "Sails"}]}):
        answer = (await http.post("/facts", json=body)).json()
        assert [fact["notes"] for fact in answer["facts"]] == [[_ANN.format("Ann")] if "scope" in body else []]
    assert (await http.post("/facts", json={"scope": "user:u1", "statement": "Rows"})).json()["facts"][0]["notes"] == []


def test_without_async(tmp_path):
    with roomlore.open_sync(tmp_path / "chat.db") as lore:
        lore.messages.add(Message(id="1", room_id="crew", sender_id="u1", sender_name="Ann", text="The ferry is late."))
        assert lore.remember("Ann", "Rows").scope == "user:u1"
        assert lore.ask("crew", "ferry").hits[0].message.id == "1"
        with pytest.raises(RoomloreError):
            lore.ask("nowhere", "ferry")


UNMARKED = (
    ("鍵は誰が持ってる", "田中さんが鍵を預かりました", "駅前の鍵の店は閉まっていた"),
    ("열쇠는 누가 가지고 있어요", "열쇠는 민수 씨에게 맡겼어요", "열쇠 가게가 문을 닫았어요"),
    ("กุญแจอยู่ที่ไหน", "กุญแจอยู่ในลิ้นชักโต๊ะ", "ร้านกุญแจปิดแล้ว"),
)


@pytest.mark.parametrize(("question", "answer", "other"), UNMARKED)
async def test_a_question_without_its_mark_is_answered_as_one_with_it(lore, question, answer, other):
    for number, (sender, text) in enumerate((("a", question), ("b", answer), ("c", other))):
        await lore.messages.add(Message(id=f"{number}", room_id="keys", sender_id=sender, text=text))
    for asked in (question, f"{question}?"):
        assert [hit.message.id for hit in (await lore.ask("keys", asked)).hits][:1] == ["1"], asked


_TWENTY = [f"n {number}" for number in range(20)]


@pytest.mark.parametrize("viewer", [None, "room:crew"])
async def test_names_are_compared_with_few_statements(crew, monkeypatch, viewer):
    for n in range(100):
        await crew.messages.add(Message(id=f"n{n}", room_id="crew", sender_id=f"n{n}", sender_name=f"N {n}", text="hi"))
    run, fetch = [], SqliteConnection.fetch

    async def counted(connection, statement, **params):
        run.append(statement)
        return await fetch(connection, statement, **params)

    monkeypatch.setattr(SqliteConnection, "fetch", counted)
    counts = {}
    for kind, names in (("user", ["n"]), ("agent", _TWENTY), ("user", _TWENTY)):
        run.clear()
        facts = [NewMemory(scope=f"{kind}:{name}", statement="Sails") for name in names]
        await crew.memories.add_told(facts, viewer=viewer)
        counts[kind, len(names)] = len(run)
    assert counts["user", 1] < 30
    assert counts["user", 20] - counts["agent", 20] < 6 * 20, counts
