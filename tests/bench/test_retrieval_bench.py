"""The benches that others score: what they write, and that they never look at the gold."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bench import kept_vectors
from bench_command import bench
from roomlore.core.search.hits import Vectors
from roomlore_testkit.embedding import HashEmbedder


def _write(path: Path, rows: Sequence[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def test_ranks_the_messages_of_each_query_and_leaves_gold_alone(tmp_path: Path) -> None:
    said = [("1", "kitchen", "The kettle is broken"), ("2", "kitchen", "水壶坏了"), ("1", "hall", "A kettle, here?")]
    _write(
        tmp_path / "messages.jsonl",
        [{"id": n, "room_id": room, "sender_id": "anna", "text": text, "role": "user"} for n, room, text in said],
    )
    asked = [("a", "kitchen", "which kettle is broken"), ("b", "kitchen", "水壶"), ("c", "hall", "kettles")]
    _write(tmp_path / "queries_x.jsonl", [{"qid": qid, "room_id": room, "query": query} for qid, room, query in asked])
    (tmp_path / "gold_x.jsonl").mkdir()
    out = tmp_path / "out.jsonl"
    command = ("predict-retrieval", str(tmp_path), str(out), "--suffix", "_x", "--mode", "lexical")
    bench(*command)
    ranked = {row["qid"]: row["ranked"] for row in map(json.loads, out.read_text().splitlines())}
    assert list(ranked) == ["a", "b", "c"]
    assert ranked["a"][0] == "1"
    assert ranked["b"][0] == "2"
    assert ranked["c"] == ["1"]


def test_contexts_come_with_the_probability_of_each_message(tmp_path: Path) -> None:
    said = [("1", "anna", "The kettle is broken", None), ("2", "li", "水壶坏了？", "1"), ("3", "anna", "yes 🫖", "2")]
    rows = [
        {"id": n, "room_id": "kitchen", "sender_id": who, "text": text, "role": "user"}
        | ({"reply_to": answered} if answered else {})
        for n, who, text, answered in said
    ]
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    _write(rooms / "kitchen.messages.jsonl", rows)
    (rooms / "kitchen.gold.jsonl").mkdir()
    command = ("predict-context", str(rooms), str(tmp_path / "out"))
    bench(*command)
    written = (tmp_path / "out" / "kitchen.predictions.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line) for line in written]
    assert [row["id"] for row in found] == ["1", "2", "3"]
    assert [len(row["scores"]) for row in found] == [len(row["selected"]) for row in found]
    assert dict(zip(found[1]["selected"], found[1]["scores"], strict=True)) == {"1": pytest.approx(1.0)}
    assert all(0 <= score <= 1 for row in found for score in row["scores"])


def test_puts_each_question_to_its_room_and_takes_it_away(tmp_path: Path) -> None:
    talk = [
        ("1", "anna", "The spare key is under the blue flower pot"),
        ("2", "ben", "I am off to the market"),
        ("3", "anna", "备用钥匙现在放在抽屉里"),
        ("4", "ben", "The spare key is with the neighbour now"),
    ]
    _write(
        tmp_path / "messages.jsonl",
        [
            {"id": n, "room_id": room, "sender_id": who, "text": text, "sent_at": f"2026-05-04T0{n}:00:00"}
            for room in ("hall", "kitchen")
            for n, who, text in talk
        ],
    )
    asked = "Where did Anna say the spare key is?"
    _write(
        tmp_path / "queries.jsonl",
        [
            {"qid": "late", "room_id": "hall", "query": asked},
            {"qid": "again", "room_id": "hall", "query": asked},
            {"qid": "early", "room_id": "hall", "query": asked, "asked_after": "2", "sender_id": "ben"},
            {"qid": "zh", "room_id": "kitchen", "query": "之前说备用钥匙放在哪里？"},
        ],
    )
    (tmp_path / "gold.jsonl").mkdir()
    out = tmp_path / "out.jsonl"
    command = ("predict-asked", str(tmp_path), str(out), "--k", "2", "--mode", "lexical")
    bench(*command)
    selected = {row["qid"]: row["selected"] for row in map(json.loads, out.read_text().splitlines())}
    assert set(selected) == {"late", "again", "early", "zh"}
    assert selected["late"] == selected["again"]
    assert "1" in selected["late"]
    assert set(selected["early"]) <= {"1", "2"}
    assert "1" in selected["early"]
    assert "3" in selected["zh"]
    assert all(len(ids) <= 2 for ids in selected.values())


class Counting(HashEmbedder):
    """Counts the texts it is asked for."""

    asked = 0

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        self.asked += len(texts)
        return await super().embed(texts, kind=kind)  # type: ignore[arg-type]


async def test_vectors_are_made_once_and_kept_between_runs(tmp_path: Path) -> None:
    first = kept_vectors.KeptEmbedder(inner := Counting(), tmp_path)
    made = await first.embed(["kettle", "水壶", "kettle"], kind="passage")
    assert made.shape == (3, inner.model.dimensions)
    assert (made[0] == made[2]).all()
    await first.close()
    again = kept_vectors.KeptEmbedder(later := Counting(), tmp_path)
    assert np.array_equal(await again.embed(["水壶", "kettle"], kind="passage"), made[[1, 0]])
    assert later.asked == 0
    await again.embed(["kettle"], kind="query")
    assert later.asked == 1


async def test_vectors_of_two_models_are_kept_apart(tmp_path: Path) -> None:
    first = kept_vectors.KeptEmbedder(Counting(), tmp_path)
    await first.embed(["kettle"], kind="passage")
    await first.close()
    other = Counting(name="another/model")
    second = kept_vectors.KeptEmbedder(other, tmp_path)
    await second.embed(["kettle"], kind="passage")
    assert other.asked == 1
