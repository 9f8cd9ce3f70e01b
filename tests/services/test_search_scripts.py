"""Search of messages and memories in many scripts, with and without accents and marks."""

import pytest
from script_rooms import APART, MEET, ROOMS, ScriptRoom

import roomlore
from roomlore.core.search import query
from roomlore.core.search.hits import EmbeddingModel
from roomlore.core.text import alike, terms
from roomlore.services.indexing import index_state, rebuild


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.mark.parametrize("room", ROOMS.values(), ids=ROOMS)
async def test_what_holds_the_word_comes_first(url, room: ScriptRoom):
    async with roomlore.open(url, background=False) as lore:
        said = [roomlore.Message(id=key, room_id="r", sender_id="u1", text=text) for key, text in room.said.items()]
        await lore.messages.add(said)
        for text in room.said.values():
            await lore.memories.add("user:u", text)
        wrong = []
        for question, wanted in room.asked:
            hits = [hit.message.id for hit in (await lore.messages.search("r", question)).hits]
            facts = [hit.memory.statement for hit in (await lore.memories.search("user:u", question)).hits]
            if hits[:1] != [wanted]:
                wrong.append(("message", question, hits))
            if facts[:1] != [room.said[wanted]]:
                wrong.append(("fact", question, facts))
        assert not wrong


@pytest.mark.parametrize("pair", MEET)
def test_these_meet(pair):
    first, second = map(terms, pair)
    assert first
    assert first == second


@pytest.mark.parametrize("pair", APART)
def test_these_stay_apart(pair):
    first, second = map(terms, pair)
    assert first
    assert set(first).isdisjoint(set(second))


def test_a_misspelt_name_is_known_without_its_accents():
    assert alike("Jose", ["José", "Anna"]) == ["José"]
    assert alike("İpek", ["ipek", "Anna"]) == ["ipek"]


async def test_an_index_of_an_earlier_version_follows_and_goes_on_after_a_kill(url, monkeypatch):
    """The earlier version kept a run of Thai as one word, and accents."""
    monkeypatch.setattr(rebuild, "_PAGE", 2)
    room = ROOMS["thai"]
    with monkeypatch.context() as earlier:
        old = EmbeddingModel(name="words-2", dimensions=0)
        earlier.setattr(rebuild, "WORDS_MODEL", old)
        earlier.setattr(index_state, "WORDS_MODEL", old)
        earlier.setattr(query, "terms", lambda text: text.lower().split())
        earlier.setattr(query, "written", lambda text: [])
        async with roomlore.open(url, background=False) as lore:
            said = [roomlore.Message(id=key, room_id="r", sender_id="u1", text=text) for key, text in room.said.items()]
            await lore.messages.add([*said, roomlore.Message(id="cafe", room_id="r", sender_id="u1", text="au café")])
            await lore.index.catch_up()
    async with roomlore.open(url, background=False) as lore:
        assert "rebuilt" in ((await lore.messages.search("r", "กาแฟ")).degraded or "")
        async for _ in lore.index.rebuild(part="words", resume=True):
            break
    async with roomlore.open(url, background=False) as lore:
        assert (await lore.messages.search("r", "กาแฟ")).degraded
        await lore.index.catch_up()
        for asked, wanted in [*room.asked, ("cafe", "cafe")]:
            answer = await lore.messages.search("r", asked)
            assert answer.degraded is None
            assert answer.hits[0].message.id == wanted
        assert not (await lore.privacy.verify()).faults
