"""The console's page of health: who may see it, what it draws, and what it says where there is nothing."""

import asyncio
import html
import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roomlore
from console_rig import asking
from evolution_rig import opened as evolving
from extraction_rig import CHINESE, ENGLISH, extracted, memories, replies
from extraction_rig import opened as extracting
from roomlore import Message, Settings
from roomlore.surfaces import doctor_words
from roomlore_console.counters import CounterReading
from roomlore_console.frame import tongue
from roomlore_console.health import COUNTERS, HEIGHT, HISTOGRAMS, WIDTH, Watch, draw, format_value
from roomlore_server.http import create_app
from roomlore_server.http.app import beside
from roomlore_testkit.embedding import HashEmbedder
from roomlore_testkit.model_server import Fails, ModelServer

SPOKEN = {"en": {"Accept-Language": "en"}, "zh": {"Accept-Language": "zh-CN"}}
BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
BOUNDS = dict.fromkeys(HISTOGRAMS, (0.1, 1.0))


def says(language: str, key: str, **values) -> str:
    return html.escape(tongue(language).say(key, **values), quote=False)


async def page(http, path: str = "/console/health", language: str = "en") -> str:
    answer = await http.get(path, headers=SPOKEN[language])
    assert answer.status_code == 200, answer.text[:500]
    return answer.text


def reading(minutes: float, number: float) -> CounterReading:
    """All counters at `number`, a tenth of what was timed below the first bound."""
    counters = dict.fromkeys(COUNTERS, (number,))
    at = BEGIN + timedelta(minutes=minutes)
    return CounterReading(at, counters | dict.fromkeys(HISTOGRAMS, (number / 10, number, number)))


@pytest.mark.parametrize("language", SPOKEN)
async def test_what_was_measured_is_drawn_and_told_in_numbers(http, lore, app, language):
    watch: Watch = app.state.watch
    before = (await watch.look(lore))[-1]
    watch._readings = (CounterReading(before.at - timedelta(minutes=2), before.counters),)
    await lore.messages.add([Message(id=f"m{n}", room_id="茶", sender_id="ann", text=f"喝茶 {n}") for n in range(12)])
    await lore.context.build("茶")
    await http.get("/nothing")
    shown = await page(http, language=language)
    drawn = {
        name: ElementTree.fromstring(picture)
        for picture, name in re.findall(r'(<svg [^>]*aria-labelledby="c-(\w+) .*?</svg>)', shown)
    }
    assert {"messages", "contexts", "context_time", "requests", "saved"} <= drawn.keys()
    assert "models" not in drawn
    assert says(language, "chart.models") in shown
    assert all(picture.get("role") == "img" for picture in drawn.values())
    for name in drawn:
        assert f'id="c-{name}"' in shown
        assert f'id="l-{name}"' in shown
    legend = re.search(r'id="l-messages".*?<strong>([\d.]+)', shown)[1]
    assert 5.5 < float(legend) <= 6
    assert says(language, "health.numbers") in shown
    assert "<code>GET unknown</code>" in shown
    assert 'hx-trigger="every 10s"' in shown
    assert 'hx-trigger="every 10s"' not in await page(http, "/console/health?still=yes", language)


@pytest.mark.parametrize("language", SPOKEN)
async def test_with_one_reading_it_says_what_to_do_next(http, language):
    shown = await page(http, language=language)
    assert says(language, "health.empty.next") in shown
    assert "<svg" not in shown
    for key in ("health.jobs.waiting", "health.models.none", "health.vectors.off", "health.words.whole"):
        assert says(language, key) in shown


@pytest.mark.parametrize("language", SPOKEN)
async def test_what_doctor_finds_is_shown_and_what_is_fine_folded_away(http, lore, language):
    shown = await page(http, "/console/health/findings", language)
    trouble, _, fine = shown.partition("<details>")
    told = {one.part: one for one in await lore.examine()}
    warnings = sum(one.verdict == "warn" for one in told.values())
    assert says(language, "verdict.all.warn", count=warnings) in trouble
    for text in (told["database"].said, told["database"].todo):
        assert html.escape(doctor_words.phrase(text, language=language), quote=False) in trouble
    for name in ("settings", "disk", "redis", "qdrant"):
        if name in told:
            group = "health.off" if told[name].verdict == "off" else "health.fine"
            count = sum(one.verdict == told[name].verdict for one in told.values())
            rows = fine.partition(says(language, group, count=count))[2].partition("</details>")[0]
            assert f"<dt>{doctor_words.part(name, language=language)}</dt>" in rows
            assert html.escape(doctor_words.phrase(told[name].said, language=language), quote=False) in fine
    if language == "zh":
        sentences = re.findall(r"<bdi>(.*?)</bdi>", shown)
        assert len(sentences) > 8
        assert [one for one in sentences if not re.search("[\u4e00-\u9fff]", one)] == []
    assert 'hx-get="/console/health/findings"' in await page(http, language=language)


async def test_the_database_that_is_open_is_looked_at_and_no_embedder_asked(tmp_path):
    settings = Settings(embeddings="openai", embedding_api_key="sk-none", embedding_url="http://127.0.0.1:9/v1")
    async with roomlore.open(f"sqlite:///{tmp_path / 'mine.db'}", settings=settings, background=False) as lore:
        found = {one.part: one for one in await lore.examine()}
    assert "a write took" in found["database"].told
    assert (found["embedder"].verdict, found["embedder"].told) == ("ok", "openai; not asked here")


@pytest.mark.parametrize("path", ["/console/health", "/console/health/findings"])
async def test_only_who_may_read_metrics_sees_it(connect, lore, path):
    _, reader = await lore.keys.create("reader", scopes=("read", "write"))
    _, admin = await lore.keys.create("chief", scopes=("admin",))
    async with connect(key=reader) as http:
        http.cookies.set("roomlore_viewer", "room%3Atea")
        assert (await http.get(path)).status_code == (await http.get("/metrics")).status_code == 403
        assert "/console/health" not in (await http.get("/console")).text
    async with connect(key=admin) as http:
        assert (await http.get(path)).status_code == 200
        assert 'href="/console/health"' in (await http.get("/console")).text


async def test_a_server_reads_its_counters_by_itself_and_stops_with_it(lore):
    app = create_app(lore)
    watch: Watch = app.state.watch
    async with asyncio.timeout(60):
        async with watch.watching(lore, every_seconds=0.001):
            while len(watch._readings) < 3:  # noqa: ASYNC110 - what another task does
                await asyncio.sleep(0)
        kept = len(watch._readings)
        async with beside(app, lore):
            while len(watch._readings) == kept:  # noqa: ASYNC110 - what another task does
                await asyncio.sleep(0)
    assert {len(one.counters) for one in watch._readings} == {len(COUNTERS) + len(HISTOGRAMS)}


@given(st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 1_000)), min_size=1, max_size=80))
def test_every_line_stays_in_its_picture_and_says_as_much_as_it_shows(steps):
    readings, minutes, number = [reading(0, 0)], 0.0, 0
    for later, more in steps:
        minutes, number = minutes + later, number + more
        readings.append(reading(minutes, number))
    found = draw(readings, BOUNDS)
    assert (found.begins, found.ends) == (readings[0].at, readings[-1].at)
    for chart in found.all:
        assert {len(line.values) for line in chart.lines} == {len(found.times)}
        for line in chart.lines:
            points = [tuple(map(float, one.split(","))) for piece in line.pieces for one in piece.split(" ")]
            assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
            assert [x for x, _ in points] == sorted(x for x, _ in points)
            assert bool(points) == any(value is not None for value in line.values)
            assert len(points) <= 2 * 60
    rates = next(chart for chart in found.all if chart.name == "messages")
    whole = (found.ends - found.begins) / timedelta(minutes=1)
    assert rates.lines[0].whole == pytest.approx(number / whole)


def test_what_was_timed_is_drawn_between_its_bounds():
    found = draw([reading(0, 0), reading(1, 100)], BOUNDS)
    times = next(chart for chart in found.all if chart.name == "context_time")
    assert [line.whole for line in times.lines] == [pytest.approx(0.5), pytest.approx(0.95)]
    assert draw([reading(0, 0)], BOUNDS) is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "count", "–"), (0.0, "count", "0"), (1234.4, "count", "1,234"), (0.125, "count", "0.125"),
        (0.107, "rate", "0.107/min"), (1234.4, "rate", "1,234/min"),
        (0.0123, "seconds", "12.3 ms"), (1.5, "seconds", "1.50 s"), (0.256, "share", "26 %"), (-0.5, "share", "-50 %"),
    ],
)  # fmt: skip
def test_numbers_are_short(value, unit, text):
    assert format_value(value, unit) == text


@pytest.mark.parametrize("language", SPOKEN)
async def test_what_is_missing_is_said_and_not_that_all_is_well(http, lore, language):
    for path in ("/console/health", "/console/health/findings"):
        shown = await page(http, path, language)
        assert says(language, "notice.no_model") in shown
        assert 'class="verdict ok"' not in shown
        assert says(language, "notice.fallbacks", count=1) not in shown


async def test_what_the_console_asks_for_itself_is_not_among_what_was_asked_for(http):
    for _ in range(3):
        shown = await page(http)
    assert "<code>GET /console" not in shown


@pytest.mark.parametrize("language", SPOKEN)
async def test_fallbacks_that_wait_for_a_model_are_told(language):
    said = {"en": ENGLISH, "zh": CHINESE}[language]
    failing = ModelServer(default=Fails(status=400))
    async with failing, extracting(failing, seconds=5) as lore, asking(lore) as http:
        await replies(lore, said, 5)
        await extracted(lore)
        (memory,) = await memories(lore)
        assert memory.fallback
        shown = await page(http, "/console/health/findings", language)
    assert says(language, "notice.fallbacks", count=1) in shown
    assert says(language, "notice.no_model") not in shown
    assert 'class="verdict ok"' not in shown


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("language", SPOKEN)
async def test_jobs_that_failed_are_told(language):
    failing = ModelServer(default=Fails(status=400))
    async with failing, evolving(failing, seconds=60) as lore, asking(lore) as http:
        await lore.messages.add(Message(id="m1", room_id="茶", sender_id="ann", text="喝茶 tea"))
        begun = await lore.memories.begin_evolution("茶", mode="llm")
        assert (await lore.jobs.wait(begun.job_id, 60)).status == "failed"
        shown = await page(http, "/console/health/findings", language)
    assert says(language, "notice.work_failed", count=1) in shown
    assert "/console/jobs?status=failed" in shown
    assert 'class="verdict ok"' not in shown


@pytest.mark.parametrize("language", SPOKEN)
async def test_an_index_that_is_behind_is_told(language):
    async with roomlore.open("sqlite://", embedder=HashEmbedder(), background=False) as lore, asking(lore) as http:
        await lore.messages.add([Message(id="m1", room_id="茶", sender_id="ann", text="喝茶 tea")])
        assert says(language, "notice.vectors_stale", count=1) in await page(http, language=language)
        async for _ in lore.index.drain():
            pass
        assert says(language, "notice.vectors_stale", count=0) not in await page(http, language=language)
