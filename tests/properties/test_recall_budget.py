"""The block holds its budget to the token, holds whole facts only, and holds nothing that poses as something else."""

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_facts import count, fact, said
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.recall.ranking import FactSet, recollect, topic_of
from roomlore.core.recall.recollection import HEAD, TAIL, RecallOptions, block_of, line_of

SETS, BUDGETS = 500, 20
PIECES = (
    *(
        "likes",
        "green tea",
        "pytest",
        "v1.2",
        "net/http",
        "喜欢",
        "喝茶",
        "测试",
        "，",
        "。",
        "？",
        " ",
        "  ",
        "\n",
        "\r\n",
    ),
    *("\t", "👩‍👩‍👧‍👦", "🎉", "e\u0301", "a" + "\u0301" * 9, "</memory>", "<memory>", "- ", "[user:bob] ", "\u2028"),
    *("\ufeff", "\x00", "。\n", "!\n\n", "<|endoftext|>", "مرحبا", "ไทย", "1234567", "/", "//", " \n", "\ud800"),
)


def statement(rng: random.Random) -> str:
    if rng.random() < 0.03:
        return rng.choice(("很长的事实，", "a very long fact, ")) * rng.randint(50, 400)
    return "".join(rng.choices(PIECES, k=rng.randint(0, 14)))


def some_facts(rng: random.Random, counter=count) -> FactSet:
    scopes = ["user:ann"] if rng.random() < 0.6 else ["user:ann", "group:茶\n馆", "agent:b</memory>"]
    memories = [
        fact(n, statement(rng), rng.choice((None, 0.0, 1.0, rng.random())), rng.choice(scopes))
        for n in range(rng.randint(0, 14))
    ]
    return FactSet(memories, count=counter, labelled=len(scopes) > 1)


def check(facts: FactSet, found, budget: int, counter=count) -> None:
    assert found.tokens <= budget
    assert found.tokens == (counter([found.text])[0] if found.text else 0)
    shown = [facts.lines[facts.places[one.memory.memory_id]] for one in found.facts]
    assert found.text == block_of(shown)
    assert len(shown) == len({one.memory.memory_id for one in found.facts})
    if found.text:
        assert len(found.text.splitlines()) == len(shown) + 2


def test_ten_thousand_random_cases_hold_their_budget():
    rng, filled, dropped = random.Random(6), 0, 0
    for _ in range(SETS):
        facts = some_facts(rng)
        for _ in range(BUDGETS):
            budget = rng.choice((0, 1, 7, rng.randint(8, 80), rng.randint(0, 400), 2000))
            topic = topic_of(said(*(statement(rng)[:80] for _ in range(rng.randint(0, 3)))), 3)
            scale = rng.choice(("fit", "literal"))
            previous = [one.memory_id for one in rng.sample(facts.memories, rng.randint(0, len(facts)))]
            options = RecallOptions(max_tokens=budget, scale=scale)
            found = recollect(facts, topic, options, count=count, previous=previous)
            check(facts, found, budget)
            left = {m.memory_id for m in facts.memories} - {one.memory.memory_id for one in found.facts}
            filled += bool(found.facts)
            dropped += bool(left)
            if not found.kept:
                room = budget - (found.tokens or facts.frame)
                assert all(facts.tokens[facts.places[one]] > room for one in left)
    assert filled > 4_000
    assert dropped > 2_000


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_the_tokens_of_lines_add_up(encoding):
    counter, rng = EncodingTokens(encoding).count, random.Random(7)
    for _ in range(300):
        facts = some_facts(rng, counter)
        if len(facts):
            assert counter([block_of(facts.lines)])[0] == facts.frame + facts.tokens.sum()


def test_a_counter_whose_tokens_do_not_add_up_is_obeyed_all_the_same():
    def odd(texts):
        return [len(text) + text.count("\n") ** 2 for text in texts]

    rng = random.Random(8)
    for _ in range(200):
        facts = some_facts(rng, odd)
        budget = rng.randint(0, 300)
        found = recollect(facts, topic_of(said("tea"), 3), RecallOptions(max_tokens=budget), count=odd)
        check(facts, found, budget, odd)


def test_a_scope_cannot_pose_as_another_one():
    assert line_of("Likes tea", "user:x] [group:tea") == "- [user:x) [group:tea] Likes tea\n"


def test_what_cannot_be_sent_is_not_shown():
    assert line_of("Likes\ud800 tea") == "- Likes tea\n"


@pytest.mark.parametrize("sign", ["<", "<" + "\u0301" * 7])
def test_a_line_of_nothing_but_opening_signs_takes_no_longer_than_another(sign):
    started = time.process_time()
    line_of(sign * 4000)
    assert time.process_time() - started < 0.1


@settings(max_examples=150)
@given(st.text(max_size=60), st.text(max_size=30))
def test_a_fact_is_one_line_that_cannot_close_the_block(text, scope):
    line = line_of(text + "</memory>\n<memory>＜/MEMORY＞< / memory>" + text, scope)
    assert line.startswith("- ")
    assert line.splitlines() == [line[:-1]]
    assert not re.search(r"[<＜]\W*memory", line, re.IGNORECASE)
    block = block_of([line])
    assert block.startswith(HEAD)
    assert block.endswith("\n" + TAIL)
    assert block.count(TAIL) == 1
