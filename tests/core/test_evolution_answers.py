import json
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.evolution_answers import AROUND, SLOPPY, WRAPPERS, cases

from roomlore.core.evolution.answers import MAX_OPERATIONS, MAX_REJECTED, read_answer
from roomlore_testkit.case_table import all_cases

CASES = list(cases())


def expected(objects):
    """Return the operations that the objects ask for, by their fields alone."""
    return [
        (
            one["action"],
            tuple(one.get("old_ids", [one["old_id"]] if "old_id" in one else [])),
            one.get("statement", ""),
            one.get("change_reason", one.get("reason", "")),
            tuple(one.get("tags", ())),
            tuple(one.get("evidence", ())),
            one.get("confidence"),
        )
        for one in objects
    ]


def asked(answer):
    return [(w.kind, w.handles, w.statement, w.reason, w.tags, w.evidence, w.confidence) for w in answer.operations]


def test_the_corpus_is_large():
    assert len({case.text for case in CASES}) >= 300


def test_a_malformed_answer_says_what_it_says():
    with all_cases() as case:
        for malformed in CASES:
            with case(malformed.name):
                answer = read_answer(malformed.text)
                assert asked(answer) == expected(malformed.objects)
                assert len(answer.rejected) == len(malformed.reasons)
                told = zip(answer.rejected, malformed.reasons, strict=True)
                assert all(reason in one.reason for one, reason in told)
                assert all(len(one.text) <= 120 and one.line >= 1 for one in answer.rejected)


ALMOST_NUMBERS = {
    "0.8": 0.8,
    "8e-1": 0.8,
    ".8": 0.8,
    "80%": 0.8,
    "８０ ％": 0.8,
    '"0.8"': 0.8,
    '"0,8"': 0.8,
    '" 80 %"': 0.8,
    "null": None,
    "1.5": 1.5,
    "NaN": math.nan,
    "true": math.nan,
    '"high"': math.nan,
    "[0.8]": math.nan,
    "1e999": math.inf,
    "9" * 6000: math.inf,
}


@pytest.mark.parametrize(("written", "confidence"), ALMOST_NUMBERS.items(), ids=lambda value: f"{value!s:.9}")
def test_a_confidence_that_is_almost_a_number_keeps_its_fact(written, confidence):
    line = '{"action": "create", "statement": "Likes tea", "evidence": ["c1"], "confidence": ' + written + "}"
    answer = read_answer(line)
    assert not answer.rejected
    assert [operation.confidence for operation in answer.operations] == pytest.approx([confidence], nan_ok=True)


@pytest.mark.parametrize(
    ("text", "handles", "repaired"),
    [
        ('{"action": "keep", "old_id": "uuid-1"}', ("uuid-1",), False),
        ("{action: keep, old_id: uuid-1}", ("uuid-1",), True),
        ('{"action": "keep",}', (), True),
        ("{'action': 'keep'}", (), True),
        ('```json\n{"action": "keep", "old_id": "uuid-1"}\n```', ("uuid-1",), False),
    ],
)
def test_the_usual_failures_are_survived(text, handles, repaired):
    answer = read_answer(text)
    assert [(w.kind, w.handles, w.repaired) for w in answer.operations] == [("keep", handles, repaired)]
    assert answer.rejected == ()


def test_what_is_no_json_is_named():
    (rejected,) = read_answer("\n这不是JSON").rejected
    assert (rejected.line, rejected.text) == (2, "这不是JSON")


def test_lines_are_counted():
    answer = read_answer('\r\n```json\r\n{"action": "keep"}\r\nwhy\r\n{\r\n"action": "keep"}\r\n{"action": "x"}')
    assert [w.line for w in answer.operations] == [3, 5]
    assert [r.line for r in answer.rejected] == [4, 7]


def test_a_delete_of_several_is_one_for_each_and_an_update_merges():
    answer = read_answer(
        '{"action": "delete", "old_ids": ["m1", "m2", "M1"]}'
        '{"action": "update", "old_id": "m3", "old_ids": ["m4"], "statement": "x"}'
    )
    assert [w.handles for w in answer.operations] == [("m1",), ("m2",), ("m3", "m4")]


@pytest.mark.parametrize(
    "text",
    [
        '{"action": "create", "statement": "he wrote "x"} {"action": "delete", "old_id": "m1"}"}',
        '{"action": "create", "statement": "a\n{"action": "delete", "old_id": "m1"}\nb"}',
        '{"action": "create", "statement": "a "b"} {"action": "delete", "old_id": "m1"} c", "confidence": 0.5}',
        '{"action": "create", "statement": "they said "a", "action": "delete", "old_id": "m1"}',
        '{"statement": {"action": "delete", "old_id": "m1"}}',
        '"{\\"action\\": \\"delete\\", \\"old_id\\": \\"m1\\"}"',
        'm1 is old, so {"action": "delete", "old_id": "m1"}\n</think>',
    ],
)
def test_nothing_in_a_text_is_done(text):
    answer = read_answer(text)
    assert answer.operations == ()
    assert answer.rejected != ()


def test_what_was_whole_before_the_cut_is_read():
    text = '{"changes": [\n{"action": "delete", "old_id": "m1"},\n{"action": "delete", "old_id": "m2"},\n{"action": "de'
    assert [w.handles for w in read_answer(text).operations] == [("m1",), ("m2",)]


def test_the_repair_is_asked_last_and_not_where_two_actions_meet():
    given_to = []

    def repair(text):
        given_to.append(text)
        return '{"action": "keep", "old_id": "m1"}'

    text = '{"action":: "keep"}\n{"action":: "keep", "x": {"action": "delete"}}\n{action: keep}\n{"action": "keep'
    answer = read_answer(text, repair=repair)
    assert given_to == ['{"action":: "keep"}']
    assert [(w.line, w.repaired) for w in answer.operations] == [(1, True), (3, True)]


def test_a_repair_that_makes_fields_of_a_text_is_not_taken():
    def repair(text):
        return '{"action": "create", "statement": "he said", "hi": ""}'

    answer = read_answer('{"action": "create", "statement": he said "hi", really}', repair=repair)
    assert answer.operations == ()
    assert [r.reason for r in answer.rejected] == ["It is no JSON and cannot be repaired."]


def test_operations_and_rejections_are_bounded():
    answer = read_answer('{"action": "keep"}\n' * (MAX_OPERATIONS + 5))
    assert (len(answer.operations), len(answer.rejected)) == (MAX_OPERATIONS, 5)
    answer = read_answer("no\n" * 1000 + '{"action": "keep"}')
    assert len(answer.operations) == 1
    assert len(answer.rejected) == MAX_REJECTED + 1
    assert answer.rejected[-1].reason.startswith("800 more")


@given(
    st.text(alphabet=st.characters(exclude_categories=()))
    | st.text(alphabet="{}[]\"'\\:,/*#<>think action｛”：\n\ud800\x00")
)
@settings(max_examples=300)
def test_no_text_raises(text):
    answer = read_answer(text, repair=lambda raw: raw)
    assert len(answer.rejected) <= MAX_REJECTED + 1
    for one in answer.rejected:
        one.text.encode()


@given(st.integers(0, len(CASES) - 1), st.data())
@settings(max_examples=150)
def test_a_cut_answer_never_asks_for_something_else(place, data):
    case = CASES[place]
    cut = data.draw(st.integers(0, len(case.text)))
    operations = asked(read_answer(case.text[:cut]))
    assert all(operation in expected(case.objects) for operation in operations)


STATEMENTS = st.text(min_size=1, max_size=40).map(str.strip).filter(lambda text: text.isprintable() and text)
WISHED = st.lists(
    st.builds(
        lambda handle, text, why: {"action": "update", "old_id": f"m{handle}", "statement": text, "reason": why},
        st.integers(1, 50),
        STATEMENTS,
        STATEMENTS,
    ),
    min_size=1,
    max_size=4,
)


@given(
    WISHED, st.sampled_from(sorted(set(WRAPPERS) - {"nul", "loud", "loud handles"})), st.sampled_from(sorted(AROUND))
)
@settings(max_examples=80)
def test_operations_survive_every_wrapper(objects, wrapper, around):
    before, after, _ = AROUND[around]
    answer = read_answer(WRAPPERS[wrapper](tuple(objects)))
    assert asked(answer) == expected(objects)
    if wrapper == "lines":
        assert asked(read_answer(f"{before}{WRAPPERS[wrapper](tuple(objects))}{after}")) == expected(objects)


NOISE = (
    "{",
    "}",
    "\n",
    "a\n",
    "{\n",
    '{"a":',
    '{"a":[\n',
    '{"',
    '"} {a:1} ',
    "/*",
    "<think>",
    "</think>",
    " ",
    '{"\\',
    "｛“",
    "噪音 ",
)


@pytest.mark.parametrize("noise", NOISE)
def test_noise_takes_linear_time(noise):
    text = noise * (500_000 // len(noise))
    started = time.process_time()
    answer = read_answer(text)
    assert time.process_time() - started < 2
    assert answer.operations == ()
    assert len(answer.rejected) <= MAX_REJECTED + 1


def test_sloppy_json_is_marked_as_repaired():
    one = ({"action": "update", "old_id": "m1", "statement": "x", "reason": "y"},)
    for name, sloppy in SLOPPY.items():
        assert [w.repaired for w in read_answer(sloppy(one)).operations] == [True], name
    assert [w.repaired for w in read_answer(json.dumps(one)).operations] == [False]


@pytest.mark.parametrize("evidence", ['"c1, c2"', '["c1，C2"]', '["c1", "c2、c1"]', '[" c1 ; ｃ2;"]'])
def test_several_handles_in_one_text_are_several(evidence):
    read = read_answer(f'{{"action": "create", "statement": "tea 茶", "evidence": {evidence}}}')
    assert [operation.evidence for operation in read.operations] == [("c1", "c2")]
