"""The window of a conversation: the hard limit, thresholds, and no message lost between summary and turns."""

import re
from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.errors import BudgetTooSmall, InvalidInput
from roomlore.core.models import Role
from roomlore.core.sessions.session import SessionMessage
from roomlore.core.sessions.window import (
    MAX_TURNS,
    MAX_WINDOW,
    Segment,
    WindowOptions,
    as_text,
    context_of,
    flat,
    show,
    turns_of,
    value_of,
    verbatim,
)
from roomlore_testkit import checkpoint, session

exact = EncodingTokens().count
TEXTS = ["yes", "the deploy of node seven is stuck again", "谁在跑迁移？", "👩‍👩‍👧 \n\n", "", "  x  ", "a\n\n\n b"]


def words(texts) -> list[int]:
    """A counter that people can follow: words, and the ends of lines."""
    return [len(re.findall(r"\S+|\n", text)) for text in texts]


def talk(*texts: str, first: int = 1) -> list[SessionMessage]:
    """Turns of a query and its answer."""
    roles = [Role.USER, Role.ASSISTANT]
    return [
        SessionMessage(arrival=first + n, id=f"m{first + n}", role=roles[n % 2], name="", text=text)
        for n, text in enumerate(texts)
    ]


def segment(messages, *, covers: int | None = None, summary: str = "so far", boundary: int = 0) -> Segment:
    inside = None if covers is None else checkpoint(summary=summary, covers_arrival=covers, covers_through="m0")
    given = session(boundary=boundary, checkpoint=inside, next_arrival=len(messages) + 1)
    return Segment(given, boundary, tuple(messages))


def turns(count: int) -> list[SessionMessage]:
    return talk(*(f"{half} {n}" for n in range(count) for half in ("ask", "say")))


def test_everything_that_fits_is_shown():
    shown = show(segment(turns(3)), "", WindowOptions(window=1_000), words)
    assert (
        shown.history == "User: ask 0\nAssistant: say 0\nUser: ask 1\nAssistant: say 1\nUser: ask 2\nAssistant: say 2"
    )
    assert shown.tokens == words([shown.history])[0]
    assert (len(shown.turns), shown.lost, shown.truncated) == (3, False, False)


@pytest.mark.parametrize(
    ("covers", "recent", "first"),
    [(0, 0, 0), (4, 0, 2), (4, 8, 0), (4, 3, 2), (10, 0, 5), (10, 2, 3), (3, 0, 1), (9, 1, 4)],
)
def test_all_that_is_not_covered_and_never_fewer_than_the_recent_turns(covers, recent, first):
    found = verbatim(turns_of(turns(5)), covered=covers, recent_turns=recent)
    assert [turn.first for turn in found] == [1 + 2 * n for n in range(first, 5)]


def test_the_oldest_whole_turns_go_first_and_the_summary_stays():
    whole = segment(turns(5), covers=2)
    line = 7  # "User: ask 1" and "Assistant: say 1", and the end of each line
    head = words(["Summary: so far\n\n"])[0]
    for kept in range(5):
        window = head + line * kept + 1
        shown = show(whole, "?", WindowOptions(window=window + line // 2, recent_turns=0), words)
        assert len(shown.turns) == min(kept, 4)
        assert shown.history.startswith("Summary: so far\n")
        assert shown.lost == shown.truncated == (kept < 4)
        assert shown.tokens <= window + line // 2


def test_fewer_turns_than_asked_for_are_truncated_though_nothing_is_lost():
    shown = show(segment(turns(5), covers=8), "", WindowOptions(window=22, recent_turns=4), words)
    assert 0 < len(shown.turns) < 4
    assert (shown.lost, shown.truncated) == (False, True)


def test_recent_turns_that_are_not_there_are_not_missed():
    shown = show(segment(turns(2)), "", WindowOptions(window=1_000, recent_turns=8), words)
    assert not shown.truncated


def test_summary_and_query_alone():
    whole = segment(turns(2), covers=4)
    needed = words(["Summary: so far\n"])[0] + words(["one two"])[0]
    assert show(whole, "one two", WindowOptions(window=needed, recent_turns=0), words).tokens == needed
    with pytest.raises(BudgetTooSmall, match="summary"):
        show(whole, "one two", WindowOptions(window=needed - 1, recent_turns=0), words)
    with pytest.raises(BudgetTooSmall, match="query alone"):
        show(whole, "one two three", WindowOptions(window=2), words)
    with pytest.raises(BudgetTooSmall, match="query alone"):
        show(segment(turns(2)), "one two three", WindowOptions(window=2), words)


def test_a_turn_that_goes_on_after_the_checkpoint_is_not_dropped_as_covered():
    late = SessionMessage(arrival=11, id="m11", role=Role.ASSISTANT, name="", text="late", turn_id="t")
    early = SessionMessage(arrival=1, id="m1", role=Role.USER, name="", text="early", turn_id="t")
    messages = [early, *talk(*["a b"] * 9, first=2), late]
    shown = show(segment(messages, covers=10), "", WindowOptions(recent_turns=0), words)
    assert shown.history.startswith("Summary: so far\n\nUser: early\n")
    assert shown.history.endswith("Assistant: late")
    tight = show(segment(messages, covers=10), "", WindowOptions(window=20, recent_turns=0), words)
    assert (tight.lost, tight.truncated) == (False, False)
    assert "early" not in tight.history
    assert tight.history.endswith("Assistant: late")


@st.composite
def rooms(draw):
    said = draw(
        st.lists(
            st.tuples(st.sampled_from(list(Role)), st.sampled_from(TEXTS), st.sampled_from([None, None, "t1", "t2"])),
            max_size=14,
        )
    )
    messages = [
        SessionMessage(arrival=n, id=f"m{n}", role=role, name="", text=text, turn_id=turn)
        for n, (role, text, turn) in enumerate(said, 1)
    ]
    covers = draw(st.none() | st.integers(0, len(messages)))
    return segment(messages, covers=covers, summary=draw(st.sampled_from(["so far", "备份都完成了", "a\n\n"])))


LINES_THAT_MERGE = segment(
    [
        SessionMessage(
            arrival=n, id=f"m{n}", role=Role.USER, name="", text=text, turn_id="t1" if n in (5, 7, 8) else None
        )
        for n, text in enumerate([*["yes"] * 5, "  x  ", "a\n\n\n b", "a\n\n\n b"], 1)
    ]
)
"""As one text they have fewer tokens than their lines one by one."""


@given(rooms(), st.integers(1, 120), st.integers(0, 6), st.sampled_from(["", "why?", "为什么？"]))
@example(LINES_THAT_MERGE, 37, 0, "为什么？").via("dropped a turn that fits")
def test_the_guard_holds_and_drops_no_more_than_it_must(whole, window, recent, query):
    options = WindowOptions(window=window, recent_turns=recent)
    tongue, kept = whole.language(), whole.session.checkpoint
    summary = kept.summary if kept else ""
    asked = exact([query])[0] if query else 0
    alone = exact([as_text(summary, [], tongue)])[0] if summary else 0
    try:
        shown = show(whole, query, options, exact)
    except BudgetTooSmall:
        assert asked + alone > window
        return
    covered, turns = whole.session.covered, turns_of(whole.messages)
    wanted = verbatim(turns, covered=covered, recent_turns=recent)
    droppable = [[m for m in turn.messages if m.arrival <= covered] for turn in wanted]
    droppable += [[m for m in turn.messages if m.arrival > covered] for turn in wanted]
    parts = [part for part in droppable if part]
    kept = {m.arrival for m in flat(shown.turns)}
    dropped = sum(part[0].arrival not in kept for part in parts)
    rests = [sorted(chain.from_iterable(parts[n:])) for n in range(len(parts) + 1)]
    assert flat(shown.turns) == rests[dropped]
    assert shown.history == as_text(summary, rests[dropped], tongue)
    assert shown.tokens == asked + (exact([shown.history])[0] if shown.history else 0) <= window
    assert shown.lost == (not {m.arrival for m in whole.uncovered()} <= kept)
    entire = sum({m.arrival for m in turn.messages} <= kept for turn in turns)
    assert shown.truncated or entire >= min(recent, len(turns))
    if dropped:
        one_more = as_text(summary, rests[dropped - 1], tongue)
        assert asked + (exact([one_more])[0] if one_more else 0) > window, "something was dropped that had room"


@given(rooms(), st.integers(20, 120), st.floats(0.01, 1))
def test_a_checkpoint_is_asked_for_from_the_threshold_on_and_where_anything_is_missing(whole, window, threshold):
    options = WindowOptions(window=window, threshold=threshold, recent_turns=2)
    try:
        shown = show(whole, "?", options, exact)
    except BudgetTooSmall:
        return
    context = context_of(whole, shown, options, value_of(whole, recent_turns=2))
    assert context.token_ratio == context.estimated_tokens / window <= 1
    assert context.should_checkpoint_summary == (context.token_ratio >= threshold or context.truncated)
    assert all(message.text in context.full_history for message in whole.uncovered())
    assert context.covers_through == ([*(m.id for m in whole.uncovered())] or [covered_through(whole)])[-1]


def covered_through(whole: Segment) -> str | None:
    return whole.session.checkpoint.covers_through if whole.session.checkpoint else None


@pytest.mark.parametrize("threshold", [0, -1, 1.0001, float("nan"), "0.5", None, True])
def test_thresholds_that_make_no_sense(threshold):
    with pytest.raises(InvalidInput, match="token_threshold_ratio"):
        WindowOptions(threshold=threshold)


@pytest.mark.parametrize("recent", [-1, MAX_TURNS + 1, 1.5, "8", None, True])
def test_turns_that_make_no_sense(recent):
    with pytest.raises(InvalidInput, match="recent_turns"):
        WindowOptions(recent_turns=recent)


@pytest.mark.parametrize("window", [0, -5, MAX_WINDOW + 1, 16e3, "16000", None, True])
def test_windows_that_make_no_sense(window):
    with pytest.raises(InvalidInput, match="model_context_window"):
        WindowOptions(window=window)


def test_what_lies_at_the_edge_is_taken():
    WindowOptions(threshold=1, recent_turns=0, window=1)
    WindowOptions(threshold=0.0001, recent_turns=MAX_TURNS, window=MAX_WINDOW)
