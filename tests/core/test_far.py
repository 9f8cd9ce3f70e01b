"""Messages that need the room's past, and how hits join their thread."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.analysis import Participants, analyse
from roomlore.core.far import (
    EVIDENCE,
    EVIDENCE_WEIGHTS,
    MIN_NEED,
    NEED,
    NEED_WEIGHTS,
    NOTHING_FAR,
    Earlier,
    Past,
    asks,
    evidence_signs,
    may_need,
    need,
    query_of,
    signs,
    weigh,
)
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.mentions import NOBODY
from roomlore.core.models import Entry, Link, LinkKind, Role, Room, StoredMessage, Target
from roomlore.core.search.facts import before
from roomlore.core.search.hits import MessageFacts
from roomlore.core.search.ranking import Ranked

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
PEOPLE = Participants.of({"u1": "Marek", "u2": "Ilse", "nova": "Nova", "u3": "小吴"})


def target(text: str, *, minutes: float = 600, new: float = 0.9, window: int = 20, **fields) -> Target:
    fields = {"id": "m", "room_id": "r", "sender_id": "u9", "sent_at": NOON, "text": text, "arrival": 500} | fields
    message = StoredMessage(**fields)
    link = Link(kind=LinkKind.NEW, thread=500, new_probability=new)
    return Target(
        room=Room(tenant="t", room_id="r", created_at=NOON),
        entry=Entry(message=message, features=analyse(message, PEOPLE), link=link),
        window_messages=window,
        window_tokens=0,
        previous_at=NOON - timedelta(minutes=minutes),
    )


@pytest.mark.parametrize(
    "text",
    [
        "When did Marek say the boiler would be serviced?",
        "What was the name of the plumber Ilse recommended last month?",
        "As of now, who has the spare keys?",
        "@Nova do you remember what we agreed about the bicycles?",
        "Which bakery did we order the cake from in June?",
        "Give me the current guest list, please.",
        "小吴上次推荐的那家店叫什么？",
        "我们之前定的是哪一天搬家？",
        "现在备用钥匙在谁那里？",
        "@Nova 我跟你说过我对什么过敏？",
    ],
)
def test_a_question_about_the_room_needs_its_past(text):
    assert need(target(text)) > MIN_NEED


@pytest.mark.parametrize(
    "text",
    [
        "@Nova how do I get a stain out of a wool carpet?",
        "@Nova I am trying to write a cover letter. Can you help me make it shorter?",
        "Good morning, what a lovely day!",
        "Does anyone know a good way to peel garlic?",
        "Anybody else getting a timeout from the registry? docker pull fails here",
        "I just planted tomatoes on the balcony.",
        "@Nova 怎么洗掉羊毛地毯上的污渍？",
        "@Nova 你好，最近压力有点大，你有什么建议吗？",
        "大家早上好，今天天气真好！",
        "有人知道怎么快速剥蒜吗？",
    ],
)
def test_what_starts_something_new_needs_nothing_far(text):
    assert need(target(text, minutes=30)) < MIN_NEED


def test_only_what_a_person_said_after_others_needs_anything():
    asked = "When did Marek say the boiler would be serviced?"
    assert need(target(asked)) > MIN_NEED
    assert need(target(asked, window=0)) == 0
    for role in (Role.ASSISTANT, Role.SYSTEM, Role.TOOL):
        assert need(target(asked, role=role)) == 0


STATEMENTS = [
    "I just planted tomatoes on the balcony.",
    "Right now our latest status is final, and you said so on Monday the 3rd of May 2024.",
    "目前我们最新的状态是周一你说的那样，2024年5月3日。",
    "Marek: it is done\nIlse: as of now it is ours\nMarek: then we are done on Friday",
    "@Nova 小吴 and Ilse wait at https://example.org/a/b for us",
    "now " * 300,
    "现在" * 400,
    "",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_that_is_hardly_read_would_need_nothing(text):
    told = [
        (may_need(said), need(said))
        for minutes in (0, 1, 30, 600, 6_000)
        for new in (0.0, 0.3, 0.7, 1.0)
        if not asks((said := target(text, minutes=minutes, new=new)).entry)
    ]
    assert [needed for may, needed in told if not may and needed >= MIN_NEED] == []


def test_most_statements_are_hardly_read():
    said = target("Good morning, what a lovely day!", minutes=1, new=0.6)
    assert not may_need(said)
    assert may_need(target("Marek still has the latest keys", minutes=6_000, new=1.0))


def test_every_sign_has_a_weight():
    assert len(signs(target("hm"))) == len(NEED) == len(NEED_WEIGHTS) - 1
    assert len(EVIDENCE) == len(EVIDENCE_WEIGHTS) - 1


@pytest.mark.parametrize(
    "text", ["", " ", "a" * 300_000, "what " * 60_000, "有什么" * 90_000, "x: " * 90_000, "`" * 200_000]
)
def test_signs_of_any_text_come_quickly(text):
    asked = target(text)
    started = time.perf_counter()
    values = signs(asked)
    assert time.perf_counter() - started < 0.5
    assert all(np.isfinite(values))


def test_the_query_leaves_out_who_is_addressed():
    assert query_of(target("@Nova what did we decide?").entry) == "what did we decide?"
    assert query_of(target("Ilse: what did we decide?").entry) == "what did we decide?"
    assert query_of(target("what did Ilse decide: yes or no?").entry) == "what did Ilse decide: yes or no?"
    assert query_of(target("", metadata={"caption": "the broken boiler"}).entry) == "the broken boiler"


def facts(parents: dict[int, int], size: int = 60) -> MessageFacts:
    """Of messages 1 to `size`, a minute apart."""
    arrivals = np.arange(1, size + 1)
    nothing = np.zeros(size, np.int64)
    above = np.array([parents.get(arrival, 0) for arrival in arrivals.tolist()])
    return MessageFacts(
        revision=1,
        sender_ids=("a",),
        sender_names=("A",),
        naming=NOBODY,
        arrivals=arrivals,
        sent_at=arrivals * 60_000_000,
        senders=nothing,
        roles=nothing,
        lengths=np.full(size, 8),
        questions=np.zeros(size, np.bool_),
        parents=above,
        parent_odds=np.where(above > 0, 0.9, 0.0),
        threads=arrivals,
    )


def hits(*arrivals: int) -> tuple[Ranked, ...]:
    return tuple(
        Ranked(arrival=arrival, score=0.8 / place, signals={}, reason="") for place, arrival in enumerate(arrivals, 1)
    )


def thread(**thread_candidates: float) -> Link:
    found = {int(name[1:]): chance for name, chance in thread_candidates.items()}
    return Link(kind=LinkKind.NEW, thread=500, thread_candidates=ThreadCandidates.of(list(found), list(found.values())))


def test_the_turn_of_a_hit_comes_with_it():
    found = weigh(thread(), Earlier(ranked=hits(30, 12), facts=facts({30: 29, 13: 12, 14: 12})), 0.9)
    assert set(found.chances) == {30, 12, 29, 13, 14}
    assert found.reasons[30] == found.reasons[12] == "answers the question"
    assert found.reasons[29] == "answers the question (a message found replies to it)"
    assert found.reasons[13] == found.reasons[14] == "answers the question (it replies to a message found)"
    assert found.chances[30] > found.chances[12] > found.chances[13]


def test_a_hit_that_answers_a_hit_is_there_once_and_as_a_hit():
    found = weigh(thread(), Earlier(ranked=hits(30, 29), facts=facts({30: 29})), 0.9)
    assert found.reasons == {30: "answers the question", 29: "answers the question"}


def test_the_surer_it_is_that_something_far_is_needed_the_less_the_thread_counts():
    earlier = Earlier(ranked=hits(5), facts=facts({}))
    unsure, sure = (weigh(thread(m55=0.9), earlier, needed) for needed in (0.31, 0.99))
    assert unsure.chances[55] > sure.chances[55]
    assert unsure.chances[5] < sure.chances[5]
    assert 55 not in unsure.reasons
    assert set(unsure.choose(20)) == {55}
    assert set(sure.choose(20)) == {5, 55}


def test_what_the_platform_says_of_the_thread_holds_whatever_is_needed():
    link = Link(
        kind=LinkKind.PLATFORM,
        thread=55,
        parent=58,
        parent_probability=1.0,
        thread_candidates=ThreadCandidates.of([55, 58], [0.9, 1.0]),
    )
    found = weigh(link, Earlier(ranked=hits(30, 12), facts=facts({30: 29})), 0.9)
    assert found.chances[58] == 1.0
    assert found.chances[55] >= 0.9
    assert not {55, 58} & set(found.reasons)
    assert {55, 58} <= set(found.choose(20))


def test_where_search_finds_nothing_the_thread_is_left():
    found = weigh(thread(m55=0.9, m58=0.4), Earlier(ranked=(), facts=before(facts({}), 1)), 0.5)
    assert set(found.choose(20)) == {55, 58}
    assert found.reasons == {}
    assert NOTHING_FAR.choose(20) == {}


def test_where_the_past_is_hardly_needed_every_hit_may_answer_the_best_first():
    """Right after a talk any message may belong to its thread, and the best hit may be the likeliest parent of a
    message that starts something new. Neither is a reason to leave it out."""
    link = replace(thread(m30=0.6, m55=0.9), parent=30, parent_probability=0.01)
    found = weigh(link, Earlier(ranked=hits(30, 12), facts=facts({13: 12})), 0.1)
    assert found.reasons == dict.fromkeys((30, 12), "may answer the question")
    assert list(found.answers) == [30, 12]
    assert list(weigh(link, Earlier(ranked=hits(12, 30), facts=facts({})), 0.1).answers) == [12, 30]


def test_the_surer_the_need_the_more_is_shown():
    chances = {arrival: 0.4 / arrival for arrival in range(1, 60)}
    sizes = [len(Past(needed, chances).choose(60)) for needed in (0.0, 0.3, 0.6, 0.9)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[3]


@given(
    chances=st.dictionaries(st.integers(1, 400), st.floats(0, 1), max_size=90),
    needed=st.floats(MIN_NEED, 1),
    most=st.integers(1, 30),
)
def test_never_more_is_chosen_than_may_be_and_always_the_likeliest(chances, needed, most):
    chosen = Past(needed, chances).choose(most)
    assert len(chosen) <= most
    assert all(chances[arrival] == chance for arrival, chance in chosen.items())
    left = [chance for arrival, chance in chances.items() if arrival not in chosen]
    assert not chosen or not left or min(chosen.values()) >= max(left) or len(chosen) < most
    assert bool(chosen) == any(chance > 0 for chance in chances.values())


@given(
    places=st.lists(st.integers(1, 60), unique=True, max_size=40),
    above=st.dictionaries(st.integers(2, 60), st.integers(1, 59), max_size=30),
    thread_candidates=st.dictionaries(st.integers(1, 60), st.floats(0.02, 1), max_size=30),
    needed=st.floats(MIN_NEED, 1),
)
def test_all_that_is_weighed_was_there_before_and_has_a_probability(places, above, thread_candidates, needed):
    parents = {child: parent for child, parent in above.items() if parent < child}
    link = Link(
        kind=LinkKind.NEW,
        thread=500,
        thread_candidates=ThreadCandidates.of(list(thread_candidates), list(thread_candidates.values())),
    )
    earlier = Earlier(ranked=hits(*places), facts=facts(parents))
    found = weigh(link, earlier, needed)
    assert set(evidence_signs(link, earlier)) == set(found.chances)
    assert set(found.chances) >= {*places, *thread_candidates}
    assert all(1 <= arrival <= 60 and 0 <= chance <= 1 for arrival, chance in found.chances.items())
    assert found.reasons.keys() <= found.chances.keys()
    few = replace(earlier, ranked=earlier.ranked[:20])
    whole = evidence_signs(link, few)
    assert evidence_signs(link, few, hits_alone=True) == {hit.arrival: whole[hit.arrival] for hit in few.ranked}


def test_facts_before_a_message_hold_nothing_later():
    known = facts({30: 29})
    early = before(known, 30)
    assert early.arrivals.tolist() == list(range(1, 30))
    assert early.parents.size == early.lengths.size == early.threads.size == 29
    assert before(known, 1).arrivals.size == 0
    assert before(known, 900).arrivals.size == 60
