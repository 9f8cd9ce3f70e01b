"""The console's first page: what waits, was decided, changed in memory and fails, over all rooms."""

import html
import re
from datetime import timedelta

import pytest

from console_rig import asking, page
from roomlore import Message
from roomlore.services.digest import overview
from roomlore_console.frame import tongue
from roomlore_console.health import Notice

both = pytest.mark.parametrize("language", ["en", "zh"])
LONG = "They also want the numbers of last year, the logo as SVG and a picture of the new office. " * 4
SAID = [
    ("launch", 50, "ben", "Rena, could you book the room for the review?"),
    ("launch", 49, "rena", "Yes, booked: the fourth floor."),
    ("launch", 30, "cara", "Decision: the launch moves to Tuesday 14:00."),
    ("launch", 20, "cara", f"Rena! Could you send the slides to the agency? {LONG}"),
    ("launch", 5, "dan", "Does anybody know the wifi password of the new office?"),
    ("garden", 10, "fei", "@rena 你能带两把铲子来吗？"),
    ("garden", 8, "yu", "决定：番茄种在南边。"),
    ("kitchen", 700, "eve", "We decided to buy the blue kettle."),
]
NAMES = {"rena": "Rena", "fei": "阿菲"}


@pytest.fixture
async def filled(lore):
    now = lore.now()
    for number, (room, hours, who, text) in enumerate(SAID):
        at = now - timedelta(hours=hours)
        name = NAMES.get(who, "")
        await lore.messages.add(
            Message(id=f"m{number}", room_id=room, sender_id=who, sender_name=name, text=text, sent_at=at)
        )
    await lore.rooms.rename("garden", "Garden 花园")


async def sections(http, path: str = "/console", language: str = "en", status: int = 200) -> dict[str, str]:
    """Return the sections of the page by their ids, and all of its main part as ''."""
    answer = await http.get(path, headers={"Accept-Language": language})
    assert answer.status_code == status, answer.text[:500]
    assert '<a href="/console/rooms">' in answer.text, "the list of rooms is one click away"
    main = html.unescape(answer.text.partition("<main")[2].partition("</main>")[0])
    return {"": main, **dict(re.findall(r'<section aria-labelledby="(\w+)">(.*?)</section>', main, re.DOTALL))}


@both
async def test_what_a_person_missed_is_on_one_page(http, lore, filled, language):
    await lore.memories.add("user:rena", "Rena is on holiday in December.")
    old = await lore.memories.add("group:launch", "They meet on Mondays.")
    new = await lore.memories.update(old.memory_id, statement="They meet on Tuesdays.")
    await lore.memories.add("user:eve", "Eve likes tea.")
    shown = await sections(http, "/console?for=rena", language)
    say = tongue(language).say
    assert say("digest.waits", name="Rena") in shown["waits"]
    assert SAID[3][3].strip() in shown["waits"], "the whole quote"
    assert "booked" not in shown["waits"]
    assert "铲子" in shown["waits"], "asked in a room in which she never spoke"
    assert '<a href="/console/room?id=launch&around=4#m4">' in shown["waits"]
    assert "Tuesday 14:00" in shown["decision"]
    assert "番茄" not in shown["decision"], "decided in a room that is not hers"
    assert "question" not in shown
    assert "holiday" in shown["changed"]
    assert "Eve likes tea" not in shown["changed"]
    assert f"/console/memory/change?what=restore&id={old.memory_id}" in shown["changed"], "the version before"
    assert f"/console/memory/one?id={new.memory_id}" in shown["changed"]
    assert say("today.failing.none") in shown["failing"]


@both
async def test_without_a_person_it_is_of_everybody(http, filled, language):
    shown = await sections(http, language=language)
    assert "waits" not in shown
    assert "wifi" in shown["question"]
    assert shown["decision"].index("番茄") < shown["decision"].index("Tuesday 14:00"), "the newest first"
    assert "Garden 花园" in shown["decision"]
    assert "kettle" not in shown["decision"], "it is older than a week"
    assert "kettle" in (await sections(http, "/console?since=month", language))["decision"]
    assert tongue(language).say("today.changed.none") in shown["changed"]


async def test_people_are_chosen_by_name(http, lore, filled):
    shown = await sections(http)
    assert '<option value="rena">Rena</option>' in shown[""]
    assert "铲子" in (await sections(http, "/console?for=Rena&since=yesterday"))["waits"]
    assert "铲子" in (await sections(http, "/console"))["waits"], "the choice is remembered"
    assert "waits" not in await sections(http, "/console?for=")
    assert "waits" not in await sections(http, "/console")
    wrong = await sections(http, "/console?for=Rina&since=yesterday", status=404)
    assert '<option value="Rina" selected>' in wrong[""], "what was typed stays"
    assert '<option value="yesterday" selected>' in wrong[""]
    assert '<a href="/console?for=rena&since=yesterday">' in wrong[""], "somebody near is offered"
    assert "waits" not in await sections(http, "/console"), "nobody is remembered by a wrong name"
    http.cookies.set("roomlore_person", "%E4%B8%8D%E5%9C%A8", path="/console")
    assert "waits" not in await sections(http, "/console"), "who is gone does not stand in the way"
    await lore.messages.add(Message(id="x", room_id="tea", sender_id="r2", sender_name="Rena", text="hello"))
    assert '<option value="r2">Rena (r2)</option>' in (await sections(http))[""]


HABITS = [
    ("fei", "We decided that the tool shed stays locked at night."),
    ("yu", "Agreed: nobody waters the beans at noon."),
    ("fei", "Rule: everybody cleans the tools after use."),
]
UNDONE = [("create", "delete"), ("delete", "restore"), ("evolution", "revert")]


@pytest.mark.parametrize(("change", "undo"), UNDONE)
async def test_each_change_of_memory_leads_to_what_undoes_it(http, lore, filled, change, undo):
    if change == "evolution":
        made = (await lore.memories.evolve("garden", mode="offline")).evolution_id
    else:
        made = (await lore.memories.add("group:garden", "They grow tomatoes.")).memory_id
        if change == "delete":
            await lore.memories.delete(made)
    path = f"/console/memory/change?what={undo}&id={made}"
    assert path in (await sections(http))["changed"]
    assert (await http.get(path)).status_code == 200


@both
async def test_what_one_update_changed_is_undone_whole_or_one_by_one(http, lore, filled, language):
    told = [Message(id=f"f{n}", room_id="garden", sender_id=who, text=text) for n, (who, text) in enumerate(HABITS)]
    await lore.messages.add(told)
    made = await lore.memories.evolve("garden", mode="offline")
    changed = [change.memory.memory_id for change in made.changes]
    assert len(changed) > 1
    shown = (await sections(http, language=language))["changed"]
    assert shown.count(f"what=revert&id={made.evolution_id}") == 1
    assert all(f"what=delete&id={memory_id}" in shown for memory_id in changed)
    assert tongue(language).say("confirm.undo") in await page(
        http, f"/console/memory/change?what=delete&id={changed[0]}&undo=1", language=language
    )
    await lore.memories.revert(made.evolution_id)
    shown = (await sections(http, language=language))["changed"]
    assert shown.count('<p class="byline">') == 1, "what was undone at once is one row"
    assert shown.count("action revert") == len(changed)


async def test_an_update_of_which_a_part_was_undone_is_not_offered_to_be_undone_whole(http, lore, filled):
    await lore.messages.add(
        [Message(id=f"f{n}", room_id="garden", sender_id=who, text=text) for n, (who, text) in enumerate(HABITS)]
    )
    made = await lore.memories.evolve("garden", mode="offline")
    first, *others = [change.memory.memory_id for change in made.changes]
    await lore.memories.delete(first)
    shown = (await sections(http))["changed"]
    assert "what=revert" not in shown
    assert f"what=restore&id={first}" in shown
    assert all(f"what=delete&id={memory_id}" in shown for memory_id in others)


@both
async def test_an_empty_store_and_a_quiet_week_say_how_to_go_on(http, lore, language):
    say = tongue(language).say
    assert say("rooms.empty.next") in (await sections(http, language=language))[""]
    at = lore.now() - timedelta(days=90)
    await lore.messages.add(Message(id="m1", room_id="tea", sender_id="ann", text="Decided: green tea.", sent_at=at))
    quiet = (await sections(http, language=language))[""]
    day = f"{at:%Y-%m-%d}"
    assert say("today.last", day=day) in quiet
    there = html.unescape(re.search(r'href="(/console\?since=[^"]+)"', quiet)[1])
    assert "green tea" in (await sections(http, there, language))["decision"]
    await lore.memories.add("group:tea", "They drink tea.")
    there = html.unescape(re.search(r'href="(/console\?since=[^"]+)"', (await sections(http))[""])[1])
    assert "green tea" in (await sections(http, there))["decision"], "also when a memory has changed since"
    for wrong in ("soon", "2026-99-99"):
        await sections(http, f"/console?since={wrong}", language, 422)
    for wrong in (0, 101, 10**16):
        assert say("field.part") in (await sections(http, f"/console?part={wrong}", language, 422))[""]


async def test_what_fails_is_told(http, lore, filled, monkeypatch):
    async def some(*_):
        return [Notice("warn", "no_model", 0), Notice("fail", "vectors_down", 0)]

    monkeypatch.setattr("roomlore_console.today.notices_now", some)
    shown = (await sections(http))["failing"]
    say = tongue("en").say
    assert say("notice.vectors_down") in shown
    assert say("notice.no_model") not in shown, "what is not set up does not fail"
    assert say("today.failing.none") not in shown


@pytest.mark.parametrize("viewer", ["user:dan", "user:rena", "user:zoe", "room:launch"])
async def test_a_viewer_sees_what_the_digest_shows_them(lore, filled, viewer):
    """Compare with the digest of each room for the same viewer, and see that nothing else is on the page."""
    await lore.rooms.set_kind("garden", "public")
    secret = (await lore.keys.create("reader", scopes=["read"]))[1]
    texts = set()
    for room in ("launch", "garden", "kitchen"):
        try:
            made = await lore.digest(room, since=lore.now() - timedelta(days=7), viewer=viewer, mode="offline")
        except Exception:  # noqa: BLE001 - the viewer sees nothing of the room
            continue
        texts |= {line.text for entry in made.entries for line in entry.lines if line.why == "decision"}
    assert "决定：番茄种在南边。" in texts
    async with asking(lore, secret, viewer=viewer) as http:
        shown = await sections(http, "/console?for=")
        assert "failing" not in shown
        decided = re.findall(r'<p class="text" dir="auto">(.*?)</p>', shown["decision"], re.DOTALL)
        assert set(decided) == texts
        if viewer == "user:dan":
            await sections(http, "/console?for=rena", status=404)


async def test_many_messages_are_looked_at_part_by_part(http, lore, filled, monkeypatch):
    monkeypatch.setattr(overview, "_AT_ONCE", 3)
    seen, path = "", "/console?since=month"
    for _ in range(4):
        shown = (await sections(http, path))[""]
        seen += shown
        further = re.search(r'<a href="([^"]+part=\d+)">' + tongue("en").say("today.further"), shown)
        if further is None:
            break
        path = further[1]
    assert further is None
    for text in ("kettle", "番茄", "Tuesday 14:00", "wifi"):
        assert seen.count(text) == 1, text


@both
async def test_what_a_person_has_not_read_and_the_last_change_are_one_click_away(http, lore, filled, language):
    say = tongue(language).say
    shown = (await sections(http, "/console?for=rena", language))[""]
    assert say("today.unread", name="Rena") in shown
    assert re.findall(r'"/console/digest\?id=(\w+)&for=rena"', shown) == ["launch"], "she wrote in no other room"
    for room in ("launch", "garden", "kitchen"):
        await lore.rooms.mark_read(room, "rena")
    assert say("today.unread", name="Rena") not in (await sections(http, "/console?for=rena", language))[""]
    await lore.memories.add("user:rena", "Rena rows.")
    await lore.memories.add("group:launch", "They meet on Mondays.")
    await lore.memories.add("user:rena", "Rena sings.")
    changed = (await sections(http, "/console?for=&since=last_week", language))["changed"]
    assert re.findall(r"<h3>.*?<bdi>(.*?)</bdi>", changed) == ["Rena", "launch"], "one heading for each subject"
