"""Reading a question: its words' worth, the people it names, the voice, the dialogue."""

from datetime import UTC, datetime
from itertools import product
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking_rooms import MadeRoom

from roomlore.core.dates.spans import time_spans
from roomlore.core.mentions import sounds_like_agent, utterances
from roomlore.core.search.query import MAX_TERMS, read_query
from roomlore.core.text import terms

ROOM = MadeRoom(("Kim Lee", "hi"), ("Ann Lee", "hi"), ("小王", "嗨"))


def read(text):
    return read_query(text, facts=ROOM.facts)


class TestTerms:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("She was painting Kim's houses", ["paint", "kim", "hous"]),
            ("我喜欢芒果", ["喜", "欢", "芒", "果", "我喜", "喜欢", "欢芒", "芒果"]),
            ("用 Redis 做缓存", ["用", "redi", "做", "缓", "存", "做缓", "缓存"]),
            ("v1.2 of net/http, snake_case", ["v1", "2", "net", "http", "snake", "case"]),
            ("don't O’Brien’s", ["o", "brien"]),
            ("カフェ 🎉", ["カ", "フ", "ェ", "カフ", "フェ", "🎉"]),
            ("the of 的了", ["的了"]),
            ("", []),
        ],
    )
    def test_examples(self, text, expected):
        assert terms(text) == expected

    @given(st.text(max_size=200))
    def test_never_raises_and_reads_folded_text_alike(self, text):
        found = terms(text)
        assert all(term and not term.isspace() and len(term) <= 64 for term in found)
        assert found == terms(text + " ")

    @given(st.text(alphabet="abc 猫茶,'", max_size=40), st.text(alphabet="abc 猫茶,'", max_size=40))
    def test_a_line_break_keeps_texts_apart(self, one, other):
        assert terms(one) + terms(other) == terms(one + "\n" + other)


class TestTimes:
    NOW = datetime(2025, 11, 10, 12, tzinfo=UTC)

    def read(self, text):
        return read_query(text, facts=ROOM.facts, spans=time_spans(text, now=self.NOW), now=self.NOW)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("which flowers did we order on 8 November?", ["flower", "order"]),
            ("上周谁加了花", ["谁", "加", "花", "谁加", "加了", "了花"]),
            ("what is on tomorrow?", ["tomorrow"]),
        ],
    )
    def test_words_that_name_a_past_time_are_no_content(self, text, expected):
        query = self.read(text)
        assert sorted(query.terms) == sorted(expected)
        assert not query.only_then

    @pytest.mark.parametrize(
        "text",
        [
            "昨天大家聊了什么？",
            "上周五群里说了些什么",
            "总结一下昨天的聊天",
            "昨晚发生了什么事",
            "what did we talk about on 8 November?",
            "what happened yesterday?",
            "anything new today?",
            "catch me up on last week",
            "what's been going on this week",
        ],
    )
    def test_a_question_of_nothing_but_a_time(self, text):
        query = self.read(text)
        assert query.only_then
        assert query.spans
        assert query.terms == query.embed == ()

    @pytest.mark.parametrize(
        "text",
        ["what did Kim say yesterday?", "昨天部署了什么", "what is new?", "大家聊了什么？", "what happens tomorrow?"],
    )
    def test_a_question_that_asks_for_more_or_names_no_time(self, text):
        assert not self.read(text).only_then

    def test_times_in_a_dialogue_stay_words(self):
        query = self.read("Kim: we went there on 8 November\nAnn: and yesterday?")
        assert {"8", "novemb", "yesterday"} <= set(query.terms)


class TestWorth:
    def test_terms_are_distinct_and_words_of_asking_count_less(self):
        query = read("Summarize the discussion about solar power, solar panels")
        worth = dict(zip(query.terms, query.worth, strict=True))
        assert len(worth) == len(query.terms)
        assert worth["summar"] < worth["panel"] < worth["solar"]
        assert query.embed == ("Summarize the discussion about solar power, solar panels",)

    def test_of_a_very_long_question_the_weightiest_terms_are_looked_up(self):
        query = read(" ".join(f"word{n}x" for n in range(900)) + " tea tea tea")
        assert len(query.terms) == MAX_TERMS
        assert "tea" in query.terms


class TestPeople:
    @pytest.mark.parametrize(
        ("text", "people"),
        [
            ("What did Kim say?", (0,)),
            ("kim and ANN", (0, 1)),
            ("Lee's house", ()),
            ("小王去哪了", (2,)),
            ("王先生", ()),
            ("tea", ()),
        ],
    )
    def test_named_by_what_only_they_are_called(self, text, people):
        assert read(text).people == people


class TestVoice:
    @pytest.mark.parametrize(
        ("text", "voice"),
        [
            ("What did I say about tea?", "asker"),
            ("Can you remind me what you said?", "asker"),
            ("Which book did you give me?", "agent"),
            ("Could you please list your tips", "agent"),
            ("What's my name?", "asker"),
            ("我曾经和你说过什么", "asker"),
            ("你给我推荐过什么", "agent"),
            ("你还记得我的生日吗", "asker"),
            ("请问您推荐了什么", "agent"),
            ("What did Kim say?", ""),
            ("茶的味道", ""),
        ],
    )
    def test_the_first_one_meant(self, text, voice):
        assert read(text).voice == voice


class TestDialogue:
    def test_lines_with_speakers(self):
        found = utterances('<Kim>:"tea?"\n\n<Assistant>: "yes"\nKim：好的')
        assert [tuple(line) for line in found] == [("Kim", "tea?"), ("Assistant", "yes"), ("Kim", "好的")]

    @pytest.mark.parametrize("text", ["", "Kim: tea", "one\ntwo", "a: 1\nb: 2\nc: 3\nd: 4", "Kim: tea\nno\nno\nno"])
    def test_anything_else_is_none(self, text):
        assert utterances(text) == ()

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("  (**<Kim Lee>**) : “green  tea” ", ("Kim Lee", "green  tea")),
            ("【小王】：「好的」", ("小王", "好的")),
            ("[10] a: b", None),
            ('Kim: "tea " ', ("Kim", "tea ")),
            ('Kim: " tea', ("Kim", " tea")),
            ('Kim:" ', ("Kim", "")),
            ('Kim: "" ', ("Kim", "")),
            ("Kim:", ("Kim", "")),
            ("Kim Lee  > : at 10:30: tea", ("Kim Lee", "at 10:30: tea")),
            (f"{'k' * 32}: tea", ("k" * 32, "tea")),
            (f"{'k' * 33}: tea", None),
            (": tea", None),
            ("Kim\tLee:\ttea\t", ("Kim\tLee", "tea")),
        ],
    )
    def test_a_line(self, line, expected):
        found = utterances("\n".join([line, "Zoe: x", "Zoe: x", "Zoe: x", "Zoe: x", "Zoe: x"]))
        assert [tuple(one) for one in found if one.speaker != "Zoe"] == [expected] * (expected is not None)

    @pytest.mark.parametrize("part", [" ", "<", "*", ">", ")", "a", "a ", ":", '"', " :", '" ', "a:", "a: b ", "好："])
    def test_a_long_line_is_read_in_time(self, part):
        for head, tail in product(["", "<", "a", "a:", "a:x", 'a:"x', "a >"], ["", "y", ":", '"', "\nb: c\n"]):
            started = thread_time()
            utterances(head + part * ((20_000 - len(head + tail)) // len(part)) + tail)
            assert thread_time() - started < 0.3

    @pytest.mark.parametrize("line", ["a", "a:\n", "a: b\n", "<a \n", ' : "\n', "a" + " " * 99 + "\n"])
    def test_so_are_many_short_ones(self, line):
        started = thread_time()
        utterances((line * 20_000)[:20_000])
        assert thread_time() - started < 0.5

    def test_its_people_give_the_vector_and_the_latest_counts_most(self):
        query = read("Kim: green tea\nAssistant: black coffee\nKim: oolong")
        worth = dict(zip(query.terms, query.worth, strict=True))
        assert query.embed == ("green tea oolong",)
        assert worth["coffe"] < worth["tea"] < worth["oolong"]
        assert query.voice == ""

    def test_of_agents_alone_everything_is_taken(self):
        assert read("Bot: tea\nBot: coffee").embed == ("Bot: tea\nBot: coffee",)

    @given(st.text(max_size=120))
    def test_never_raises(self, text):
        query = read(text)
        assert len(query.terms) == len(query.worth)
        assert all(worth > 0 for worth in query.worth)

    @pytest.mark.parametrize(
        "name", ["assistant", "ChatGPT", "helpbot", "deploy-bot", "AI伴侣", "智能助手", "客服机器人", "ai"]
    )
    def test_names_of_agents(self, name):
        assert sounds_like_agent(name)

    @pytest.mark.parametrize("name", ["Kai", "Aidan", "Abbott", "Ai Weiwei", "Talbot", "Robota", "张爱", ""])
    def test_names_of_people(self, name):
        assert not sounds_like_agent(name)
