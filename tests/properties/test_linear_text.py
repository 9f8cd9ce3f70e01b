"""Whoever may write a message may not stop the service: reading a text takes time in proportion to its length."""

import gc
import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise, repeat
from math import inf

import pytest
from text_readers import READERS, SHORT, Reader, text_functions

SIZES = (4_096, 16_384, 65_536)
GLANCES = (512, 2_048), (1_024, 4_096, 16_384)
"""Sizes by which it is told whether a text must be measured in all of `SIZES`; the second if the first leave doubt."""
GROWTH = 10
"""Most times as long for a text of four times the length: four if the work is linear, sixteen if it is quadratic."""
QUICK = 0.03
"""Seconds: the growth is looked at if a text of the middle size costs more."""
LONGEST = 3 if os.environ.get("ROOMLORE_ALL_TEXTS") else 1
"""Texts of a reader that are measured in all sizes though the short ones look linear."""

_LETTERS = "a A é e\u0301 \u0301 а か 가 ก क् 中 一 三 半 天 点 1 ٣ ²"
_BLANKS = (" ", "\t", "\n", "\r\n", "\u2028", "\u3000", "\x00", "\x0b", "\u200b", "\u202e", "\ud800")
_MARKS = ". , : ; ! ? - _ ' \" ` / \\ | @ # & + ~ ^ * $ % < > ( ) [ ] { } = … 。 ， ： ！ ？ ； 、 “ ” 「 」 《 ’ 〜 —"
_EMOJI = "😀 👨\u200d 👩🏽 🇩 🇨🇳 \u200d \ufe0f ☀"
_BEGINNINGS = 'http:// <@a <memory </memory> &gt; ``` a. 1. 1: no 2024- 三月 don\'t 《a <省略 {"a":'
_SPACED = ("> ", "a: ", "is ", "thank ", "moved a ", "@anna ", "”, such as: “")
UNITS = (*_BLANKS, *_SPACED, *(one for ones in (_LETTERS, _MARKS, _EMOJI, _BEGINNINGS) for one in ones.split(" ")))
ODD = ("x", "\x01", "!", "。")
PAIRED = ("a", "1", " ", "\n", ".", "?", "_", "@", "“", "中", "三", "。", "\u0301", "\u200d", "😀")


def hostile_texts(reader: str) -> Iterator[tuple[str, str, str]]:
    """Begin, unit and end: runs of every class with an odd end, alternations of two, and a run behind another sign.

    A reader gets every fourth class, every eighth alternation and every second run behind a sign, each reader others;
    all of them if `ROOMLORE_ALL_TEXTS` is set."""
    every = (1, 1, 1) if os.environ.get("ROOMLORE_ALL_TEXTS") else (4, 8, 2)
    places = (list(READERS).index(reader) % step for step in every)
    classes, alternations, behind = (slice(place, None, step) for place, step in zip(places, every, strict=True))
    for number, unit in list(enumerate(UNITS))[classes]:
        yield "", unit, ODD[number % len(ODD)]
    for one, other in list(combinations(PAIRED, 2))[alternations]:
        yield "", one + other, "x"
    for number, one in list(enumerate(PAIRED))[behind]:
        yield one, PAIRED[(number + 4) % len(PAIRED)], "\x01"


def made(begin: str, unit: str, end: str, size: int) -> str:
    return begin + unit * (size // len(unit)) + end


def seconds(reader: Reader, text: str) -> float:
    began = time.thread_time()
    reader(text)
    return time.thread_time() - began


def looks_linear(reader: Reader, begin: str, unit: str, end: str) -> float:
    """Seconds for the middle size, as short texts tell them; infinity if the growth must be measured.

    A text that is too quick for quadratic work to take `QUICK` at the middle size is not looked at. Of work that takes
    ten times as long for the last size as for the middle one, a tenth is quadratic at `GLANCES[0][1]`, which makes 4.35
    times as long as at `GLANCES[0][0]`; of work that takes nine times as long, 4.5 and 6 times as at the others."""
    for glances, growth in zip(GLANCES, ((0.0, 4.35), (0.0, 4.5, 6)), strict=True):
        before = inf
        for size, most in zip(glances, growth, strict=True):
            took, share = seconds(reader, made(begin, unit, end, size)), SIZES[1] / size
            if took < QUICK / share**2 or took <= most * before:
                return took * share
            before = took if most else min(took, seconds(reader, made(begin, unit, end, size)))
    return inf


def grows(reader: Reader, begin: str, unit: str, end: str) -> list[float]:
    """Seconds for each size, the best of a few: of the middle one before and after the largest, since other programs
    may slow all that is measured in the same tenth of a second."""
    texts = [made(begin, unit, end, size) for size in SIZES]
    small, middle = (min(seconds(reader, text) for _ in range(3)) for text in texts[:2])
    large = seconds(reader, texts[2])
    middle = min(middle, *(seconds(reader, texts[1]) for _ in range(2)))
    # Its best would be quicker still: it is only looked for where one run is not linear by the best of the others.
    if not is_linear([small, middle, large]):
        large = min(large, *(seconds(reader, texts[2]) for _ in range(2)))
    return [small, middle, large]


def slow(reader: Reader, texts: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], list[float]]:
    """The growth of the texts that are not read in linear time. All sizes are measured where short ones do not look
    linear, and for the texts that take longest."""
    first = {text: looks_linear(reader, *text) for text in texts}
    doubtful = [text for text, took in first.items() if took == inf]
    longest = sorted((text for text in first if QUICK <= first[text] < inf), key=first.__getitem__)[-LONGEST:]
    measured = {text: grows(reader, *text) for text in (*doubtful, *longest)}
    return {text: took for text, took in measured.items() if not is_linear(took)}


def is_linear(measured: list[float]) -> bool:
    """Not judged by less than a tenth of a second."""
    return all(large < 0.1 or large <= GROWTH * small for small, large in pairwise(measured))


def test_no_reader_of_texts_is_forgotten():
    found = set(text_functions())
    assert found - READERS.keys() - SHORT == set()
    assert SHORT - found == set()
    assert not SHORT & READERS.keys()


@pytest.mark.parametrize("name", READERS)
def test_reading_is_linear(name):
    gc.disable()
    try:
        assert slow(READERS[name], hostile_texts(name)) == {}
    finally:
        gc.enable()


@pytest.fixture
def _on_any_machine(monkeypatch):
    """The planted work is heavy enough on one that is ten times as fast, and takes no second on this."""
    monkeypatch.setattr(sys.modules[__name__], "QUICK", 0.002)


@pytest.mark.usefixtures("_on_any_machine")
def test_quadratic_work_is_noticed():
    def quadratic(text: str) -> int:
        return len(re.findall("a+x", text[len(text) // 2 :]))

    assert slow(quadratic, [("", "a", ""), ("", "b", "")]).keys() == {("", "a", "")}


@pytest.mark.usefixtures("_on_any_machine")
def test_quadratic_work_beside_linear_work_is_noticed():
    """It takes fifteen times as long for the last size."""

    def in_part(text: str) -> None:
        deque(repeat(None, 32 * (len(text) + len(text) ** 2 // 1_500)), maxlen=0)

    assert looks_linear(in_part, "", "a", "") == inf
