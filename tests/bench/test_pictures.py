"""The pictures of the documentation: what is committed is what a run draws, and everybody can read it."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from bench.pictures import window
from bench.pictures.drawing import FOLDER, PICTURES
from bench.pictures.svg import DARK, LIGHT, WIDTH, WRITTEN, cut, wide

DOCS = FOLDER.parent
PAGE_PIXELS = 700
MIN_PIXELS = 12
MAX_BYTES = 250_000
SVG = "{http://www.w3.org/2000/svg}"
SHOWN = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<path>[^)\s]*pictures/(?P<name>[^)\s]+))\)")


@pytest.mark.parametrize("name", PICTURES)
async def test_what_is_committed_is_what_a_run_draws(name):
    assert await PICTURES[name]() == (FOLDER / name).read_text(encoding="utf-8"), "run `python -m bench pictures`"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_in_words_what_it_shows(name):
    sheet = ET.parse(FOLDER / name).getroot()
    named = {one.get("id"): one.text for one in sheet if one.tag in (f"{SVG}title", f"{SVG}desc")}
    assert sheet.get("role") == "img"
    assert all(len(named[one]) > 20 for one in sheet.get("aria-labelledby").split())


@pytest.mark.parametrize("name", PICTURES)
def test_texts_are_large_enough_and_inside_the_sheet(name):
    sheet = ET.parse(FOLDER / name).getroot()
    assert float(sheet.get("width")) == WIDTH
    for text in sheet.iter(f"{SVG}text"):
        size, x, words = float(text.get("font-size")), float(text.get("x")), "".join(text.itertext())
        assert size * PAGE_PIXELS / WIDTH >= MIN_PIXELS
        assert 0 < float(text.get("y")) < float(sheet.get("height"))
        begin = {"start": x, "middle": x - wide(words, size) / 2, "end": x - wide(words, size)}
        left = begin[text.get("text-anchor", "start")]
        assert left >= 0, words
        assert left + wide(words, size) <= WIDTH, words


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_told_from_their_ground(colours):
    for ground in ("back", "band"):
        for written in WRITTEN:
            assert contrast(colours[written], colours[ground]) >= 4.5, (written, ground)


def contrast(one: str, other: str) -> float:
    """As the guidelines for accessible web content reckon it."""
    dark, light = sorted(luminance(colour) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


async def test_no_turn_of_the_session_is_ever_covered_by_nothing():
    moments = await window.run()
    assert [one.turn for one in moments] == list(range(1, len(window.TURNS) + 1))
    assert sum(one.made for one in moments) >= 3
    assert {one.covers(turn) for one in moments for turn in range(1, one.turn + 1)} == {"summary", "both", "verbatim"}
    assert all(one.tokens <= window.WINDOW for one in moments)
    written = [one.turn for one in moments if one.meanwhile]
    after = {one.turn: one for one in moments if one.made}
    assert len(written) == window.SLOW_TURNS * len(after)
    for turn in written:
        assert next(one for number, one in after.items() if number >= turn).covers(turn) == "verbatim"


def test_every_picture_is_shown_with_words_in_its_place():
    found = [
        (page, match)
        for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
        for match in SHOWN.finditer(page.read_text(encoding="utf-8"))
    ]
    for page, match in found:
        assert (page.parent / match["path"]).is_file(), f"{page}: {match['path']}"
        assert len(match["alt"]) >= 20, f"{page}: {match['path']}"
    assert {match["name"] for _, match in found} == {path.name for path in FOLDER.iterdir()}


def test_pictures_are_small():
    assert {path.name: size(path) for path in FOLDER.iterdir() if size(path) > MAX_BYTES} == {}


def size(path: Path) -> int:
    return path.stat().st_size


@pytest.mark.parametrize(
    ("words", "size", "room", "shown"),
    [
        ("short", 10, 100, "short"),
        ("two\nlines  here", 10, 200, "two lines here"),
        ("周五晚上八点一起看新番", 10, 60, "周五晚上八…"),
        ("e\u0301e\u0301e\u0301e\u0301", 10, 20, "e\u0301e\u0301…"),
        ("👩‍👩‍👧👩‍👩‍👧", 10, 5, "…"),
    ],
    ids=["short", "lines", "zh", "combining", "emoji"],
)
def test_words_are_cut_between_characters(words, size, room, shown):
    assert cut(words, size, room) == shown
