"""Token counts equal tiktoken's: `tokens.jsonl` was counted by tiktoken 0.14 (see `count_tokens.py`)."""

import json
from pathlib import Path

import pytest

from roomlore.adapters.tokens import EncodingTokens

GOLD = (Path(__file__).parent / "tokens.jsonl").read_text(encoding="utf-8")
LINES = [json.loads(line) for line in GOLD.split("\n") if line]
TEXTS = [line["text"] * line.get("times", 1) for line in LINES]


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_counts_are_those_of_tiktoken(encoding):
    counts = EncodingTokens(encoding).count(TEXTS)
    counted = zip(LINES, counts, strict=True)
    assert {line["text"]: count for line, count in counted if count != line[encoding]} == {}


def test_the_corpus_is_worth_its_name():
    assert len(set(TEXTS)) == len(TEXTS) > 150
    assert sum(line["cl100k_base"] != line["o200k_base"] for line in LINES) > 50
