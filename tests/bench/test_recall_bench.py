"""The figures of the recall bench, on a chat whose answers can be worked out by hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.recall_churn import calls_of, lived
from bench.recall_data import rooms_of, sets_of

ROOT = Path(__file__).parents[2]
FACTS = ["The dentist in Leeds is called Hartley", "我的猫叫豆豆", "The bicycle was bought in Ghent"]
ASKED = [
    ("a", "What is the dentist called?", ["0"]),
    ("b", "猫叫什么名字？", ["1"]),
    ("c", "Where is the bicycle from?", ["2"]),
]


def write(folder: Path) -> Path:
    """Two sessions: what is to be remembered, and chatter about it."""
    folder.mkdir()
    texts = [*FACTS, *(f"Morning number {n}, what a day it is, so much weather about" for n in range(60))]
    rows = [
        {
            "id": str(n),
            "room_id": "r",
            "sender_id": "bot" if n % 2 and n > 2 else "ann",
            "text": text,
            "role": "assistant" if n % 2 and n > 2 else "user",
            "metadata": {"session": "first" if n < 40 else "second"},
        }
        for n, text in enumerate(texts)
    ]
    queries = [{"qid": qid, "room_id": "r", "query": text} for qid, text, _ in ASKED]
    gold = [{"qid": qid, "gold": ids} for qid, _, ids in ASKED]
    for name, lines in (("messages", rows), ("queries", queries), ("gold", gold)):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    return write(tmp_path / "made_up")


def test_questions_are_asked_in_the_session_after_their_gold(made_up: Path) -> None:
    (room,) = rooms_of(made_up)
    calls = list(calls_of(room))
    questions = [call for call in calls if call.gold]
    assert [call.said[-1].text for call in questions] == [text for _, text, _ in ASKED]
    assert {call.remembered for call in questions} == {40}
    assert calls.index(questions[1]) - calls.index(questions[0]) > 1
    assert all(call.said[-1].role == "user" for call in calls)


def test_the_sticky_block_changes_less_and_the_trailing_one_never(made_up: Path) -> None:
    tallies = lived(rooms_of(made_up))
    assert not any(tallies["trailing"].changed)
    assert sum(tallies["sticky"].changed) < sum(tallies["re-ranked"].changed)
    assert tallies["sticky"].shares == tallies["re-ranked"].shares == [1.0, 1.0, 1.0]


def test_a_folder_without_sets_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds no set"):
        sets_of(tmp_path)


def test_the_command_prints_tables_and_verdicts(made_up: Path) -> None:
    command = ("-m", "bench", "recall", "--data", str(made_up.parent), "--only", "quality")
    told = subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "| tfidf | 100.0 | 100.0 | 100.0 | 100.0 |" in told
    assert "made_up: ahead of confidence" in told
