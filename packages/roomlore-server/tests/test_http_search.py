"""`GET /messages/search` and `GET /index`: what they find, for whom, and what they say to bad input."""

from datetime import UTC, datetime

import httpx
import pytest

import roomlore
from roomlore.core.errors import VectorsUnavailable
from roomlore_server.http import create_app
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.embedding import HashEmbedder

PATH = "/messages/search"
TEXTS = [
    "the kettle is broken again",
    "水壶昨天修好了",
    "kettles everywhere",
    "lunch at noon?",
    "\x1b[31m NUL \0 samovar",
]


@pytest.fixture(autouse=True)
async def tea(lore):
    at = [datetime(2024, 5, day + 1, 12, tzinfo=UTC) for day in range(len(TEXTS))]
    said = [
        roomlore.Message(id=f"m{n}", room_id="tea", sender_id=f"u{n % 2}", text=text, sent_at=at[n])
        for n, text in enumerate(TEXTS)
    ]
    await lore.messages.add(said)


async def found(http: httpx.AsyncClient, **query: object) -> list[str]:
    answer = await http.get(PATH, params={"room_id": "tea", "q": "kettle", **query})
    assert answer.status_code == 200, answer.text
    return [hit["message"]["id"] for hit in answer.json()["hits"]]


async def test_an_answer_has_scores_signals_and_reasons(http):
    answer = (await http.get(PATH, params={"room_id": "tea", "q": "who broke the kettle last week", "limit": 2})).json()
    assert set(answer) == {"room_id", "query", "mode", "hits", "times", "degraded", "hint", "search_ms"}
    assert (answer["mode"], answer["degraded"], len(answer["hits"])) == ("lexical", None, 2)
    first = answer["hits"][0]
    assert set(first) == {"message", "score", "signals", "reason", "outside", "conversation"}
    assert first["conversation"] == []
    assert 0 <= first["score"] <= 1
    assert first["reason"]
    assert answer["times"][0]["text"] == "last week"


async def test_each_hit_with_its_conversation(http, lore):
    answer = roomlore.Message(id="a", room_id="tea", sender_id="u9", text="descale it", reply_to="m0")
    await lore.messages.add(answer)
    query = {"room_id": "tea", "q": "descale", "conversation": "true", "limit": 1}
    hit = (await http.get(PATH, params=query)).json()["hits"][0]
    assert [message["id"] for message in hit["conversation"]][:1] == ["m0"]
    assert "a" in [message["id"] for message in hit["conversation"]]


async def test_chinese_and_anything_else_is_found(http):
    assert (await found(http, q="修好水壶"))[0] == "m1"
    answer = await http.get(PATH, params={"room_id": "tea", "q": "samovar \0 \x1b"})
    assert answer.json()["hits"][0]["message"]["text"] == TEXTS[4]


async def test_neighbours_are_found_where_they_are_asked_for_and_nothing_says_why(http, lore):
    await lore.messages.add(roomlore.Message(id="a", room_id="tea", sender_id="u9", text="a samovar, then"))
    await lore.messages.add(roomlore.Message(id="b", room_id="tea", sender_id="u8", text="good plan"))
    assert "b" not in await found(http, q="samovar then")
    asked = await found(http, q="samovar then", neighbours="true")
    assert "a" in asked
    answer = (await http.get(PATH, params={"room_id": "tea", "q": "giraffe 长颈鹿"})).json()
    assert answer["hits"] == []
    assert answer["hint"].startswith("No message here has your words: giraffe, 长颈鹿.")


@pytest.mark.parametrize("word", ["room_id", "group_id", "chat_id", "conversation_id"])
async def test_a_room_has_four_names(http, word):
    answer = await http.get(PATH, params={word: "tea", "q": "kettle"})
    assert answer.json()["room_id"] == "tea"


async def test_filters(http):
    assert set(await found(http, since="2024-05-02T00:00:00Z")) >= {"m2"}
    assert "m0" not in await found(http, since="2024-05-02")
    assert set(await found(http, until="2024-05-02")) == {"m0"}
    assert await found(http, since="yesterday") == []
    assert "m0" in await found(http, until="last year")
    assert "m0" in await found(http, sender_id=["u0", "u1"])
    assert not {"m0", "m2"} & set(await found(http, sender_id="u1"))
    assert await found(http, sender_id="") == []
    assert len(await found(http, limit=1)) == 1
    assert (await found(http, mode="lexical"))[0] in ("m0", "m2")


async def test_a_plus_that_nobody_coded_is_read_as_one(http):
    answer = await http.get(f"{PATH}?room_id=tea&q=kettle&until=2024-05-01T14:30:00+02:00")
    assert [hit["message"]["id"] for hit in answer.json()["hits"]] == ["m0"]
    answer = await http.get(f"{PATH}?room_id=tea&q=kettle&until=2024-05-01T13:30:00%2B02:00")
    assert answer.json()["hits"] == []


async def test_times_are_read_from_when_it_is_asked(http):
    for asked_at, start in (("2024-05-15", "2024-05-06"), ("newest", "2024-04-22"), (1715774400, "2024-05-06")):
        query = {"room_id": "tea", "q": "kettle last week", "asked_at": asked_at}
        answer = (await http.get(PATH, params=query)).json()
        assert [time["start"] for time in answer["times"]] == [f"{start}T00:00:00+00:00"]


BAD = [
    ("room_id=tea", 422, "q is missing: say what to look for"),
    ("room_id=tea&q=%20", 422, "The query is empty"),
    (f"room_id=tea&q={'x' * 20_001}", 422, "at most 20000"),
    ("room_id=nowhere&q=x", 404, "'nowhere'"),
    ("room_id=a&group_id=b&q=x", 422, "name different rooms"),
    ("room_id=tea&q=x&limit=0", 422, "limit"),
    ("room_id=tea&q=x&limit=201", 422, "limit"),
    ("room_id=tea&q=x&limit=some", 422, "limit"),
    ("room_id=tea&q=x&mode=fuzzy", 422, "'hybrid' or 'lexical'"),
    ("room_id=tea&q=x&since=soon", 422, "since is 'soon'; write one time, such as"),
    ("room_id=tea&q=x&until=2024-13-01", 422, "until"),
    ("room_id=tea&q=x&asked_at=", 422, "asked_at"),
    (f"room_id=tea&q=x&since={'9' * 30}", 422, "since"),
]


async def test_bad_input_is_a_problem_that_says_what_to_do(http):
    with all_cases() as case:
        for query, status, says in BAD:
            with case(query):
                answer = await http.get(f"{PATH}?{query}")
                assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
                assert says in answer.json()["detail"]
                assert answer.json()["instance"] == PATH


async def test_the_ends_of_the_calendar_are_fine(http):
    assert await found(http, since="0001-01-01", until="9999-12-31") != []
    assert await found(http, q="kettle last week, yesterday, 上周", asked_at="0001-01-01") != []
    assert await found(http, q="kettle next week, tomorrow, 明天", asked_at="9999-12-31T23:59:59Z") != []


async def test_the_index_says_how_it_stands(http):
    answer = await http.get("/index")
    assert answer.json() == {
        "vectors": "off",
        "words": "whole",
        "model": None,
        "waiting": 0,
        "rooms_to_link": 0,
        "problem": None,
    }


class Cut(HashEmbedder):
    """An embedder whose model went away."""

    async def embed(self, texts, *, kind):
        raise roomlore.ModelUnavailable("The model is away; start it.")


@pytest.fixture
async def dense():
    """A client on a store with vectors, and the library under it."""
    async with roomlore.open("sqlite://", embedder=HashEmbedder(), background=False) as lore:
        await lore.messages.add(roomlore.Message(id="m1", room_id="tea", sender_id="ann", text="green tea"))
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield lore, client


async def _drain(lore: roomlore.Lore) -> None:
    async for _ in lore.index.drain():
        pass


async def test_the_index_is_made_and_search_becomes_hybrid(dense):
    lore, client = dense
    before = (await client.get("/index")).json()
    assert (before["vectors"], before["waiting"], before["model"]["name"]) == ("missing", 1, "hash")
    assert "--pending" in before["problem"]
    await _drain(lore)
    assert (await client.get("/index")).json()["vectors"] == "whole"
    answer = (await client.get(PATH, params={"room_id": "tea", "q": "tea"})).json()
    assert (answer["mode"], answer["degraded"]) == ("hybrid", None)


async def test_vectors_that_are_down_degrade_search_and_leave_the_service_ready(dense, monkeypatch):
    lore, client = dense
    await _drain(lore)

    async def down(*_: object, **__: object) -> None:
        raise VectorsUnavailable("The vector store is away; start it.")

    store = lore.index._vectors[0]._vectors
    monkeypatch.setattr(store, "nearest", down)
    monkeypatch.setattr(store, "generation", down)
    answer = await client.get(PATH, params={"room_id": "tea", "q": "tea"})
    assert (answer.status_code, answer.json()["mode"]) == (200, "lexical")
    assert "The vector store is away; start it." in answer.json()["degraded"]
    assert (await client.get("/health/ready")).status_code == 200
    index = (await client.get("/index")).json()
    assert (index["vectors"], index["problem"]) == ("down", "The vector store is away; start it.")
    text = (await client.get("/metrics")).text
    assert 'roomlore_searches_total{degraded="yes",mode="lexical"} 1.0' in text


async def test_a_model_that_is_away_is_no_error():
    async with roomlore.open("sqlite:///a.db", embedder=HashEmbedder(), background=False) as lore:
        await lore.messages.add(roomlore.Message(id="m1", room_id="tea", sender_id="ann", text="green tea"))
        await _drain(lore)
    async with roomlore.open("sqlite:///a.db", embedder=Cut(), background=False) as lore:
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = (await client.get(PATH, params={"room_id": "tea", "q": "tea"})).json()
    assert answer["mode"] == "lexical"
    assert "The model is away; start it." in answer["degraded"]
    assert [hit["message"]["id"] for hit in answer["hits"]] == ["m1"]
