"""The Qdrant adapter beyond the contract of vector indexes: names, generations, a server that fails."""

import asyncio
import time
from collections.abc import AsyncIterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient

from qdrant_stand_in import Collection, QdrantStandIn
from roomlore.adapters import qdrant as qdrant_adapter
from roomlore.adapters.qdrant import open_qdrant
from roomlore.adapters.qdrant.index import AliasData, QdrantVectors, held_by, physical, point_id, storable
from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.core.search.hits import EmbeddingModel, VectorPoint
from roomlore.ports.vectors import MEMORIES, MESSAGES, VectorIndex
from roomlore_testkit.case_table import all_cases

MODEL = EmbeddingModel(name="made up", dimensions=4)
SECRET = "the vault code is 7261"
PATIENCE = 60  # seconds, that nothing here takes however busy the machine is


def point(number: int, *, scope: str = "room", towards: int = 0, **payload: object) -> VectorPoint:
    vector = np.full(4, 0.1, np.float32)
    vector[towards % 4] = 1.0
    return VectorPoint(tenant="t", scope=scope, number=number, vector=vector / np.linalg.norm(vector), payload=payload)


async def search(
    index: VectorIndex, generation: str = "g1", *, limit: int = 10, only: list[int] | None = None, towards: int = 0
) -> list[int]:
    (found,) = await index.nearest(
        collection=MEMORIES,
        generation=generation,
        tenant="t",
        scope="room",
        vectors=point(0, towards=towards).vector[None, :],
        limit=limit,
        only=None if only is None else np.array(only, np.int64),
    )
    return found.numbers.tolist()


async def put(index: VectorIndex, *points: VectorPoint, generation: str = "g1") -> None:
    await index.put(collection=MEMORIES, generation=generation, points=points)


async def prepare(index: VectorIndex, generation: str = "g1") -> None:
    await index.prepare(collection=MEMORIES, model=MODEL, generation=generation)


async def generation(index: VectorIndex) -> str | None:
    return await index.generation(collection=MEMORIES)


async def count(index: VectorIndex) -> int:
    return await index.count(collection=MEMORIES, tenant="t", scope="room")


async def remove(index: VectorIndex, *numbers: int) -> None:
    await index.remove(collection=MEMORIES, tenant="t", scope="room", numbers=numbers)


CALLS = {
    "generation": generation,
    "prepare": prepare,
    "put": lambda index: put(index, point(1, statement=SECRET)),
    "remove": lambda index: remove(index, 1),
    "nearest": search,
    "count": count,
}


@pytest.fixture
async def server() -> AsyncIterator[QdrantStandIn]:
    async with QdrantStandIn() as running:
        yield running


@pytest.fixture
async def index(server: QdrantStandIn) -> AsyncIterator[VectorIndex]:
    opened = open_qdrant(server.url, timeout_seconds=PATIENCE, write_timeout_seconds=PATIENCE)
    yield opened
    await opened.close()


async def test_a_collection_is_an_alias_for_that_of_its_generation(index, server):
    await index.prepare(collection=MESSAGES, model=MODEL, generation="g1")
    await prepare(index, "0197-a_b")
    assert server.holdings.aliases == {
        "room_messages": "room_messages@g1.4",
        "group_memories": "group_memories@0197-a_b.4",
    }
    assert await generation(index) == "0197-a_b"


async def test_a_collection_is_laid_out_for_many_rooms(index, server):
    await prepare(index)
    made = server.holdings.find("group_memories")
    assert made.settings["vectors"] == {"size": 4, "distance": "Cosine"}
    assert made.settings["hnsw_config"] == {"m": 0, "payload_m": 16}
    assert made.indexes["group_id"] == {"type": "keyword", "is_tenant": True}
    assert {name: schema["type"] for name, schema in made.indexes.items()} == {
        "group_id": "keyword",
        "tenant": "keyword",
        "number": "integer",
    }


async def test_a_payload_is_kept_beside_whose_it_is(index, server):
    given = {"memory_id": "m1", "statement": "喝茶", "version": 3, "parent_id": None, "tags": ["a"], "strength": 0.5}
    await prepare(index)
    await put(index, point(7, **given, group_id="not the room"))
    (kept,) = server.holdings.find("group_memories").points.values()
    assert kept.payload == {**given, "tenant": "t", "group_id": "room", "number": 7}


async def test_a_payload_that_utf8_cannot_hold_is_kept_without_what_breaks_it(index, server):
    await prepare(index)
    await put(index, point(7, sender_id="a\ud800b", nested=[{"\udfff": None}]))
    (kept,) = server.holdings.find("group_memories").points.values()
    assert (kept.payload["sender_id"], kept.payload["nested"]) == ("a?b", [{"?": None}])


async def test_only_the_last_of_a_point_given_twice_counts(index):
    await prepare(index)
    await put(index, point(1, towards=1), point(2, towards=2), point(1, towards=0))
    assert await search(index, limit=1) == [1]
    assert await count(index) == 2


async def test_many_points_go_in_several_requests(index, server):
    model = EmbeddingModel(name="long", dimensions=2_000)
    await index.prepare(collection=MEMORIES, model=model, generation="g1")
    vector = np.full(2_000, 2_000**-0.5, np.float32)
    points = [VectorPoint(tenant="t", scope="room", number=n, vector=vector) for n in range(60)]
    await put(index, *points)
    assert server.requests.count("PUT /collections/group_memories@g1.2000/points") == 3
    assert await count(index) == 60


async def test_a_long_choice_of_numbers_is_asked_for_in_parts(index, server):
    await prepare(index)
    await put(index, point(5, towards=1), point(15_000), point(25_000), point(40_000))
    assert await search(index, only=list(range(30_000)), limit=3) == [15_000, 25_000, 5]
    assert server.requests.count("POST /collections/group_memories@g1.4/points/query/batch") == 3


async def test_among_equals_the_smaller_numbers_are_kept(index):
    await prepare(index)
    await put(index, *[point(number) for number in (30, 9, 27, 4, 18)])
    assert await search(index, limit=3) == [4, 9, 18]


async def test_many_equals_are_asked_for_again_until_the_smallest_are_known(index, server):
    await prepare(index)
    await put(index, *[point(number) for number in range(400, 0, -1)])
    assert await search(index, limit=2) == [1, 2]
    assert server.requests.count("POST /collections/group_memories@g1.4/points/query/batch") == 3


async def test_a_half_made_collection_is_none(index, server):
    server.fault, server.only = "error", "/index"
    with pytest.raises(VectorsUnavailable):
        await prepare(index)
    server.fault = None
    assert await generation(index) is None
    await prepare(index, "g2")
    assert await generation(index) == "g2"
    assert set(server.holdings.collections) == {"group_memories@g2.4"}


async def test_while_a_new_one_cannot_be_made_the_old_one_stays(index, server):
    await prepare(index)
    await put(index, point(1))
    server.fault, server.only = "error", "/collections/aliases"
    with pytest.raises(VectorsUnavailable):
        await prepare(index, "g2")
    server.fault = None
    assert await generation(index) == "g1"
    assert await search(index) == [1]


async def test_no_late_writer_reaches_a_newer_generation(index, server):
    await prepare(index)
    await prepare(index, "g2")
    for late in (put(index, point(1)), search(index)):
        with pytest.raises(VectorsUnavailable, match="is of generation g2, not g1"):
            await late
    assert await search(index, "g2") == []
    assert set(server.holdings.collections) == {"group_memories@g2.4"}


async def test_a_wiped_server_is_noticed_at_once(index, server):
    await prepare(index)
    await put(index, point(1))
    await server.wipe()
    assert await generation(index) is None
    assert await count(index) == 0
    await remove(index, 1)
    for lost in (put(index, point(2)), search(index)):
        with pytest.raises(VectorsUnavailable, match="wiped"):
            await lost


async def test_a_wipe_amid_a_long_write_is_noticed(index, server):
    model = EmbeddingModel(name="long", dimensions=2_000)
    await index.prepare(collection=MEMORIES, model=model, generation="g1")
    server.delay, server.only = 0.05, "/points"
    vector = np.full(2_000, 2_000**-0.5, np.float32)
    points = [VectorPoint(tenant="t", scope="room", number=n, vector=vector) for n in range(100)]
    writing = asyncio.ensure_future(put(index, *points))
    held = server.holdings.find("group_memories").points
    while not held:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    assert len(held) < 100
    await server.wipe()
    with pytest.raises(VectorsUnavailable, match="wiped"):
        await writing


@pytest.mark.parametrize("name", ["group_memories", "group_memories@g1.4"])
async def test_an_empty_collection_made_by_hand_is_not_taken_for_ours(index, server, name):
    await prepare(index)
    await server.wipe()
    server.holdings.collections[name] = Collection(settings={"vectors": {"size": 4, "distance": "Cosine"}})
    assert await generation(index) is None
    await prepare(index, "g2")
    await put(index, point(1), generation="g2")
    assert await search(index, "g2") == [1]


async def test_what_others_keep_in_qdrant_is_left_alone(index, server):
    other = await server.snapshot()
    for name in ("group_memories_old", "dev_group_memories@g1.4", "room_messages@g1.4", "group_memories@g1"):
        other.collections[name] = Collection(settings={"vectors": {"size": 4, "distance": "Cosine"}})
    await server.restore(other)
    await prepare(index)
    await prepare(index, "g2")
    assert set(server.holdings.collections) == {*other.collections, "group_memories@g2.4"}


async def test_a_full_collection_with_our_name_stops_the_preparation(index, server):
    await prepare(index)
    await put(index, point(1))
    ours = await server.snapshot()
    await server.wipe()
    server.holdings.collections["group_memories"] = ours.find("group_memories")
    with pytest.raises(VectorsUnavailable, match="roomlore did not make"):
        await prepare(index, "g2")
    assert len(server.holdings.find("group_memories").points) == 1


async def test_an_older_state_is_noticed(index, server):
    await prepare(index)
    before = await server.snapshot()
    await prepare(index, "g2")
    await server.restore(before)
    assert await generation(index) == "g1"
    with pytest.raises(VectorsUnavailable):
        await put(index, point(1), generation="g2")


async def test_an_alias_that_points_nowhere_is_no_generation(index, server):
    await prepare(index)
    server.holdings.collections.clear()
    assert await generation(index) is None


async def test_prefixes_keep_two_apart(index, server):
    second = open_qdrant(server.url, prefix="dev_", timeout_seconds=PATIENCE)
    await prepare(index)
    await prepare(second, "other")
    await put(index, point(1))
    assert await generation(index) == "g1"
    assert await generation(second) == "other"
    assert await search(second, "other") == []
    await second.close()


async def test_rubbish_is_unavailable(index, server):
    await prepare(index)
    with all_cases() as case:
        for fault in ("error", "html", "garbage", "wrong", "half"):
            for call, asked in CALLS.items():
                with case(fault, call):
                    server.fault = fault
                    with pytest.raises(VectorsUnavailable) as caught:
                        await asked(index)
                    assert caught.value.__cause__ is not None
                    assert "Check that it runs" in str(caught.value)
                    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("call", CALLS)
async def test_a_stopped_server_is_unavailable_until_it_runs_again(index, server, call):
    await prepare(index)
    await put(index, point(1, statement=SECRET))
    await server.stop()
    with pytest.raises(VectorsUnavailable, match="Check that it runs"):
        await CALLS[call](index)
    await server.start()
    assert await search(index) == [1]


async def test_a_slow_server_is_not_waited_for(index, server):
    await prepare(index)
    hasty = open_qdrant(server.url, timeout_seconds=0.1, write_timeout_seconds=PATIENCE)
    server.delay = 0.3
    await put(hasty, point(1))
    server.delay = 60
    began = time.monotonic()
    with pytest.raises(VectorsUnavailable, match="did not answer in time"):
        await search(hasty)
    assert time.monotonic() - began < 30
    await hasty.close()


async def test_a_write_whose_answer_is_lost_can_be_done_again(index, server):
    await prepare(index)
    server.fault = "half"
    with pytest.raises(VectorsUnavailable):
        await put(index, point(1))
    server.fault = None
    assert await count(index) == 1
    await put(index, point(1))
    assert await count(index) == 1


async def test_a_point_without_a_number_is_not_made_up(index, server):
    await prepare(index)
    await put(index, point(1))
    (stored,) = server.holdings.find("group_memories").points.values()
    del stored.payload["number"]
    with pytest.raises(VectorsUnavailable):
        await search(index)


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
async def test_the_api_key_is_sent_and_never_told():
    async with QdrantStandIn(api_key="right-key") as server:
        keys = ("right-key", "wrong-key")
        trusted, stranger = (open_qdrant(server.url, api_key=key, timeout_seconds=PATIENCE) for key in keys)
        await prepare(trusted)
        with pytest.raises(VectorsUnavailable, match="refuses the API key") as caught:
            await search(stranger)
        assert "wrong-key" not in str(caught.value) + str(caught.value.__cause__)
        await trusted.close()
        await stranger.close()


def test_bad_names_and_addresses_are_refused_in_words():
    with pytest.raises(InvalidInput, match="looks like http://localhost:6333"):
        open_qdrant("ftp://localhost")
    with pytest.raises(InvalidInput, match="letters, digits"):
        open_qdrant("http://localhost", prefix="a/b")
    with pytest.raises(InvalidInput, match="letters, digits"):
        physical("group_memories", AliasData("a@b", 4))


def test_without_the_extra_its_name_is_told(monkeypatch):
    monkeypatch.setattr(qdrant_adapter, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"roomlore\[qdrant\]"):
        open_qdrant("http://localhost:6333")


_TEXT = st.text(alphabet='ab", []0', max_size=4)


@given(st.tuples(_TEXT, _TEXT, st.integers(0, 12)), st.tuples(_TEXT, _TEXT, st.integers(0, 12)))
def test_points_share_an_id_only_if_they_are_the_same(one, other):
    assert (point_id(*one) == point_id(*other)) == (one == other)


@given(st.text(max_size=4), st.text(max_size=4))
def test_names_stay_apart_whatever_is_in_them(one, other):
    assert (storable(one) == storable(other)) == (one == other)
    storable(one + "\ud800").encode()


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True), st.integers(1, 65_536))
def test_a_generation_is_read_back_from_a_name(generation, dimensions):
    name = physical("room_messages", AliasData(generation, dimensions))
    assert held_by("room_messages", name) == AliasData(generation, dimensions)
    assert held_by("messages", name) is None


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
async def test_the_stand_in_answers_as_the_clients_own_local_mode(index):
    local = QdrantVectors(AsyncQdrantClient(":memory:"))
    random = np.random.default_rng(7)
    vectors = random.normal(size=(60, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rooms = ["room", "other room"]
    points = [
        VectorPoint(tenant="t", scope=rooms[n % 2], number=n, vector=vector) for n, vector in enumerate(vectors[:50])
    ]
    for each in (local, index):
        await prepare(each)
        await put(each, *points)
        await remove(each, *range(10))
    for only in (None, np.arange(20, 40)):
        asked = {"tenant": "t", "scope": "room", "vectors": vectors[50:], "limit": 6, "only": only}
        ours, theirs = [await each.nearest(collection=MEMORIES, generation="g1", **asked) for each in (index, local)]
        for one, other in zip(ours, theirs, strict=True):
            assert one.numbers.tolist() == other.numbers.tolist()
            np.testing.assert_allclose(one.similarities, other.similarities, atol=1e-6)
    assert await count(index) == await count(local) == 20
    await local.close()
