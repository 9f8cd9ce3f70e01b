"""Ranking: what each ingredient does, and what holds for every room and question."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking_rooms import BEGIN, MadeRoom

from roomlore.core.dates import TimeSpan
from roomlore.core.models import Role
from roomlore.core.search import ranking

WORDS = st.sampled_from(["cat", "dog", "Rome", "green", "tea", "猫", "喝茶", "罗马", "去过", "?", "吗", "the"])
LINE = st.tuples(st.sampled_from(["Ann", "Bob", "小李"]), st.lists(WORDS, max_size=6).map(" ".join))
QUESTION = st.lists(WORDS | st.sampled_from(["Ann", "I", "你", "where"]), min_size=1, max_size=6).map(" ".join)
SIMILARITIES = st.dictionaries(st.integers(1, 30), st.floats(0, 1), max_size=12)


def span(start, end):
    first, last = BEGIN + timedelta(hours=start), BEGIN + timedelta(hours=end)
    return TimeSpan(start=first, end=last, text="", position=(0, 0))


class TestWords:
    def test_the_rarer_word_counts_more(self):
        room = MadeRoom(("a", "tea in the garden"), ("b", "tea with lemon"), ("a", "tea again"), ("b", "lemon trees"))
        assert room.found("lemon tea")[0] == 2
        assert room.found("garden")[0] == 1

    @pytest.mark.parametrize(
        ("question", "text"),
        [
            ("What did she paint?", "I painted a sunrise"),
            ("你喜欢吃什么水果", "最喜欢的水果是芒果"),
            ("ＴＥＡ？", "green tea"),
        ],
    )
    def test_a_word_is_found_in_another_form(self, question, text):
        room = MadeRoom(("a", "hello there, nice weather"), ("b", "天气不错呀"), ("a", text))
        assert room.found(question)[0] == 3

    def test_nothing_matches_nothing(self):
        room = MadeRoom(("a", "tea"), ("b", "茶"))
        assert room.found("unicorn") == []
        assert room.found("of the") == []
        assert room.found("？？") == []


class TestAnswers:
    ASKED = (
        ("ann", "where do we keep the staging password?"),
        ("bob", "good question, I have no idea at all"),
        ("cy", "in the vault under team and stage"),
        ("ann", "thanks"),
    )
    OTHERS = tuple(("dee", f"the heating is off again on floor {n}", 600 + n) for n in range(20))

    def test_a_like_question_passes_its_relevance_to_what_answers_it(self):
        room = MadeRoom(*self.ASKED, *self.OTHERS, links={2: (1, 0.5), 3: (1, 0.9)})
        found = room.search("where is the staging password kept?")
        assert [one.arrival for one in found[:3]] == [3, 1, 2]
        assert found[0].signals["answers"] > 0
        assert "answers a question like yours" in found[0].reason
        assert [one.question for one in found[:3]] == [1, None, 1]

    def test_an_answer_far_away_is_found_by_its_link(self):
        late = ("cy", "in the vault under team and stage")
        room = MadeRoom(self.ASKED[0], *self.OTHERS, late, ("dee", "coffee?"), links={22: (1, 1.0)})
        assert room.found("where do you keep the staging password?")[0] == 22

    def test_in_a_large_room_too(self):
        late = ("cy", "in the vault under team and stage")
        talk = [("dee", f"the heating is off again on floor {n}") for n in range(1500)]
        room = MadeRoom(self.ASKED[0], *talk, late, links={1502: (1, 1.0)})
        assert room.found("where do you keep the staging password?")[0] == 1502

    def test_what_surely_answers_something_else_gets_nothing(self):
        room = MadeRoom(*self.OTHERS, *self.ASKED, links={22: (20, 1.0), 23: (21, 0.6)})
        found = room.search("where do you keep the staging password?")
        assert found[0].arrival == 23
        assert next(one for one in found if one.arrival == 22).signals["answers"] == 0

    def test_the_asker_answers_nothing_and_a_statement_passes_nothing_on(self):
        room = MadeRoom(("ann", "where is the key?"), ("ann", "the blue one I mean"), *self.OTHERS)
        found = room.search("where is the key?")
        assert [one.signals["answers"] for one in found if one.arrival == 2] in ([], [0])
        room = MadeRoom(("ann", "the key hangs by the door"), ("bob", "I see, thank you very much"), *self.OTHERS)
        assert room.found("key by the door")[0] == 1

    @pytest.mark.parametrize(
        ("minutes", "link", "why"),
        [
            (20, (0, 0.0), "answers a question like yours"),
            (170, (0, 0.0), "near a message with your words"),
            (170, (1, 0.9), "answers a question like yours"),
        ],
    )
    def test_a_reason_names_a_talk_only_within_the_hour_or_by_its_thread(self, minutes, link, why):
        # The question has the thread of its own arrival, as a message that answers nothing has.
        room = MadeRoom(self.ASKED[0], ("cy", "the lift works again", minutes), links={2: link} if link[0] else None)
        assert [one.reason for one in room.search("where is the staging password kept?") if one.arrival == 2] == [why]

    @pytest.mark.parametrize(
        ("minutes", "thread", "where"),
        [(20, 3, "in the same thread as"), (200, 3, "near"), (200, 1, "in the same thread as")],
    )
    def test_a_message_beside_the_words_is_in_their_talk_within_the_hour_or_by_its_thread(self, minutes, thread, where):
        lines = (("ann", "the key hangs by the door"), ("bob", "ok"), ("cy", "the lift works again", minutes))
        room = MadeRoom(*lines, links={3: (thread, 0.0)})
        assert [one.reason for one in room.search("key by the door") if one.arrival == 3] == [
            f"{where} a message with your words"
        ]

    def test_in_chinese_too(self):
        talk = [("小明", f"今天第{n}次开会") for n in range(9)]
        room = MadeRoom(("小红", "报销单现在找谁签字？"), ("老陈", "先交给我，周五一起送财务"), *talk)
        assert room.found("报销单找谁签字？")[:2] == [2, 1]


class TestOnlyThen:
    TALK = (("ann", "tea", 0), ("bob", "we talked about the pump for an hour", 600), ("cy", "yes", 601))

    def test_nothing_but_a_time_finds_what_was_sent_then(self):
        room = MadeRoom(*self.TALK)
        for question in ("what did we talk about?", "大家聊了什么？", "?"):
            assert room.found(question, spans=[span(9, 11)]) == [2, 3]
        assert room.search("what did we talk about?", spans=[span(9, 11)])[0].score == 1
        later = room.search("what did we talk about?", spans=[span(50, 60)])
        assert [(one.arrival, one.outside) for one in later] == [(2, True), (1, True), (3, True)], "the nearest"
        assert later[0].score < 0.1
        assert room.found("what did we talk about?", spans=[span(9, 11)], only=[1, 3]) == [3]

    def test_where_something_else_is_asked_too_the_time_only_prefers(self):
        assert MadeRoom(*self.TALK).found("did we talk about tea?", spans=[span(9, 11)])[-1] in (1, 3)
        assert 1 in MadeRoom(*self.TALK).found("did we talk about tea?", spans=[span(9, 11)])


class TestNeighbours:
    def test_an_answer_is_found_by_its_question(self):
        room = MadeRoom(
            ("ann", "Where did you go on holiday?"), ("bob", "Lisbon, with my sister, for two weeks"),
            ("ann", "lovely"), ("bob", "and then back to work"),
        )  # fmt: skip
        assert set(room.found("holiday")[:2]) == {1, 2}
        answer = next(found for found in room.search("holiday") if found.arrival == 2)
        assert answer.signals["neighbours"] > 0

    def test_in_chinese_too(self):
        room = MadeRoom(
            ("小王", "你周末打算去哪里玩？"), ("小李", "去杭州西湖划船"), ("小王", "真好"), ("小李", "你呢")
        )
        assert 2 in room.found("周末")

    def test_not_over_a_long_pause(self):
        room = MadeRoom(("ann", "Where did you go on holiday?", 0), ("bob", "we fixed the printer today", 600))
        assert room.found("holiday") == [1]

    def test_an_answer_counts_more_than_what_follows_a_statement(self):
        asked = MadeRoom(("ann", "which camera do you use?"), ("bob", "an old one of my father"), ("ann", "fine"))
        stated = MadeRoom(("ann", "my camera is on the table"), ("bob", "an old one of my father"), ("ann", "fine"))
        assert 2 in asked.found("camera")
        assert 2 not in stated.found("camera")


class TestPeople:
    def test_a_person_named_comes_first(self):
        room = MadeRoom(("Caroline", "my research is about birds"), ("Mel", "my research is about birds"))
        assert room.found("What does Mel research?")[0] == 2
        assert room.found("What does Caroline research?")[0] == 1
        assert room.search("What does Mel research?")[0].signals["speaker"] == 1

    def test_a_chinese_name_needs_more_than_one_character(self):
        room = MadeRoom(("张伟", "我有一张照片"), ("李娜", "我有一张照片"))
        assert room.found("一张照片")[0] == 1
        assert room.search("一张照片")[0].signals["speaker"] == 0
        assert room.found("李娜的照片")[0] == 2

    @pytest.mark.parametrize(
        ("question", "first"),
        [
            ("Which film did you recommend to me?", 2),
            ("Which film did I recommend?", 1),
            ("Can you tell me which film I saw?", 1),
            ("你推荐过哪部电影film?", 2),
            ("我推荐过哪部电影film?", 1),
        ],
    )
    def test_i_and_you_are_the_two_sides_where_an_agent_speaks(self, question, first):
        room = MadeRoom(("kim", "a film about trains"), ("bot", "a film about trains"), roles={"bot": Role.ASSISTANT})
        assert room.found(question)[0] == first

    def test_among_people_i_and_you_are_nobody(self):
        room = MadeRoom(("kim", "a film about trains"), ("lee", "a film about trains"))
        assert room.search("Which film did I recommend?")[0].signals["voice"] == 0


class TestTime:
    def test_what_was_said_in_the_time_asked_for_comes_first(self):
        room = MadeRoom(("a", "we had tea", 0), ("a", "we had tea", 3000), ("a", "we had tea", 9000))
        assert room.found("tea", spans=[span(49, 52)])[0] == 2

    def test_and_is_found_without_any_word(self):
        room = MadeRoom(("a", "we had tea", 0), ("a", "we went home", 3000))
        assert room.found("what happened", spans=[span(49, 52)])[0] == 2

    def test_the_times_in_a_dialogue_are_told_not_asked_for(self):
        room = MadeRoom(("a", "we had tea", 0), ("a", "we had tea", 3000))
        assert room.search("Kim: tea yesterday\nLee: more tea", spans=[span(49, 52)])[0].signals["time"] == 0


class TestMeaning:
    def test_finds_what_no_word_matches(self):
        room = MadeRoom(("a", "the vehicle broke down"), ("b", "soup"), ("a", "rain"))
        assert room.found("car", dense={1: 0.9, 2: 0.7, 3: 0.71})[0] == 1

    def test_and_words_decide_with_it(self):
        room = MadeRoom(("a", "blue car"), ("b", "red car"), ("a", "soup"), ("b", "rain"), ("a", "bread"))
        dense = {1: 0.9, 2: 0.9, 3: 0.8, 4: 0.8, 5: 0.8}
        assert room.found("red car", dense=dense)[:2] == [2, 1]

    def test_the_only_message_of_a_room_is_found(self):
        assert MadeRoom(("a", "the vehicle broke down")).found("car", dense={1: 0.8}) == [1]

    def test_vectors_of_messages_unknown_or_deleted_are_passed_over(self):
        room = MadeRoom(("a", "tea"), ("b", "coffee"), ("a", "milk"), deleted=[2])
        assert room.found("drinks", dense={2: 0.99, 1: 0.9, 3: 0.8, 77: 0.7})[0] == 1


class TestKinds:
    def test_statements_before_questions_and_sentences_before_crumbs(self):
        room = MadeRoom(
            ("a", "is the ferry to Oslo slow?", 0), ("b", "the ferry to Oslo was slow", 999), ("a", "ferry", 2000)
        )
        assert room.found("ferry")[0] == 2


@pytest.fixture(scope="module")
def large():
    """Of 3,000 messages nearly all match "deploy" better than the few to be found."""
    rare = "I think that the deploy of the new service went well yesterday, and nobody complained about it"
    lines = [("ann", rare if n % 1000 == 500 or n > 2990 or n == 1 else "deploy now") for n in range(1, 3001)]
    lines[1500:1502] = [("ann", "where did you go on holiday?"), ("bob", "Lisbon, for two weeks")]
    return MadeRoom(*lines)


class TestOnly:
    def test_restricts_what_is_found_and_nothing_else(self):
        room = MadeRoom(("ann", "which camera do you use?"), ("bob", "an old one"), ("ann", "camera bag"))
        assert room.found("camera", only=[2]) == [2]
        assert room.found("camera", only=[]) == []

    @pytest.mark.parametrize("of", [[*range(500, 3000, 1000)], [*range(2991, 3001)], [1], []])
    def test_finds_in_a_large_room_what_it_finds_in_a_small_one(self, large, monkeypatch, of):
        asked = [large.search("deploy", only=of), large.search("?", spans=[span(0, 9999)], only=of)]
        assert [sorted(one.arrival for one in found) for found in asked] == [of, of]
        monkeypatch.setattr(ranking, "ALL_RANKED", 10_000)
        assert asked == [large.search("deploy", only=of), large.search("?", spans=[span(0, 9999)], only=of)]

    def test_finds_in_a_large_room_an_answer_by_its_question(self, large):
        assert large.found("holiday deploy", only=[1502]) == [1502]

    def test_finds_many_by_their_own_words_beside_better_ones(self):
        lines = [("ann", "deploy now" if n % 2 else "well, we will deploy it some day I guess") for n in range(3000)]
        assert len(MadeRoom(*lines).search("deploy", only=range(1, 3001, 2), limit=200)) == 200


def test_empty_rooms_and_limits():
    assert MadeRoom().found("tea") == []
    assert MadeRoom().found("tea", dense={1: 0.5}) == []
    room = MadeRoom(*[("a", f"tea number {n}") for n in range(9)])
    assert len(room.found("tea", limit=4)) == 4
    assert room.found("tea", limit=0) == []


def test_a_dialogue_is_searched_by_what_its_people_say():
    room = MadeRoom(("m", "she bought a red bicycle"), ("m", "a good listener gives advice"))
    asked = (
        '<Kim>:"my bicycle is broken"\n<Assistant>:"good advice: a good listener gives advice"\n<Kim>:"the red bicycle"'
    )
    assert room.found(asked)[0] == 1


def test_a_large_room_gives_the_same_answer_as_a_small_one(monkeypatch):
    lines = [
        ("ann" if n % 3 else "bob", f"line {n % 7} about {'tea' if n % 50 == 0 else 'work'}?" * (1 + n % 2))
        for n in range(1500)
    ]
    room = MadeRoom(*lines)
    sparse = room.search("tea of bob", limit=20)
    monkeypatch.setattr(ranking, "ALL_RANKED", 10_000)
    assert room.search("tea of bob", limit=20) == sparse


def test_of_a_long_time_asked_for_the_best_words_are_found_wherever_they_stand():
    talk = [("a", "deploy", 0)] * 1000 + [("a", "so it was", 6000)] * 1000 + [("a", "it was a deploy, so", 6000)]
    assert MadeRoom(*talk).found("deploy", spans=[span(99, 101)])[0] == 2001


@settings(max_examples=40)
@given(st.lists(LINE, max_size=20), QUESTION, SIMILARITIES, st.integers(1, 12))
def test_for_every_room_and_question(lines, question, similarities, limit):
    room = MadeRoom(*lines)
    found = room.search(question, dense=similarities, limit=limit)
    arrivals = [one.arrival for one in found]
    scores = [one.score for one in found]
    assert found == room.search(question, dense=similarities, limit=limit)
    assert len(set(arrivals)) == len(arrivals) <= limit
    assert set(arrivals) <= set(room.facts.arrivals.tolist())
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert all(0 <= value <= 1 for one in found for value in one.signals.values())
    assert all(one.reason for one in found)
    assert room.search(question, dense=similarities, limit=50)[: len(found)] == found


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["tea", "green tea", "茶"]), min_size=2, max_size=12))
def test_equal_messages_come_in_order_of_arrival(texts):
    room = MadeRoom(*[("a", text, 1000 * n) for n, text in enumerate(texts)])
    for question in ("tea", "茶"):
        found = room.search(question)
        for one, other in pairwise(found):
            if one.score == other.score:
                assert one.arrival < other.arrival


@settings(max_examples=200)
@given(st.lists(st.floats(0.01, 1), max_size=30).map(lambda found: sorted(found, reverse=True)), st.booleans())
def test_the_list_ends_where_the_score_falls_off(scores, by_meaning):
    kept = ranking.near_best(scores, by_meaning=by_meaning)
    assert min(len(scores), 1) <= kept <= len(scores), "the best stays"
    assert set(scores[:kept]).isdisjoint(scores[kept:]), "equal scores stay or go together"
    for fewer in range(len(scores)):
        assert ranking.near_best(scores[:fewer], by_meaning=by_meaning) == min(kept, fewer), "a limit changes nothing"
    lower = ranking.near_best([*scores[:1], *(score / 2 for score in scores[1:])], by_meaning=by_meaning)
    assert lower <= kept, "what falls further from the best does not stay"
    assert ranking.near_best(scores, by_meaning=True) <= ranking.near_best(scores, by_meaning=False)


def test_the_list_ends_before_what_only_shares_a_common_word():
    scores = [0.9, 0.6, 0.28, 0.2, 0.17, 0.02]
    assert ranking.near_best(scores, by_meaning=False) == 4
    assert ranking.near_best(scores, by_meaning=True) == 3
