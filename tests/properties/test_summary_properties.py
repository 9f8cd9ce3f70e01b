"""Whatever is said in whatever script, a summary keeps its budget and cuts no character."""

import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.errors import BadModelOutput
from roomlore.core.summary import accepted, completed, extract, sentence_parts
from roomlore.core.summary.sentences import SpeakerText

count = EncodingTokens().count

PIECES = (
    "I am allergic to nuts",
    "on Monday we went to Leeds",
    "Thanks",
    "我对花生过敏",
    "昨天去了《流浪地球》首映",
    "但是",
    "因为下雨",
    "👨‍👩‍👧",
    "🇨🇳",
    "👍🏽",
    "e\u0301te\u0301",
    "각",
    "कि",
    "Z\u200d",
    "```",
    "x = {1: 2}",
    "User: hi",
    "用户：你好",
    "- ",
    "a" * 50,
    " ",
    ", ",
    "，",
    ". ",
    "。",
    "! ",
    "？",
    "\n",
    "\r\n",
    ": ",
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
SAID = st.lists(st.builds(SpeakerText, st.sampled_from(["User", "用户", "Ann: B", "", "🧑🏽‍🚀"]), TEXTS), max_size=8)


def characters(text: str) -> set[str]:
    return set(regex.findall(r"\X", text))


@settings(max_examples=80)
@given(TEXTS, SAID, st.integers(0, 80))
def test_a_summary_keeps_its_budget_and_its_characters(previous: str, said: list[SpeakerText], budget: int) -> None:
    summary = extract(previous, said, max_tokens=budget, count=count)
    assert count([summary])[0] <= budget
    assert summary == extract(previous, said, max_tokens=budget, count=count)
    texts = [previous, *(part for one in said for part in (one.speaker, one.text))]
    given_ = characters("\n".join([*texts, *map(str.title, texts)]))
    assert characters(summary) - given_ <= {".", "。", " ", "\n", ":"}


@settings(max_examples=50)
@given(SAID, st.integers(100, 300))
def test_something_is_told_where_something_was_said(said: list[SpeakerText], budget: int) -> None:
    assert bool(extract("", said, max_tokens=budget, count=count)) == any(one.text.strip() for one in said)


@settings(max_examples=50)
@given(TEXTS, st.lists(SAID, min_size=1, max_size=4), st.integers(10, 60))
def test_a_summary_of_a_summary_keeps_its_budget(previous: str, rounds: list[list[SpeakerText]], budget: int) -> None:
    for said in rounds:
        previous = extract(previous, said, max_tokens=budget, count=count)
        assert count([previous])[0] <= budget


@settings(max_examples=80)
@given(TEXTS, st.integers(0, 60))
@example("I am allergic to nutsI am allergic to nuts. 。I am allergic to nuts", 15)
def test_an_accepted_answer_keeps_its_budget_and_its_characters(answer: str, budget: int) -> None:
    try:
        summary = accepted(answer, max_tokens=budget, count=count)
    except BadModelOutput:
        return
    assert count([summary])[0] <= budget
    assert summary == summary.strip()
    assert characters(summary) <= characters(answer)
    assert all(part.strip() in answer for part in sentence_parts(summary))


@settings(max_examples=80)
@given(TEXTS, st.lists(TEXTS, max_size=6), st.integers(16, 60))
def test_a_completed_summary_keeps_its_budget(answer: str, texts: list[str], budget: int) -> None:
    try:
        summary = accepted(answer, max_tokens=budget, count=count)
    except BadModelOutput:
        return
    said = [SpeakerText("Ann", text) for text in texts]
    full = completed(summary, "", said, max_tokens=budget, count=count)
    assert count([full])[0] <= budget
    assert full == completed(summary, "", said, max_tokens=budget, count=count)
