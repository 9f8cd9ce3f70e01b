"""The bench of other stores, with those that need no environment of their own."""

import numpy as np
import pytest
from bench.peer_side import Told

from bench import langgraph_side, word_sides
from bench_command import bench


def test_every_store_is_timed_at_every_size():
    printed = bench("peers", "--sizes", "100,200", "--adds", "20", "--search-seconds", "1", "--stores", "FTS5")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()]
    rows = [row for row in rows if len(row) == 10 and row[0].isdecimal()]
    stores = ("roomlore", "roomlore, with the vectors", "roomlore, words alone", "FTS5")
    assert [row[:2] for row in rows] == [[size, store] for size in ("100", "200") for store in stores]
    clocks = [float(cell.split()[0]) for row in rows for cell in row[2:] if cell]
    assert len(clocks) == 2 * (4 * 4 + 3 * 4)
    assert all(clock > 0 for clock in clocks)


@pytest.mark.parametrize(
    ("sides", "name"), [(word_sides, "FTS5"), (langgraph_side, "InMemoryStore")], ids=["FTS5", "InMemoryStore"]
)
def test_what_a_store_is_told_is_found_in_its_room_alone(sides, name, tmp_path):
    said = {"hall": ("the kettle is broken", "who has the key"), "kitchen": ("a broken kettle", "水壶坏了")}
    vectors = dict(zip([*said["hall"], *said["kitchen"], "kettle"], np.eye(5).tolist(), strict=True))
    vectors["kettle"] = vectors["the kettle is broken"]
    store = sides.STORES[name](tmp_path, 5, vectors)
    for room, texts in said.items():
        store.fill([Told(room, f"{room}-{number}", text) for number, text in enumerate(texts)])
    store.add(Told("hall", "hall-2", "the kettle is broken"))
    assert set(store.search("hall", "kettle", 2)) == {"hall-0", "hall-2"}
    assert {found.split("-")[0] for found in store.search("kitchen", "kettle", 5)} == {"kitchen"}
