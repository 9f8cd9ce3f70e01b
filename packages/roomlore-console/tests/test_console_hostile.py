"""A room whose people want to break the console: every page it reaches is read, and holds nothing but what is known."""

import html
import re
import tracemalloc
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import roomlore
from console_rig import asking
from hostile_room import NAMES, ROOM, TEXTS, hostile
from roomlore import Message, Settings
from roomlore.core.memory.memory import Source
from roomlore_console import live, rooms
from roomlore_console.frame import visible
from roomlore_console.threads import LANES, Cell, lanes

COUNT = 2 * len(TEXTS)
OF_A_KIND = 6
TAGS = """html head meta title link script noscript body header nav main footer a form input button div section article
p h1 h2 h3 aside dialog kbd datalist
ul ol li span b strong bdi time table thead tbody tr th td code pre blockquote label details summary dl dt dd
meter progress select datalist
option mark textarea fieldset legend ins del br svg polyline line path rect text circle"""
ATTRIBUTES = """href src rel type name value content charset lang class id for action method role tabindex datetime dir
title disabled data-zone data-thread data-last data-live data-newest data-part data-all data-title data-waits
data-one data-close data-beside data-width data-zoned data-suggest
autofocus scope min max maxlength required placeholder autocomplete hidden open selected checked data-theme media
http-equiv defer viewbox points d x1 x2 y1 y2
preserveaspectratio x y cx cy r width height rx step rows minlength pattern list cols inputmode spellcheck size"""
ADDRESSES = ("href", "src", "action", "hx-get", "data-live", "data-newest", "data-all", "data-suggest")
PIECES = ("/console/side", "/console/suggest", "/console/room/live", "/console/room/threads")
HIDDEN = re.compile("[\u200b\u202a-\u202e\u2066-\u2069\ufeff\u2028\u2029\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

KEPT = re.compile(r'<input type="hidden"[^>]*>')
"""Fields that a form sends back as they are, and nobody sees."""


class Read(HTMLParser):
    """The content of a page, as a browser reads it."""

    def __init__(self, shown: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.scripts: list[str | None] = []
        self.text: list[str] = []
        self.feed(shown)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs if not name.startswith("aria-") and not name.startswith("hx-")}
        given = dict(attrs)
        self.addresses += [given[name] for name in ADDRESSES if name in given]
        if tag == "script":
            self.scripts.append(given.get("src"))

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", settings=Settings(durable_work="process"), background=False) as opened:
        yield opened


@pytest.fixture
async def http(lore):
    async with asking(lore) as client:
        yield client


@pytest.fixture
async def hostile_http(lore, http):
    """A client of a service where the hostile room is."""
    said = list(hostile(COUNT))
    await lore.messages.add(said)
    for number, text in enumerate(TEXTS):
        if text.strip():
            known = f's{number}"><script>window.taken=1</script>'
            source = Source(ROOM, said[number].id)
            await lore.memories.add(f"group:{ROOM}", f"{text[:1_500]}{number}", sources=[source], memory_id=known)
    await lore.memories.update('s0"><script>window.taken=1</script>', statement=TEXTS[1], reason=TEXTS[2])
    await lore.sessions.write_turn(ROOM + "s", NAMES[0], NAMES[6], TEXTS[0], TEXTS[2])
    return http


def check(path: str, shown: str) -> Read:
    read = Read(shown)
    assert read.tags.keys() <= set(TAGS.split()), path
    assert read.attributes <= set(ATTRIBUTES.split()), path
    assert [one for one in read.addresses if not one.startswith(("/console", "#"))] == [], path
    assert read.scripts == ["/console/static/htmx.min.js", "/console/static/console.js"], path
    once = ("html", "body", "header", "main", "h1")
    assert {name: read.tags[name] for name in once} == dict.fromkeys(once, 1), path
    assert HIDDEN.search(KEPT.sub("", shown)) is None, path
    assert HIDDEN.search("".join(read.text)) is None, path
    assert max(map(len, re.findall("[\u0300-\u036f]+", shown)), default=0) <= 4, path
    return read


async def test_every_page_a_hostile_room_leads_to_is_made_of_what_is_known(hostile_http, monkeypatch):
    monkeypatch.setattr(live, "STREAM_SECONDS", 0.01)
    waiting, seen, kinds = (
        ["/console", "/console/rooms", "/console/sessions", "/console/jobs", "/console/health"],
        set(),
        Counter(),
    )
    scopes = quote(f"group:{ROOM.split()[0]}", safe="")
    waiting += [f"/console/recall?scopes={scopes}&q={quote(text[:400])}" for text in TEXTS[:4]]
    waiting += [f"/console/{page}?q={quote(TEXTS[0])}" for page in ("search", "people")]
    waiting += [f"/console/forget?who={quote(TEXTS[0])}", "/console/places"]
    waiting += [f"/console/room?id={quote(ROOM, safe='')}&limit=500"]
    while waiting:
        path = waiting.pop(0)
        kind = path.partition("?")[0]
        if path in seen or "/static/" in path or kinds[kind] >= OF_A_KIND:
            continue
        seen.add(path)
        kinds[kind] += 1
        answer = await hostile_http.get(path)
        assert answer.status_code in (200, 303, 404, 422), (path, answer.text[:300])
        if answer.status_code == 303:
            waiting.append(answer.headers["location"])
            continue
        if kind in PIECES:
            assert re.search("<(script|img|style)", answer.text) is None, path
            continue
        read = check(path, answer.text)
        waiting += [one.partition("#")[0] for one in read.addresses if one.startswith("/console")]
    parts = "room room/live room/threads person people thread digest context sessions session"
    parts += " memories memory memory/one"
    assert kinds["/console"]
    for part in parts.split():
        assert kinds[f"/console/{part}"], part
    assert kinds["/console/memory/change"] >= 2


async def test_what_was_said_is_there_as_text(hostile_http):
    shown = (await hostile_http.get("/console/room", params={"id": ROOM, "limit": 500})).text
    told = " ".join("".join(Read(shown).text).split())
    for text in ("<script>window.taken = 1</script>", "{{ 7 * 7 }}", "'); DROP TABLE messages; --", "⟨U+202E⟩gpj.exe"):
        assert text in told
    assert "مرحبا بالعالم" in told
    assert "👩\u200d🚀" in told
    assert "49" not in re.findall(r"\d+", told.partition("{{ 7 * 7 }}")[2][:40])


async def test_a_large_page_is_sent_in_parts_and_cuts_texts(http, lore):
    await lore.messages.add(
        [Message(id=f"n{n}", room_id="long", sender_id="ann", text=f"{n} " + "ж" * 900) for n in range(520)]
    )
    shown = (await http.get("/console/room?id=long&limit=10000")).text
    said = shown.partition('id="flow"')[2].partition("<aside")[0]
    assert [int(n) for n in re.findall(r"\b(\d+) ж", said)] == list(range(520))
    assert "ж" * 150 in shown
    assert "ж" * 201 not in shown
    assert shown.rstrip().endswith("</html>")
    for limit in (60, 500):
        answer = await http.get(f"/console/room?id=long&limit={limit}")
        assert "content-length" not in answer.headers
    few = (await http.get("/console/room?id=long")).text
    assert "ж" * 900 in few
    assert 'limit=10000"' in few
    first = html.unescape(
        re.search(r'rel="prev" href="([^"]+)"', (await http.get("/console/room?id=long&limit=500")).text)[1]
    )
    assert "limit=500" in first
    assert len(re.findall("<article", (await http.get(first)).text)) == 20
    for limit in ("0", "10001", "x"):
        assert (await http.get(f"/console/room?id=long&limit={limit}")).status_code == 422


async def test_a_room_that_is_larger_than_memory_can_be_looked_at(http, lore, monkeypatch):
    """Of each text no more is held than is shown, whatever there is of it: two bytes for each character, if it were."""
    for parts in ("_USUAL_MESSAGES", "_MESSAGES_AT_ONCE"):
        monkeypatch.setattr(rooms, parts, 10)
    huge, count = "茶" + " " * 99_999, 60  # words take long to store
    await lore.messages.add([Message(id=f"h{n}", room_id="huge", sender_id="ann", text=huge) for n in range(count)])
    await page_of_all(http, "huge")
    tracemalloc.start()
    try:
        shown = await page_of_all(http, "huge")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shown.count("<article") == count
    assert peak < count * len(huge)


async def page_of_all(http, room_id: str) -> str:
    return (await http.get("/console/room", params={"id": room_id, "limit": 10_000})).text


async def test_a_page_grows_no_further_than_a_browser_can_bear(hostile_http, monkeypatch):
    monkeypatch.setattr(rooms, "_PAGE_CHARS", 100_000)
    shown = (await hostile_http.get("/console/room", params={"id": ROOM, "limit": 500})).text
    numbers = [int(n) for n in re.findall(r'<li id="m(\d+)"', shown)]
    assert 0 < len(numbers) < COUNT
    assert numbers == list(range(COUNT - len(numbers) + 1, COUNT + 1))
    monkeypatch.setattr(rooms, "_PAGE_CHARS", 1)
    shown = (await hostile_http.get("/console/room", params={"id": ROOM})).text
    assert re.findall(r'<li id="m(\d+)"', shown) == [str(COUNT)]
    assert 'rel="prev"' in shown


@given(st.lists(st.integers(0, 12), max_size=60))
@example([1, 2, 3, 4, 5, 6, 7, 1, 2, 1, 3, 4, 5, 6, 7])
def test_lanes_are_those_of_looking_at_every_thread_for_every_message(threads):
    thick = [1 + place % 4 for place in range(len(threads))]
    rows = lanes(list(zip(threads, thick, strict=True)))
    spans = {one: (threads.index(one), len(threads) - 1 - threads[::-1].index(one)) for one in threads}
    laned: set[int] = set()
    for one, (first, _) in spans.items():
        if sum(spans[other][1] >= first for other in laned) < LANES:
            laned.add(one)
    for place, row in enumerate(rows):
        told = {cell.look.number for cell in row.cells if cell.look}
        begun = {one for one, (first, last) in spans.items() if first <= place <= last}
        assert told == begun & laned
        assert all((cell == Cell("none")) == (cell.look is None) for cell in row.cells)
        for cell in row.cells:
            if cell.look:
                coming = [n for n in range(place + 1, len(threads)) if threads[n] == cell.look.number]
                assert cell.below == (thick[coming[0]] if coming else 0)
                assert cell.above == (thick[place] if cell.part in ("middle", "last") else 0)
    in_lane = [
        {n for n, cell in enumerate(row.cells) if cell.look and cell.look.number == one}
        for one in spans
        for row in rows
    ]
    assert all(len(places) <= 1 for places in in_lane)


@given(st.text(max_size=300))
def test_no_text_hides_anything(text):
    shown = visible(text)
    assert HIDDEN.search(shown) is None
