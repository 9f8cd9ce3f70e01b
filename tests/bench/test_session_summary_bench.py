"""The figures of the summary bench, on conversations whose answer can be worked out by hand."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from bench.session_summary import Tally, play, rooms_of

from roomlore.adapters.tokens import EncodingTokens

FACT = "My dentist in Leeds is called Doctor Hartley."
CHATTER = "Morning again, number {} of many, what a day it is."


def folder(path: Path) -> Path:
    said = [FACT, *(CHATTER.format(n) for n in range(120))]
    rows = [{"id": str(n), "room_id": "r", "sender_id": "ann", "text": text} for n, text in enumerate(said)]
    asked = [{"qid": "a", "room_id": "r", "query": "Who is my dentist?"}]
    gold = [{"qid": "a", "gold": ["0"]}]
    for name, lines in (("messages", rows), ("queries", asked), ("gold", gold)):
        (path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(("kept", "share"), [(f"ann: {FACT}", 1.0), ("ann: Morning again.", 0.0)])
def test_a_question_counts_as_answerable_where_its_gold_stands_in_the_summary(tmp_path: Path, kept: str, share: float):
    (room,) = rooms_of(folder(tmp_path), "", EncodingTokens().count)
    tally, given = Tally(), []

    def make(previous, said, before, budget):
        given.append([one.text for one in (*before, *said)])
        return kept

    play(room, make, tally, window=500, budget=50)
    assert tally.rounds > 3
    assert given[-1][0] == FACT
    assert all(len(later) > len(sooner) for sooner, later in pairwise(given))
    assert [tally.information, tally.held, tally.evidence, tally.early] == [[share]] * 4


def test_the_last_turns_stay_out_of_the_summary(tmp_path: Path):
    (room,) = rooms_of(folder(tmp_path), "", EncodingTokens().count)
    seen: list[int] = []
    play(
        room,
        lambda previous, said, before, budget: seen.append(len(before) + len(said)) or "",
        Tally(),
        window=2_000,
        budget=50,
    )
    assert seen[0] < 121
    room_said = [one.tokens for one in room.spoken]
    assert sum(room_said[: seen[0] + 16]) + 50 >= 1_500
