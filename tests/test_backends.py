"""Backends: those of other packages by entry points, the caller's own, sections of settings, and who names whom."""

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import roomlore
from roomlore.core.errors import InvalidInput
from roomlore.ports.backends import VECTORS
from roomlore.services.contexts import Strategy
from roomlore.settings import Settings, known_fields
from roomlore.settings.registry import backends_of, registered
from roomlore.wiring import diagnose
from roomlore_testkit.embedding import HashEmbedder

SOURCES = Path(roomlore.__file__).parent
STORE = '''
from typing import ClassVar

from roomlore.core.health import Finding, say
from roomlore.ports.backends import VECTORS, Backend, Section, setting
from roomlore.services.contexts import Strategy


class TeaSettings(Section):
    """Vectors in a teapot."""

    section: ClassVar[str] = "tea"
    tea_url: str = setting("", "The teapot's address.", form="a URL")


async def probe(settings, host, seconds):
    return [Finding("teapot", "ok", say("brews at {url}", url=settings.tea_url))]


TEAPOT = Backend(
    kind=VECTORS,
    name="teapot",
    open=lambda settings, host: ("a teapot", settings.tea_url, host.url),
    settings=TeaSettings,
    lacks=lambda settings: "" if settings.tea_url else "tea_url is not set.",
    probe=probe,
)


async def last(gatherer, target, options):
    return await gatherer.recent(target, 1)


LAST = Strategy(last)
'''
USE = """
import asyncio
from roomlore.ports.backends import VECTORS, Host
from roomlore.settings import Settings, explain
from roomlore.wiring import diagnose
from roomlore.wiring.models import opened
import roomlore

settings = Settings(tea={"url": "http://pot"}, strategy="last", database_url="sqlite://")
assert [one.section for one in explain(settings) if one.name == "tea_url"] == ["tea"]
store = settings.candidates(VECTORS)[0]
assert opened(store, settings, Host(url="u", clock=None)) == ("a teapot", "http://pot", "u")
try:
    Settings(vectors="teapot")
except roomlore.InvalidInput as error:
    assert str(error) == "vectors is teapot, but tea_url is not set.", error
found = {one.part: one for one in asyncio.run(diagnose(settings.changed(vectors="teapot"), timeout_seconds=60))}
assert "embeddings is off" in found["teapot"].told, found["teapot"]
with roomlore.open_sync(settings=settings) as lore:
    said = [roomlore.Message(id=str(n), room_id="tea", sender_id="ann", text="绿茶 green") for n in range(4)]
    lore.messages.add(said)
    context = lore.context.build("tea", "3")
    assert (context.strategy, [one.message.id for one in context.messages]) == ("last", ["2"]), context
print("used")
"""


def bring(folder: Path, entries: str) -> dict[str, str]:
    """Write a package as pip would, with these entry points."""
    folder.joinpath("teapot.py").write_text(STORE, encoding="utf-8")
    info = folder / "teapot-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: teapot\nVersion: 1.0\n", encoding="utf-8")
    info.joinpath("entry_points.txt").write_text(entries, encoding="utf-8")
    return {"PYTHONPATH": f"{folder}:{SOURCES.parent}", "PATH": ""}


async def python(code: str, environment: dict[str, str], folder: Path) -> tuple[int, str]:
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env=environment, cwd=folder, stdout=-1, stderr=asyncio.subprocess.STDOUT
    )
    told, _ = await run.communicate()
    return run.returncode or 0, told.decode()


async def test_a_package_brings_a_store_and_a_strategy(tmp_path):
    points = "[roomlore.backends]\nteapot = teapot:TEAPOT\n[roomlore.strategies]\nlast = teapot:LAST\n"
    code, told = await python(USE, bring(tmp_path, points), tmp_path)
    assert (code, told) == (0, "used\n"), told


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("teapot = teapot:NOTHING", "teapot brings 'teapot:NOTHING', which cannot be loaded"),
        ("teapot = teapot:LAST", "which is no Backend"),
    ],
)
async def test_a_package_that_is_broken_is_named(tmp_path, entry, says):
    environment = bring(tmp_path, f"[roomlore.backends]\n{entry}\n")
    code, told = await python("import roomlore\nroomlore.Settings()", environment, tmp_path)
    assert code == 1
    assert says in told


def test_an_unknown_backend_is_told_those_that_are_known():
    with pytest.raises(InvalidInput, match=r"vectors is milvus .*; it must be one of auto, qdrant, pgvector, sql"):
        Settings(vectors="milvus")


class Shelf:
    """A vector store in a dictionary: generation, and points by scope."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.points: dict[tuple[str, str, str], dict[int, np.ndarray]] = {}
        self.asked = 0
        self.closed = False

    async def generation(self, *, collection: str) -> str | None:
        return self.held.get(collection)

    async def prepare(self, *, collection: str, model: object, generation: str) -> None:
        self.held[collection] = generation

    async def put(self, *, collection: str, generation: str, points: Sequence) -> None:
        for one in points:
            self.points.setdefault((collection, one.tenant, one.scope), {})[one.number] = one.vector

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.points.get((collection, tenant, scope), {}).pop(number, None)

    async def nearest(self, *, collection, generation, tenant, scope, vectors, limit, only=None):
        self.asked += 1
        raise roomlore.VectorsUnavailable("The shelf is locked.")

    async def count(self, *, collection: str, tenant: str, scope: str) -> int:
        return len(self.points.get((collection, tenant, scope), {}))

    async def close(self) -> None:
        self.closed = True


async def test_the_callers_own_store_is_used_and_closed():
    shelf = Shelf()
    async with roomlore.open("sqlite://", embedder=HashEmbedder(), vectors=shelf, background=False) as lore:
        await lore.messages.add(roomlore.Message(id="1", room_id="r", sender_id="ann", text="绿茶 green tea"))
        async for _ in lore.index.drain():
            pass
        assert sum(map(len, shelf.points.values())) == 1
        answer = await lore.messages.search("r", "tea")
    assert (shelf.asked, shelf.closed) == (1, True)
    assert "shelf is locked" in answer.degraded


async def test_the_callers_own_strategy_is_known_to_calls_rooms_and_comparisons():
    async def first(gatherer, target, options):
        return (await gatherer.recent(target, 10))[:1]

    async with roomlore.open("sqlite://", strategies={"first": Strategy(first)}, background=False) as lore:
        await lore.messages.add(
            [roomlore.Message(id=str(n), room_id="r", sender_id="ann", text=f"茶 {n}") for n in range(4)]
        )
        built = await lore.context.build("r", "3", strategy="first")
        await lore.rooms.configure("r", {"strategy": "first"})
        by_room = await lore.context.build("r", "3")
        compared = [one.strategy for one in await lore.context.compare("r", "3")]
        with pytest.raises(InvalidInput, match="threaded, weighted, recent, first"):
            await lore.context.build("r", "3", strategy="second")
    assert [[one.message.id for one in each.messages] for each in (built, by_room)] == [["0"], ["0"]]
    assert compared == ["threaded", "weighted", "recent", "first"]


@pytest.mark.parametrize(
    "given",
    [{"qdrant_url": "http://q"}, {"qdrant": {"url": "http://q"}}, {"qdrant": {"qdrant_url": "http://q"}}],
    ids=["by itself", "in its section", "in its section with the whole name"],
)
def test_a_setting_is_given_by_itself_or_in_its_section(given):
    settings = Settings(**given)
    assert (settings.qdrant_url, settings.source("qdrant_url")) == ("http://q", "argument")
    assert settings.candidates(VECTORS)[0].name == "qdrant"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"qdrant": {"adress": "x"}}, "no setting 'adress' in the section qdrant"),
        ({"qdrant": 3}, "qdrant .* is a section"),
        ({"context": {"port": 1}}, "no setting 'port' in the section context"),
    ],
)
def test_a_bad_section_says_what_to_mend(given, says):
    with pytest.raises(InvalidInput, match=says):
        Settings(**given)


def test_settings_are_changed_with_their_sources():
    settings = Settings(qdrant_url="http://q", port=1).changed(port=2)
    assert (settings.port, settings.qdrant_url, settings.source("port")) == (2, "http://q", "argument")
    with pytest.raises(InvalidInput, match="port is 70000"):
        settings.changed(port=70_000)


def test_every_name_of_a_setting_is_unique():
    names = [name for one in {one.settings for one in registered()} for name in one.model_fields]
    assert len(names) == len(set(names))
    assert set(names) <= set(known_fields())


async def test_a_backend_that_is_not_used_is_told_so():
    found = {one.part: one for one in await diagnose(Settings(database_url="sqlite://"), timeout_seconds=60)}
    assert {name: found[name].verdict for name in ("qdrant", "redis", "langfuse", "sentry")} == dict.fromkeys(
        ("qdrant", "redis", "langfuse", "sentry"), "off"
    )


def test_nothing_but_its_own_file_and_the_list_names_a_server():
    """Of the layers that serve every backend; mem0 has configurations of its own, which name some."""
    names = re.compile("qdrant|redis|langfuse|sentry", re.IGNORECASE)
    naming = {
        path.relative_to(SOURCES).as_posix()
        for layer in ("settings", "wiring", "ports", "core")
        for path in (SOURCES / layer).rglob("*.py")
        if names.search(path.read_text(encoding="utf-8"))
    }
    assert naming == {"settings/retired.py"}, "retired names"


def test_the_first_of_a_kind_that_can_be_used_is_taken():
    settings = Settings(vectors="auto")
    assert [one.name for one in settings.candidates(VECTORS)] == ["pgvector", "sql"]
    assert list(backends_of(VECTORS)) == ["qdrant", "pgvector", "sql"]
