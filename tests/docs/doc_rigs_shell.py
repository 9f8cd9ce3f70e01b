"""Rigs of the pages that are followed in a shell."""

import json
import os
import sys
from datetime import timedelta

from doc_page import Page
from doc_rigs import rig
from doc_rooms import DEERFLOW, MEM0, TELEGRAM, evolved_once, said
from sqlalchemy import make_url

import roomlore
from pgbouncer_server import BINARY
from roomlore import Message
from roomlore.adapters.dbos import open_dbos
from roomlore.ports.durable import work_name
from roomlore.storage.values import Archive
from roomlore_testkit.embedding import EmbeddingServer, HashEmbedder
from roomlore_testkit.loopback import on_a_thread
from roomlore_testkit.model_server import Says, serve_models


def at_openai(page: Page, url: str) -> None:
    """Calls of OpenAI go to this address."""
    page.environment["MEMORY_PROVIDERS"] = json.dumps({"openai": {"base_url": url}})


async def model(messages: list[dict]) -> str:
    """The reader's own."""
    return f"(an answer to {messages[-1]['content']!r})"


@rig("docs/quickstart.md", "docs/quickstart.zh.md")
def quickstart(page: Page):
    english = ["王姐 brings", " lamb skewers, 小李 charcoal and drinks."]
    chinese = ["王姐带", "羊肉串，小李带炭和饮料。"]
    pieces = chinese if page.path.endswith("zh.md") else english
    with serve_models(lambda _: Says(pieces=pieces)) as server:
        at_openai(page, server.url)
        yield
    (asked,) = server.requests
    assert "王姐" in asked.prompt


def runs_programs(page: Page) -> None:
    """Programs that the page saves import what is imported here."""
    page.environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))


@rig("README.md")
def readme(page: Page):
    runs_programs(page)
    with serve_models(default="Bob does, tonight.") as server:
        at_openai(page, server.url)
        yield
    assert "Bob does, tonight.\n" in page.printed


@rig("docs/README.zh.md")
def readme_in_chinese(page: Page):
    yield from first_page(page, "动漫群", {"房间": "4242", "消息": "5"})


def first_page(page: Page, group: str, instead: dict[str, str]):
    """A chat's export, facts of another system, a model, and a group whose memory has evolved."""
    page.file("result.json", TELEGRAM)
    page.file("memory.json", DEERFLOW)
    memory, evolution = evolved_once(page, "chat.db", group)
    page.instead |= instead | {"5de54d99": memory, "7e725aee": evolution}
    messages = [{"role": "user", "content": "周末去哪儿？ Where do we go?"}]
    runs_programs(page)
    page.names |= {"lore": page.open("chat.db"), "model": model, "messages": messages}
    page.typed = "Which tea?\n"
    with serve_models(default="乌龙茶。Oolong.") as server:
        at_openai(page, server.url)
        yield
    told = "".join(page.printed)
    assert "周五聚餐去哪儿？" in told
    assert "乌龙茶。Oolong." in told


@rig("docs/how-to/production.md", "docs/how-to/production.zh.md")
def database(page: Page):
    page.open()
    yield


@rig("docs/how-to/keys.md")
def keys(page: Page):
    page.open()
    yield
    assert "default" in page.printed[-1]
    assert "acme" in page.printed[-1]


@rig("docs/how-to/troubleshooting.md")
def troubleshooting(page: Page):
    page.wait(said(page.open(), "4242", "Is the door open?", "Who has tea?", "Yes, since nine"))
    yield
    assert "Is the door open?" in "".join(page.printed)


@rig("docs/how-to/verify.md")
def verify(page: Page):
    page.wait(page.open().memories.add("group:tea", "They meet at four"))
    yield


@rig("docs/how-to/quotas.md")
def quotas(page: Page):
    page.open()
    yield
    assert "50,000" in page.printed[-1]


@rig("docs/how-to/retention.md")
def retention(page: Page):
    """Two rooms whose messages are two years old."""
    folder = page.folder / "archives"
    lore = page.open(archive_folder=str(folder))
    for room in ("team", "tea"):
        sent_at = lore.now() - timedelta(days=730)
        message = Message(id="1", room_id=room, sender_id="anna", text=f"Hello {room}", sent_at=sent_at)
        page.wait(lore.messages.add(message))
    page.instead["/var/lib/roomlore/archives"] = str(folder)

    def kept(room: str) -> Archive:
        return page.wait(lore.archives.kept(room))[0]

    page.instead |= {"ARCHIVE_ID": lambda: kept("tea").archive_id, "FILE": lambda: kept("team").file}
    yield
    assert page.wait(lore.archives.kept()) == []
    assert "Hello team" in page.shell("roomlore --db old.db search team Hello")


@rig("docs/how-to/facts.md")
def facts(page: Page):
    lore = page.open()
    page.file("memory.json", DEERFLOW)
    page.file("mem0.json", MEM0)
    page.shell("roomlore serve")
    page.typed = "y\n"
    page.instead["FACT"] = lambda: "tea"
    page.wait(lore.memories.add("user:anna", "Drinks green tea", memory_id="tea"))
    yield
    assert "2 现在只喝乌龙茶 0.0" in page.printed[1]
    assert page.printed[-1] == "1 ('user:anna',) [('results[1]', 'it has no memory')]\n"


@rig("docs/how-to/memory.zh.md")
def memory_in_chinese(page: Page):
    lore = page.open()
    page.wait(said(lore, "茶友群", "周五的点心谁来买？"))
    page.shell("roomlore serve")
    yield


@rig("docs/how-to/search.md")
def search(page: Page):
    page.shell("roomlore serve")
    with on_a_thread(EmbeddingServer(HashEmbedder(dimensions=1024))) as server:
        page.instead["http://localhost:8080/v1"] = server.url
        yield
    assert "tea I brought the biscuits" in page.printed[3]


@rig("docs/how-to/contexts.md", "docs/how-to/contexts.zh.md")
def contexts(page: Page):
    page.shell("roomlore --db chat.db serve")
    yield
    assert page.printed[1].startswith("user: [2026-05-08]")
    shell = page.printed[-1]
    assert '"rendered":[{"role":"user"' in shell
    assert shell.rstrip().endswith("@tea-bot 绿茶配杏仁饼干行吗？")


@rig("docs/how-to/sessions.md")
def sessions(page: Page):
    page.shell("roomlore --db chat.db serve")
    yield
    assert "my-model" in "".join(page.printed)


@rig("docs/how-to/workers.md")
def workers(page: Page):
    """A database server where one piece of work has failed."""
    database = page.fixture("postgres_url")
    page.instead |= {"postgresql://roomlore@db/roomlore": database, "extraction:x1f...": "extraction:x1f"}
    page.environment["MEMORY_DATABASE_URL"] = database
    page.wait(failed_work(database, "x1f"))
    yield
    told = "".join(page.printed)
    assert "status      failed" in told
    assert "status      waiting" in told


@rig("docs/how-to/grow.md", "docs/how-to/grow.zh.md")
def grow(page: Page):
    page.instead["postgresql://roomlore@db/roomlore"] = page.fixture("postgres_url")
    page.shell("roomlore --db chat.db demo")
    yield
    assert "verify" in "".join(page.printed)


@rig("docs/how-to/scaling.md")
def scaling(page: Page):
    """Fewer partitions than a reader takes: each is made for every table and index."""
    database = page.fixture("postgres_url")
    pooled = make_url(page.fixture("pgbouncer") if BINARY else database).set(database=make_url(database).database)
    page.instead |= {
        "postgresql://roomlore@db/roomlore": database,
        "postgresql://roomlore@pooler:6432/roomlore": pooled.render_as_string(hide_password=False),
        "64": "4",
    }
    yield


async def failed_work(database: str, own: str) -> None:
    async def fails(steps, arguments):
        raise roomlore.Unavailable("The disk is full.")

    work, name = open_dbos(database, pauses_seconds=(0.01,), poll_seconds=0.05), work_name("default", "extraction", own)
    work.define("extraction", fails)
    await work.open(working=True)
    await work.start("extraction", work_id=name, partition=name, arguments={"tenant": "default", "room_id": "tea"})
    await work.wait(name, seconds=60)
    await work.close()


@rig("docs/reference/cli.md")
def command_line(page: Page):
    lore = page.open()
    page.wait(said(lore, "tea", "Ann says: biscuits at four"))
    page.wait(lore.sessions.write_turn("conv-123", turn_id="t1", user_query="Tea?", agent_response="Green tea."))
    page.wait(lore.sessions.checkpoint("conv-123", "Ann asked for green tea.", covers_through="t1-answer"))
    page.wait(lore.sessions.write_turn("conv-123", turn_id="t2", user_query="Cake?", agent_response="Lemon or plum."))
    yield


@rig("docs/reference/http.md")
def over_http(page: Page):
    page.shell("roomlore serve")
    yield


@rig("docs/reference/importers.md", "docs/reference/importers.zh.md")
def importers(page: Page):
    page.file("result.json", TELEGRAM)
    (page.folder / "ChatExport" / "photos").mkdir(parents=True)
    page.file("ChatExport/photos/photo_1.jpg", "a map")
    with_picture = {**TELEGRAM["messages"][-1], "id": 9, "photo": "photos/photo_1.jpg"}
    page.file("ChatExport/result.json", {**TELEGRAM, "messages": [*TELEGRAM["messages"], with_picture]})
    page.names["what_it_shows"] = page.names["what_is_said"] = _read_out
    yield


async def _read_out(content: bytes) -> str:
    return content.decode()


@rig("docs/reference/settings.md")
def settings(page: Page):
    page.wait(said(page.open(), "tea", "Green or black?"))
    page.instead["ROOM"] = "tea"
    page.prints["max_context_messages is 0"] = lambda: page.shell(
        "MEMORY_MAX_CONTEXT_MESSAGES=0 roomlore rooms 2>&1 | sed 's/^roomlore: //'"
    )
    yield
