"""Two points of a scope's log side by side in the console."""

import html
import re

import pytest

from console_rig import LANGUAGES, asking, page
from evolution_rig import CHINESE, ENGLISH, create, lines, opened, talk
from roomlore_console.frame import tongue, translated
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.model_server import ModelServer

both = pytest.mark.parametrize(("said", "language"), [(CHINESE, "zh"), (ENGLISH, "en")], ids=["zh", "en"])
COMPARE = "/console/memory/compare?id=g"
LEFT = {"en": "The boat house key hangs by the door", "zh": "船库的钥匙挂在门边"}


def says(language: str, key: str, **values) -> str:
    return html.escape(tongue(language).say(key, **values), quote=False)


def counts(shown: str, language: str) -> list[int]:
    """Return how many were added, removed, changed and unchanged."""
    keys = ("compare.added", "compare.removed", "compare.changed", "compare.unchanged")
    forms = (re.escape(tongue(language).words[key]).replace(r"\{count\}", r"(\d+)") for key in keys)
    return [int(re.search(f">{form}<", shown)[1]) for form in forms]


async def lived(lore, said, language) -> None:
    """Entries 1 to 4: two memories, one reworded, the other one deleted."""
    first = await lore.memories.add("group:g", said.known[0])
    second = await lore.memories.add("group:g", LEFT[language])
    await lore.memories.update(first.memory_id, statement=said.better[0], reason=said.why)
    await lore.memories.delete(second.memory_id)


@both
async def test_two_entries_are_compared_word_by_word(http, lore, said, language):
    await lived(lore, said, language)
    shown = await page(http, f"{COMPARE}&from=2&to=4", language=language)
    assert counts(shown, language) == [0, 1, 1, 0]
    assert re.search(f"<del[^>]*>{LEFT[language]}</del>", shown)
    log = shown.partition('<ol class="log')[2]
    assert "<ins>" in log
    assert said.why in html.unescape(log)
    assert counts(await page(http, f"{COMPARE}&from=0&to=2", language=language), language) == [2, 0, 0, 0]
    assert counts(await page(http, f"{COMPARE}&from=3&to=3", language=language), language) == [0, 0, 0, 2]
    assert says(language, "compare.same") in await page(http, f"{COMPARE}&from=4&to=now", language=language)


@both
async def test_the_last_change_is_compared_first_and_the_order_of_points_does_not_matter(http, lore, said, language):
    await lived(lore, said, language)
    shown = await page(http, COMPARE, language=language)
    assert counts(shown, language) == [0, 1, 0, 1]
    assert '<option value="3" selected>' in shown
    assert '<option value="now" selected>' in shown
    turned = await page(http, f"{COMPARE}&from=now&to=0", language=language)
    assert counts(turned, language) == counts(await page(http, f"{COMPARE}&from=0&to=now", language=language), language)


async def test_times_that_were_typed_go_before_entries_and_come_back_in_the_form(http, lore):
    await lived(lore, ENGLISH, "en")
    shown = await page(http, f"{COMPARE}&from=3&from_at=2020-01-01T10:00&to_at=2126-05-01T08:30")
    assert counts(shown, "en") == [1, 0, 0, 0]
    assert 'name="from_at" value="2020-01-01T10:00"' in shown
    assert 'name="to_at" value="2126-05-01T08:30"' in shown


@both
async def test_an_evolution_is_one_point_and_what_is_doubtful_is_marked(said, language):
    answers = lines(create("They meet at nine", "c1"), create(said.new[0], "c2"))
    async with ModelServer(default=answers) as server, opened(server) as lore, asking(lore) as http:
        await lore.memories.add("group:g", LEFT[language])
        await talk(lore, said, range(1, 8))
        await lore.memories.evolve("g")
        shown = await page(http, COMPARE, language=language)
        assert '<option value="1" selected>' in shown
        made = counts(shown, language)[0]
        assert made >= 1
        doubtful = [one for one in await lore.memories.page("group:g") if one.doubtful]
        assert shown.count('class="chip doubt"') == len(doubtful) > 0
        whys = {why for one in doubtful for why in one.doubtful.split("; ")}
        assert all(translated(why, tongue(language)) in shown for why in whys)
        assert language == "en" or 'lang="en"' not in shown.partition("<main")[2], "the reasons are in Chinese"
        log = await page(http, "/console/memory?id=g", language=language)
        assert says(language, "compare.with_now") in log
        assert log.count('class="chip doubt"') == 2 * len(doubtful)


async def test_older_entries_than_the_form_lists_can_be_named(http, lore):
    for number in range(1, 131):
        await lore.memories.add("group:g", f"statement no {number} of many")
    shown = await page(http, f"{COMPARE}&from=7")
    assert '<option value="7" selected>' in shown
    assert counts(shown, "en") == [123, 0, 0, 7]


async def test_points_that_do_not_exist_are_refused(http, lore):
    await lived(lore, ENGLISH, "en")
    with all_cases() as case:
        for wrong in ("from=5", "from=x", "to=-1", "to=999999999999999999999", "from_at=soon", "from=５"):
            with case(wrong):
                assert 'role="alert"' in await page(http, f"{COMPARE}&{wrong}", 422)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_where_nothing_changed_it_says_what_to_do(http, language):
    assert says(language, "memory.empty.next") in await page(http, COMPARE, language=language)


async def test_only_an_administrator_compares(lore):
    _, reader = await lore.keys.create("reader", scopes=("read",))
    async with asking(lore, reader, "room:g") as http:
        await page(http, COMPARE, 403)
        assert "/memory/compare" not in await page(http, "/console/memory?id=g")


async def test_what_is_compared_is_inert(http, lore):
    await lore.memories.add("group:g", '"><script>alert(1)</script> \u202e tea', reason="<img src=x>")
    shown = (await page(http, f"{COMPARE}&from=0")).partition('<main id="main"')[2]
    assert "<script" not in shown
    assert "<img" not in shown
    assert "\u202e" not in shown
