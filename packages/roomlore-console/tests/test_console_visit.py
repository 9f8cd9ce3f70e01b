"""What somebody sees who is new to the console: what to do first, names instead of ids, and reasons in plain words."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from console_rig import page
from roomlore import Message
from roomlore.core.dates import FAR_PAST, TimeSpan
from roomlore.core.memory.memory import Source
from roomlore.services.archives import RETENTION
from roomlore.services.digest import DIGEST, TITLES
from roomlore.services.evolution import EVOLUTION
from roomlore.services.extraction import EXTRACTION, EXTRACTION_RETRY
from roomlore.services.sessions import SUMMARY
from roomlore.storage.values import ATTACHMENTS, DELETING, FORGETTING, THREADS
from roomlore_console.frame import tongue, translated
from roomlore_console.health import failure, outcome
from roomlore_console.shell import marked_excerpt, span
from roomlore_server.http import app as served
from roomlore_server.http.app import beside
from roomlore_testkit import START
from roomlore_testkit.case_table import all_cases

both = pytest.mark.parametrize("language", ["en", "zh"])


@both
async def test_a_page_without_anything_says_so_and_what_to_do(http, language):
    with all_cases() as case:
        for path in ("", "/people", "/memories", "/jobs", "/sessions", "/usage", "/search?q=tea"):
            with case(path):
                shown = await page(http, f"/console{path}", language=language)
                told = re.search(r'<div class="empty">(.*?)</div>', shown, re.DOTALL)
                assert told is not None, path
                assert len(re.findall("<p>", told[1])) >= 2, "what is missing, and what to do"


@both
async def test_a_first_visit_is_in_the_language_of_the_browser_and_says_how_to_begin(http, language):
    shown = await page(http, "/console", language=language)
    assert f'<html lang="{"zh-Hans" if language == "zh" else "en"}" data-theme="auto"' in shown
    assert tongue(language).say("rooms.empty.next") in shown
    assert "roomlore import" in shown


@both
async def test_rooms_and_people_are_called_by_their_names_wherever_their_memories_are(http, lore, language):
    await lore.messages.add(
        [
            Message(id=f"m{n}", room_id="10086@chatroom", sender_id="wx_1", sender_name="严文", text=f"茶 {n}")
            for n in (1, 2)
        ]
    )
    await lore.rooms.rename("10086@chatroom", "产品讨论组")
    ours = await lore.memories.add("group:10086@chatroom", "周四喝茶", sources=[Source("10086@chatroom", "m1")])
    theirs = await lore.memories.add("user:wx_1", "喜欢绿茶")
    for path, name in {
        "/memories": "产品讨论组",
        "/memory?id=user:wx_1": "严文",
        f"/memory/one?id={ours.memory_id}": "产品讨论组",
        f"/memory/one?id={theirs.memory_id}": "严文",
        "/memory/compare?id=group:10086@chatroom&from=0": "产品讨论组",
        "/memory/change?what=forget&id=wx_1": "严文",
        "/visible?id=10086@chatroom": "严文",
        "/search?q=绿茶": "严文",
        "/recall?scopes=user:wx_1&q=茶": "严文",
    }.items():
        main = (await page(http, f"/console{path}", language=language)).partition("<main")[2]
        assert re.search(f">{name}</bdi>", main), path


@both
async def test_a_search_says_in_words_why_and_marks_what_was_asked_for(http, lore, language):
    await lore.messages.add(
        [
            Message(id="m1", room_id="tea", sender_id="ann", text="The <b>umbrella</b> is green 雨伞"),
            Message(id="m2", room_id="tea", sender_id="bo", text="ok"),
        ]
    )
    shown = (await page(http, "/console/search?q=umbrella", language=language)).partition("s-messages")[2]
    assert {"en": "has your word: umbrella", "zh": "含有你的词：umbrella"}[language] in shown
    assert "The &lt;b&gt;<mark>umbrella</mark>&lt;/b&gt; is green 雨伞" in shown
    assert "<mark>雨伞</mark>" in await page(http, "/console/search?q=雨伞", language=language)


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        (datetime(2026, 4, 30, 22, tzinfo=UTC), datetime(2026, 5, 31, 22, tzinfo=UTC), "2026-05-01 to 2026-05-31"),
        (datetime(2026, 4, 30, 22, tzinfo=UTC), datetime(2026, 5, 1, 22, tzinfo=UTC), "2026-05-01"),
        (
            datetime(2026, 5, 1, 6, tzinfo=UTC),
            datetime(2026, 5, 1, 10, tzinfo=UTC),
            "2026-05-01 08:00 to 12:00",
        ),
        (FAR_PAST, datetime(2026, 4, 30, 22, tzinfo=UTC), "up to 2026-04-30"),
    ],
)
def test_a_search_says_what_it_took_a_time_for(start, end, told):
    zone = ZoneInfo("Europe/Madrid")
    assert span(TimeSpan(start=start, end=end, text="then", position=(0, 4)), zone, tongue("en")) == f"“then” is {told}"


@both
async def test_a_search_shows_the_time_it_understood_and_marks_no_stop_words(http, lore, language):
    await lore.messages.add([Message(id="m1", room_id="tea", sender_id="ann", text="Who took the umbrella?")])
    shown = (await page(http, "/console/search?q=the+umbrella+yesterday", language=language)).partition("s-messages")[2]
    assert "“yesterday”" in shown
    assert "the <mark>umbrella</mark>" in shown


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("Every provider of the model 'tiny' failed just now and is left alone for a while; try again later.", "tiny"),
        ("No provider of the model 'tiny' can be asked: give one a key, or ask for the mode 'offline'.", "tiny"),
        ("The provider local cannot be reached: check its base_url and the network.", "local"),
    ],
)
def test_why_a_job_failed_is_told_in_the_language_of_the_page(error, words):
    for language in ("en", "zh"):
        told, understood = failure(f"ModelUnavailable: {error}", tongue(language))
        assert understood
        assert words in told
        assert "ModelUnavailable" not in told
        assert ("没" in told or "无" in told) == (language == "zh")


@both
def test_a_provider_that_rests_is_not_said_to_be_missing(language):
    error = "ModelUnavailable: No provider of the model 'tiny' can be asked: each failed lately and is tried again."
    assert failure(error, tongue(language)) == (tongue(language).words["failure.resting"].format("tiny"), True)
    error = "ModelUnavailable: No provider of the model 'tiny' can be asked: there is no key; set TINY_KEY."
    assert failure(error, tongue(language))[0] == tongue(language).words["failure.no_provider"].format("tiny")


@both
def test_every_kind_of_job_has_a_name(language):
    kinds = (
        ATTACHMENTS, DELETING, DIGEST, EVOLUTION, EXTRACTION, EXTRACTION_RETRY, FORGETTING, RETENTION, SUMMARY, THREADS,
        TITLES,
    )  # fmt: skip
    assert {f"job.kind.{kind}" for kind in kinds} == {
        key for key in tongue(language).words if key.startswith("job.kind.")
    }


@both
async def test_a_search_says_what_it_used(http, lore, language):
    said = tongue(language).say
    empty = await page(http, "/console/search", language=language)
    assert said("search.how.lexical") in empty
    assert said("search.how.hybrid") not in empty
    await lore.messages.add([Message(id="m1", room_id="tea", sender_id="ann", text="whose umbrella?")])
    shown = (await page(http, "/console/search?q=umbrella", language=language)).partition("s-messages")[2]
    assert said("search.by.lexical") in shown
    assert said("search.by.hybrid") not in shown
    assert said("signal.kind") in shown.partition("<details")[2], "the numbers are folded"


def test_an_unknown_failure_is_told_as_it_is_without_its_class():
    assert failure("ValueError: bad row", tongue("zh")) == ("bad row", False)
    assert failure("disk full: /data", tongue("en")) == ("disk full: /data", True)


def test_what_is_marked_stays_inert():
    assert marked_excerpt("<i>Teas</i> \u202etea", "tea") == (
        "&lt;i&gt;<mark>Teas</mark>&lt;/i&gt; ⟨U+202E⟩<mark>tea</mark>"
    )
    assert marked_excerpt("喝绿茶", "绿茶") == "喝<mark>绿茶</mark>"
    assert marked_excerpt("<", "tea") == "&lt;"
    assert marked_excerpt("x " * 900 + "tea", "tea").endswith("x <mark>tea</mark>")


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        (
            "1 message read; memories: 2 new, 0 changed, 1 removed, 3 kept.",
            "读取 1 条消息；记忆：新增 2，修改 0，删除 1，保留 3。",
        ),
        ("12 messages read, nothing to keep", "读取 12 条消息，没有需要记住的内容"),
        ("a memory of 5 messages", "由 5 条消息得出一条记忆"),
        ("checkpoint 3: 210 tokens", "检查点 3：210 个 token"),
        ("sent 4 messages of 'tea'", "已发送 tea 的 4 条消息"),
        ("The messages change nothing of what is remembered.", "这些消息没有改变任何记忆。"),
        ("removing what is stored of a person", "正在删除此人的数据"),
        ("removed or changed 40 entries", "已删除或修改 40 条数据"),
    ],
)
def test_what_came_of_a_job_is_said_in_chinese(progress, told):
    assert outcome(progress, tongue("zh")) == (told, True)
    assert outcome(progress, tongue("en")) == (progress, True)
    assert outcome(f"{progress[:-1]}{{}} other", tongue("zh"))[1] is False


def test_refused_lines_follow_an_outcome_as_they_are():
    read = "2 messages read; memories: 0 new, 0 changed, 0 removed, 0 kept."
    assert outcome(f"{read} Not followed of 'g': line 1", tongue("zh")) == (
        "读取 2 条消息；记忆：新增 0，修改 0，删除 0，保留 0。 Not followed of 'g': line 1",
        True,
    )
    assert outcome("something else", tongue("zh")) == ("something else", False)


@both
async def test_a_day_is_said_once_above_the_messages_of_a_person(http, lore, language):
    days = (0, 0, 0, 1)
    await lore.messages.add(
        [
            Message(
                id=f"m{n}", room_id="tea", sender_id="ann", text=f"说 {n}", sent_at=START + timedelta(days=d, minutes=n)
            )
            for n, d in enumerate(days)
        ]
    )
    said = (
        (await page(http, "/console/person?id=ann", language=language)).partition("p-said")[2].partition("p-rooms")[0]
    )
    assert len(re.findall('<li class="day">', said)) == 2
    assert len(re.findall(r">\d\d:\d\d</time>", said)) == 4


async def test_what_a_first_visit_needs_is_made_ready_beside_the_server(app, lore, monkeypatch):
    made = []

    async def prepared(given):
        made.append(given)

    monkeypatch.setattr(served, "prepare_pages", prepared)
    async with beside(app, lore):
        await asyncio.sleep(0)
    assert made == [lore]


async def test_rooms_are_read_before_the_first_visit(app, http, lore):
    await lore.messages.add(Message(id="m1", room_id="tea", sender_id="ann", text="hello 你好"))
    async with beside(app, lore):
        pass
    assert "tea" in await page(http, "/console")


WITHOUT_AN_ID = [
    ("/room", "/rooms"), ("/thread", "/rooms"), ("/digest", "/rooms"), ("/visible", "/rooms"), ("/person", "/people"),
    ("/session", "/sessions"), ("/memory", "/memories"), ("/memory/one", "/memories"),
    ("/memory/compare", "/memories"), ("/memory?id=", "/memories"), ("/memory?step=5", "/memories"),
]  # fmt: skip


async def test_an_address_without_an_id_leads_to_the_list_to_choose_from(http):
    with all_cases() as case:
        for path, leads_to in WITHOUT_AN_ID:
            with case(path):
                answer = await http.get(f"/console{path}")
                assert (answer.status_code, answer.headers["location"]) == (303, f"/console{leads_to}")


@both
async def test_memories_found_say_whether_they_are_of_a_group_or_of_a_person(http, lore, language):
    for scope in ("user:ann", "group:ann", "agent:ann"):
        await lore.memories.add(scope, f"green tea 绿茶 {scope}")
    for path in ("/search?q=绿茶", "/recall?scopes=user:ann+group:ann+agent:ann&q=绿茶", "/memories"):
        shown = (await page(http, f"/console{path}", language=language)).partition("<main")[2]
        for kind in ("group", "user", "agent"):
            chip = f'<span class="chip">{tongue(language).say(f"memories.of.{kind}")}</span>'
            assert chip in shown, (path, kind)


async def test_what_a_memory_is_about_is_said_in_the_language_of_the_page(http, lore):
    await lore.memories.add("group:tea", "周五喝茶", category="safety", tags=["rule", "plan", "自己的"])
    for path in ("/memory?id=group:tea", "/memory?id=tea&kind=fact"):
        english, chinese = [await page(http, f"/console{path}", language=one) for one in ("en", "zh")]
        for label in ("#rule", "#plan", "#自己的", ">safety<"):
            assert label in english
        for label in ("#规则", "#计划", "#自己的", ">安全<"):
            assert label in chinese


NOT_SHOWN = [
    ("/room?id=none", 404, "There is no room &#39;none&#39;", "没有房间 &#39;none&#39;"),
    ("/room?id=群里", 404, "There is no room &#39;群里&#39;", "没有房间 &#39;群里&#39;"),
    (
        "/room?id=tea&limit=99999",
        422,
        "“Messages on a page” takes a whole number from 1 to 10,000",
        "“每页消息数”请填 1 到 10,000 之间的整数",
    ),
    ("/person?id=nobody", 404, "Nobody with the id", "这里没有 id 为 &#39;nobody&#39; 的人"),
    ("/memory?id=tea&at=x", 422, "“At a date” takes a day or a time", "“某个日期”请填日期或时间"),
    ("/memory/one?id=none", 404, "There is no memory", "没有记忆 &#39;none&#39;"),
    ("/context?room=tea&message=m9", 404, "No such message", "没有这条消息"),
    ("/jobs?status=odd", 422, "“Status” cannot be “odd”", "“状态”不能是“odd”，只能是"),
]


async def test_why_a_page_cannot_be_shown_is_said_in_its_language(http, lore):
    await lore.messages.add([Message(id="m1", room_id="tea", sender_id="ann", text="hello 你好")])
    await lore.memories.add("group:tea", "they drink tea 喝茶")
    with all_cases() as case:
        for path, status, english, chinese in NOT_SHOWN:
            with case(path):
                for language, said in (("en", english), ("zh", chinese)):
                    shown = await page(http, f"/console{path}", status, language)
                    alert = re.search(r'role="alert">(.*?)</p>', shown, re.DOTALL)[1]
                    assert said in alert
                    assert 'lang="en"' not in alert


def test_what_is_not_translated_is_marked_as_english():
    assert translated("The <flux> is empty.", tongue("zh")) == '<bdi lang="en">The &lt;flux&gt; is empty.</bdi>'
    assert translated("The <flux> is empty.", tongue("en")) == "<bdi>The &lt;flux&gt; is empty.</bdi>"
    assert translated("地址里缺少 id", tongue("zh")) == "<bdi>地址里缺少 id</bdi>"
