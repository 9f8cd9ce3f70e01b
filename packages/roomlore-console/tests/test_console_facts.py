"""Facts on the console's pages: which are shown, and writing them by hand."""

import html
import re
from datetime import UTC, datetime

import httpx
import pytest

import roomlore
from console_rig import LANGUAGES, asking, page
from roomlore import MemoryKind, Message, Settings, Source
from roomlore_console.frame import tongue

FACTS = {"en": ("Anna prefers green tea", "Anna prefers oolong"), "zh": ("安娜喜欢喝绿茶", "安娜只喝乌龙茶")}
WRONG = {
    "statement": ("At most 4,000 characters.", "最多 4,000 个字符。"),
    "confidence": ("Give a number from 0 to 1.", "请填 0 到 1 之间的数。"),
    "category": ("At most 64 characters.", "最多 64 个字符。"),
    "tags": ("At most 32, each of at most 64 characters.", "最多 32 个，每个最多 64 个字符。"),
    "kind": ("Choose one of these.", "请从这些中选择一个。"),
    "reason": ("At most 500 characters.", "最多 500 个字符。"),
}
NOTHING = ("Write something here.", "请填写内容。")
EVIL = '"><script>alert(1)</script></textarea>\u202e'
both = pytest.mark.parametrize("language", LANGUAGES)
NEW = "/console/memory/write?scope=user:anna"


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", settings=Settings()) as opened:
        yield opened


@pytest.fixture
async def http(lore):
    async with asking(lore) as client:
        yield client


def form(shown: str) -> dict[str, str]:
    """Return the fields that a browser would send of the form as it is shown."""
    inside = shown.partition('class="stack"')[2].partition("</form>")[0]
    found = {
        name: html.unescape(value)
        for name, value in re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]*)"', inside)
    }
    area = re.search(r'<textarea name="statement"[^>]*>\n(.*?)</textarea>', inside, re.DOTALL)
    found["statement"] = html.unescape(area[1])
    if chosen := re.search(r'<option value="(\w+)" selected>', inside):
        found["kind"] = chosen[1]
    return found


async def send(http, path: str, status: int, language: str = "en", shown: str = "", **fields) -> httpx.Response:
    fields = {**form(shown or await page(http, path)), **fields}
    answer = await http.post(path, data=fields, headers=LANGUAGES[language])
    assert answer.status_code == status, answer.text[:500]
    return answer


def says(language: str, key: str, **values) -> str:
    return html.escape(tongue(language).say(key, **values), quote=False)


def listed(shown: str) -> list[str]:
    there = shown.partition('<section id="then"')[2].partition("</section>")[0]
    return [html.unescape(one) for one in re.findall(r'<p class="statement" dir="auto"><a[^>]*>(.*?)</a></p>', there)]


# Looking.


@both
async def test_a_fact_is_shown_with_all_that_is_known_of_it(http, lore, language):
    fact = FACTS[language][0]
    given = {"confidence": 0.9, "category": "偏好", "tags": ["茶", "drink"], "sources": [Source("tea", "m1")]}
    await lore.messages.add(Message(id="m1", room_id="tea", sender_id="anna", text="tea"))
    memory = await lore.memories.add("user:anna", fact, **given)
    await lore.memories.add("user:anna", "nobody said how sure")
    for path in ("/console/memory?id=user:anna", f"/console/memory/one?id={memory.memory_id}"):
        shown = await page(http, path, language=language)
        for text in (fact, "偏好", "#茶", "#drink"):
            assert text in shown
        assert (f'<span class="action">{says(language, "kind.fact")}' in shown) == ("/one" in path)
        assert shown.count('<span class="sure">') == 1
        assert 'value="0.900"' in shown


@both
async def test_memories_are_chosen_by_kind_and_status(http, lore, language):
    await lore.memories.add("user:anna", "a fact")
    await lore.memories.add("user:anna", "a moment", kind=MemoryKind.SHORT)
    gone = await lore.memories.add("user:anna", "an old fact")
    await lore.memories.delete(gone.memory_id)
    for query, found in (
        ("", ["a moment", "a fact"]),
        ("&kind=fact", ["a fact"]),
        ("&kind=short", ["a moment"]),
        ("&status=deprecated", ["an old fact"]),
        ("&status=deprecated&kind=fact", ["an old fact"]),
        ("&kind=group", []),
    ):
        shown = await page(http, f"/console/memory?id=user:anna{query}", language=language)
        assert listed(shown) == found
        assert (says(language, "memory.all", count=len(found), total=len(found)) in shown) == bool(found)
    assert says(language, "memory.none.next") in shown
    for query in ("kind=odd", "status=odd", "offset=x"):
        await page(http, f"/console/memory?id=user:anna&{query}", 422)


async def test_many_facts_are_paged(http, lore):
    await lore.memories.add_all([roomlore.NewMemory(scope="user:anna", statement=f"fact no {n}") for n in range(130)])
    seen, address = [], "/console/memory?id=user:anna&kind=fact"
    while address:
        shown = await page(http, address)
        seen += listed(shown)
        following = re.search(r'rel="next" href="([^"]+)"', shown)
        address = html.unescape(following[1]) if following else None
    assert sorted(seen) == sorted(f"fact no {n}" for n in range(130))


# Writing.


@both
async def test_a_fact_is_added_and_changed(http, lore, language):
    first, second = FACTS[language]
    shown = await page(http, "/console/memory?id=user:anna", language=language)
    assert f'href="{NEW.replace(":", "%3A")}"' in shown
    empty = await page(http, NEW, language=language)
    assert says(language, "write.seen") in empty.partition("<details")[0], "who may see it is not folded away"
    assert '<details class="stack">' in empty
    typed = {
        "statement": f" {first} ",
        "confidence": "0.9",
        "category": "tea",
        "tags": "茶，drink, 茶",
        "reason": "said so",
    }
    added = await send(http, NEW, 303, language, **typed)
    assert says(language, "done.add") in await page(http, added.headers["location"], language=language)
    (memory,) = await lore.memories.page("user:anna")
    assert (memory.statement, memory.confidence, memory.category, memory.tags) == (first, 0.9, "tea", ("茶", "drink"))
    assert memory.kind is MemoryKind.FACT
    address = html.unescape(
        re.search(r'href="(/console/memory/write[^"]+)"', await page(http, added.headers["location"]))[1]
    )
    held = form(await page(http, address))
    assert held["statement"] == first
    assert (held["confidence"], held["category"], held["tags"]) == ("0.9", "tea", "茶, drink")
    changed = await send(http, address, 303, language, statement=second, confidence="", reason="moved on")
    assert says(language, "done.update") in await page(http, changed.headers["location"], language=language)
    (memory,) = await lore.memories.page("user:anna")
    assert (memory.statement, memory.confidence, memory.version, memory.tags) == (second, None, 2, ("茶", "drink"))
    assert [one.reason for one in await lore.memories.changes("user:anna")] == ["said so", "moved on"]


@both
async def test_the_same_again_is_said_to_be_there(http, lore, language):
    memory = await lore.memories.add("user:anna", "likes tea", confidence=0.5)
    again = await send(http, NEW, 303, statement="Likes  TEA")
    assert says(language, "done.there") in await page(http, again.headers["location"], language=language)
    same = await send(http, f"/console/memory/write?id={memory.memory_id}", 303)
    assert says(language, "done.same") in await page(http, same.headers["location"], language=language)
    assert await lore.memories.page("user:anna") == [memory]


@both
@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("statement", "  "), ("statement", "长" * 4_001), ("confidence", "80 %"), ("confidence", "1.5"),
        ("confidence", "nan"), ("category", "x" * 65), ("tags", ",".join(map(str, range(33)))), ("tags", "y" * 65),
        ("kind", "odd"), ("reason", "z" * 501),
    ],
)  # fmt: skip
async def test_what_cannot_be_saved_comes_back_as_it_was_typed(http, lore, language, field, typed):
    fields = {"statement": "茶 & tea", "confidence": "0.5", "category": "c", "tags": "t", "reason": "r", field: typed}
    back = await send(http, NEW, 422, language, **fields)
    assert (WRONG[field] if typed.strip() else NOTHING)[language == "zh"] in back.text
    assert back.text.count('aria-invalid="true"') == 1
    assert f'id="wrong-{field}"' in back.text
    assert field == "statement" or '<details class="stack" open>' in back.text, "what is wrong is not folded away"
    held = form(back.text)
    assert {name: held[name] for name in fields if name != "kind"} == {
        name: value for name, value in fields.items() if name != "kind"
    }
    assert await lore.memories.page("user:anna") == []
    assert await send(http, NEW, 303, shown=back.text, **{**fields, field: "fact" if field == "kind" else "0.4"})


@both
async def test_lines_stay_as_they_are_though_a_browser_sends_other_ends_of_them(http, lore, language):
    first = await lore.memories.add(scope="user:anna", statement="\n".join(FACTS[language]))
    path = f"/console/memory/write?id={first.memory_id}"
    typed = "\r\n".join(FACTS[language])
    saved = await send(http, path, 303, language, statement=typed)
    assert "done=same" in saved.headers["location"]
    await send(http, path, 303, language, statement=f"{typed}\r\n1")
    assert (await lore.memories.head(first.memory_id)).statement == f"{first.statement}\n1"


@both
async def test_what_somebody_changed_meanwhile_is_not_overwritten(http, lore, language):
    memory = await lore.memories.add("user:anna", "likes tea")
    path = f"/console/memory/write?id={memory.memory_id}"
    seen = await page(http, path)
    await lore.memories.update(memory.memory_id, statement="likes <b>coffee</b>")
    back = await send(http, path, 409, language, shown=seen, statement="likes 乌龙茶")
    assert says(language, "write.overtaken") in back.text
    assert "likes &lt;b&gt;coffee&lt;/b&gt;" in back.text
    assert form(back.text)["statement"] == "likes 乌龙茶"
    assert len(await lore.memories.history(memory.memory_id)) == 2
    await send(http, path, 303, shown=back.text)
    assert [one.statement for one in await lore.memories.page("user:anna")] == ["likes 乌龙茶"]


async def test_what_another_memory_says_is_refused_with_the_reason(http, lore):
    await lore.memories.add("user:anna", "likes tea")
    memory = await lore.memories.add("user:anna", "rides a bike")
    back = await send(http, f"/console/memory/write?id={memory.memory_id}", 409, statement="likes tea")
    assert says("en", "write.not") in back.text
    assert form(back.text)["expected"] == memory.memory_id
    assert len(await lore.memories.page("user:anna")) == 2


async def test_what_is_written_is_inert(http, lore):
    memory = await lore.memories.add("user:<b>", EVIL, category="<b>", tags=[EVIL])
    for path in (
        "/console/memory?id=user:%3Cb%3E",
        f"/console/memory/one?id={memory.memory_id}",
        f"/console/memory/write?id={memory.memory_id}",
    ):
        shown = await page(http, path)
        main = shown.partition('<main id="main"')[2]
        assert re.search(r"<(script|b>)", main) is None
    assert form(shown)["statement"] == EVIL, "what is edited is what is stored"
    back = await send(http, path, 422, statement=EVIL, confidence=EVIL, category=EVIL * 9, tags=EVIL, reason=EVIL)
    assert re.search(r"<(script|b>)", back.text.partition('<main id="main"')[2]) is None


async def test_a_form_for_nobody_is_not_given(http):
    await page(http, "/console/memory/write", 422)
    await page(http, "/console/memory/write?scope=anna", 422)
    await page(http, "/console/memory/write?id=none", 404)
    assert (await http.post(NEW, data={"statement": "x"})).status_code == 403


async def test_a_reader_writes_nothing_and_others_see_nothing(lore):
    memory = await lore.memories.add("user:anna", "likes tea")
    _, reads = await lore.keys.create("reader", scopes=("read",))
    _, other = await lore.for_tenant("other").keys.create("other", scopes=("read", "write"))
    path = f"/console/memory/write?id={memory.memory_id}"
    async with asking(lore, reads, "user:anna") as http:
        for shown in ("/console/memory?id=user:anna", f"/console/memory/one?id={memory.memory_id}"):
            assert "/console/memory/write" not in await page(http, shown)
        token = re.search(r'name="token" value="([^"]+)"', await page(http, "/console"))[1]
        for address in (NEW, path):
            await page(http, address, 403)
            assert (await http.post(address, data={"token": token, "statement": "x"})).status_code == 403
    async with asking(lore, other, "user:anna") as http:
        assert listed(await page(http, "/console/memory?id=user:anna")) == []
        await page(http, path, 404)
    assert await lore.memories.page("user:anna") == [memory]


@both
async def test_since_when_a_fact_holds_and_when_it_ends_is_shown(http, lore, language):
    begins, ends = datetime(2030, 5, 1, 9, tzinfo=UTC), datetime(2030, 6, 1, 9, tzinfo=UTC)
    await lore.memories.add("user:anna", FACTS[language][0], valid_from=begins, valid_until=ends)
    shown = await page(http, "/console/memory?id=user:anna", language=language)
    for key, day in (("memory.from", "2030-05-01"), ("memory.until", "2030-06-01")):
        assert says(language, key, at="X").partition("X")[0] + day in shown, shown[-3000:]


@both
async def test_a_fact_that_ends_at_midnight_holds_to_the_end_of_the_day_before(http, lore, language):
    await lore.memories.add("user:anna", FACTS[language][0], valid_until=datetime(2030, 6, 1, tzinfo=UTC))
    shown = await page(http, "/console/memory?id=user:anna", language=language)
    assert says(language, "memory.until", at=says(language, "memory.end_of_day", day="2030-05-31")) in shown
