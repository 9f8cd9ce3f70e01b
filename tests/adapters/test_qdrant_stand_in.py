"""The stand-in speaks as Qdrant's REST interface is written down."""

from collections.abc import AsyncIterator

import httpx
import pytest

from qdrant_stand_in import QdrantStandIn

VECTORS = {"vectors": {"size": 2, "distance": "Cosine"}}


@pytest.fixture
async def server() -> AsyncIterator[QdrantStandIn]:
    async with QdrantStandIn() as running:
        yield running


@pytest.fixture
async def client(server: QdrantStandIn) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url) as opened:
        yield opened


async def test_a_collection_lives_and_dies(client):
    made = await client.put("/collections/c", json=VECTORS)
    assert (made.status_code, made.json()["result"], made.json()["status"]) == (200, True, "ok")
    assert (await client.put("/collections/c", json=VECTORS)).status_code == 409
    assert (await client.get("/collections")).json()["result"] == {"collections": [{"name": "c"}]}
    assert (await client.delete("/collections/c")).json()["result"] is True
    assert (await client.delete("/collections/c")).json()["result"] is False
    assert (await client.get("/collections/c/exists")).json()["result"] == {"exists": False}


async def test_an_alias_goes_with_its_collection(client):
    await client.put("/collections/c", json=VECTORS)
    create = {"actions": [{"create_alias": {"alias_name": "a", "collection_name": "c"}}]}
    assert (await client.post("/collections/aliases", json=create)).json()["result"] is True
    listed = (await client.get("/aliases")).json()["result"]["aliases"]
    assert listed == [{"alias_name": "a", "collection_name": "c"}]
    assert (await client.post("/collections/a/points/count", json={})).json()["result"] == {"count": 0}
    await client.delete("/collections/c")
    assert (await client.get("/aliases")).json()["result"]["aliases"] == []
    assert (await client.post("/collections/aliases", json=create)).status_code == 404


async def test_refusals_have_the_servers_codes_and_words(client):
    lost = await client.post("/collections/lost/points/count", json={})
    assert lost.status_code == 404
    assert lost.json()["status"] == {"error": "Not found: Collection `lost` doesn't exist!"}
    await client.put("/collections/c", json=VECTORS)
    long = await client.put("/collections/c/points", json={"points": [{"id": 1, "vector": [1, 2, 3]}]})
    assert long.status_code == 400
    assert long.json()["status"]["error"] == "Wrong input: Vector dimension error: expected dim: 2, got 3"
    assert (await client.put("/collections/c/points", content=b'{"points": [')).status_code == 400
    none = await client.post("/collections/c/points/query/batch", json={"searches": [{"query": [1, 0], "limit": 0}]})
    assert none.status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {"should": []}},
        {"filter": {"must": [{"key": "a", "range": {"gt": 1}}]}},
        {"filter": {"must": [{"key": "a", "match": {"text": "b"}}]}},
    ],
)
async def test_what_it_does_not_know_it_says(client, body):
    await client.put("/collections/c", json=VECTORS)
    assert (await client.post("/collections/c/points/count", json=body)).status_code == 501
    assert (await client.post("/collections/c/points/scroll", json={})).status_code == 501


async def test_it_comes_back_where_it_was_with_what_it_held(server, client):
    await client.put("/collections/c", json=VECTORS)
    url = server.url
    await server.stop()
    with pytest.raises(httpx.TransportError):
        await client.get("/collections")
    await server.start()
    assert server.url == url
    assert (await client.get("/collections/c/exists")).json()["result"] == {"exists": True}
    await server.wipe()
    assert (await client.get("/collections/c/exists")).json()["result"] == {"exists": False}


async def test_a_fault_strikes_the_requests_it_is_meant_for(server, client):
    server.fault, server.only = "html", "/aliases"
    assert (await client.get("/aliases")).status_code == 502
    assert (await client.get("/collections")).status_code == 200
    server.fault = "half"
    with pytest.raises(httpx.RemoteProtocolError):
        await client.get("/aliases")
    assert server.requests[-2:] == ["GET /collections", "GET /aliases"]
