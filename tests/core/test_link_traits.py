"""The linker reads the same in a message, whatever language it is written in."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.analysis import Participants, analyse
from roomlore.core.linking.reading import MAX_NAMED, MAX_WORDS, TRAITS, MessageReading, read
from roomlore.core.models import StoredMessage
from roomlore_testkit.case_table import all_cases


def reading(text: str) -> MessageReading:
    people = Participants.of({"anna": "", "bo": "", "李雷": ""})
    message = StoredMessage(
        id="1", room_id="r", sender_id="bo", text=text, sent_at=datetime(2024, 1, 1, tzinfo=UTC), arrival=1
    )
    return read(message, analyse(message, people))


def trait(text: str, name: str) -> float:
    return float(reading(text).traits[TRAITS.index(name)])


CUES = [
    ("asked", "does it work?", "能用吗？"),
    ("asks", "what is the best editor", "哪个编辑器最好"),
    ("begins_asking", "how do I boot from usb", "怎么从 U 盘启动"),
    ("greets", "hello all", "大家好"),
    ("thanks", "thanks a lot", "非常感谢"),
    ("agrees", "ok, done", "好的，收到"),
    ("continues", "and the log is empty", "而且日志是空的"),
    ("points", "it does not help", "这没有用"),
    ("you", "have you looked at the log", "你看日志了没"),
    ("i", "my disk is full", "我的硬盘满了"),
    ("calls", "anyone here using btrfs", "有人用 btrfs 么"),
    ("laughs", "haha", "哈哈哈"),
    ("url", "see https://example.org/a", "看 https://example.org/a"),
    ("trails", "well...", "那个……"),
    ("addresses", "anna: look at dmesg", "@李雷 看一下 dmesg"),
]


def test_a_cue_is_seen_in_both_languages_and_not_everywhere() -> None:
    with all_cases() as case:
        for name, english, chinese in CUES:
            with case(name, english):
                assert trait(english, name) == 1
                assert trait(chinese, name) == 1
                assert trait("partition table", name) == 0
                assert trait("分区表", name) == 0


def test_the_name_in_front_is_not_read_as_a_word() -> None:
    assert trait("anna: hello", "greets") == 1
    assert reading("anna: hello").named == ("anna",)
    assert reading("anna: hello").addressed == 1


@given(st.text(max_size=300))
def test_any_text_gives_finite_traits_and_bounded_words(text: str) -> None:
    found = reading(text)
    assert found.traits.shape == (len(TRAITS),)
    assert np.isfinite(found.traits).all()
    assert len(set(found.words)) == len(found.words) <= MAX_WORDS
    assert len(found.named) <= MAX_NAMED


def test_the_lean_of_a_text_is_that_of_its_script() -> None:
    latin, other = reading("the pump on line 2 leaks again").lean, reading("周五聚餐去哪儿？").lean
    assert -1 < latin < -0.5
    assert 0.5 < other < 1
    assert reading("кто взял кастрюлю?").lean > 0.5
    assert abs(reading("deploy 挂了").lean) < 0.2


@given(st.lists(st.sampled_from(["tea", "ok", "it's", "été", "茶", "か", "кто", "a.b", "http", "@bo", " ", ",", "\n"])))
def test_a_figure_says_nothing_of_the_script(parts: list[str]) -> None:
    text = "".join(parts)
    assert reading(f"{text} 1").lean == reading(text).lean


@pytest.mark.parametrize("text", ["", "+1", "ok", "😀", "https://example.org/a", "@anna", "@李雷 👍"])
def test_what_says_nothing_of_a_script_leans_nowhere(text: str) -> None:
    assert reading(text).lean == 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("who took the pan", 4),
        ("кто взял кастрюлю", 3),
        ("ποιος πήρε την κατσαρόλα", 4),
        ("من أخذ القدر", 3),
        ("où est la clé", 4),
        ("누가 냄비를 가져갔어", 3),
        ("बर्तन किसने लिया", 3),
        ("谁拿了锅", 2.4),
        ("なべはどこ", 3.0),
        ("ใครเอาหม้อ", 3.6),
        ("42 ?!", 0),
    ],
)
def test_the_words_of_every_script_count(text: str, number: float) -> None:
    assert trait(text, "words") == pytest.approx(np.log1p(number))
