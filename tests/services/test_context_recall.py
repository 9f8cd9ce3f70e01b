"""Contexts that find what was said long ago, and those that need nothing of it."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore import Message, Settings, StorageUnavailable
from roomlore.core.experiments import Experiment
from roomlore.core.far import Earlier
from roomlore.core.models import Entry
from roomlore_testkit.embedding import HashEmbedder

MAY = datetime(2026, 5, 4, 9, tzinfo=UTC)
LATER = MAY + timedelta(days=8)
FACTS = (
    ("ilse", "The plumber is called Brandt, his number is on the fridge."),
    ("marek", "Did somebody find out when the boiler will be serviced?"),
    ("ilse", "They come for the boiler on 19 June in the morning."),
    ("marek", "Then I work from home that day."),
    ("小吴", "备用钥匙放在三楼的储物柜里。"),
    ("ilse", "好的，密码还是老样子吗？"),
)
CHATTER = (
    "Lovely weather, I will cycle to work today.",
    "The new bakery at the corner has good rolls.",
    "晚上有人一起打羽毛球吗？",
    "My train was late again this morning.",
    "今天的午饭太咸了。",
    "I watched a film about penguins.",
)


def said(number: int, who: str, text: str, **fields) -> Message:
    fields.setdefault("sent_at", MAY + timedelta(minutes=30 * number))
    return Message(id=f"m{number}", room_id="house", sender_id=who, text=text, **fields)


def house() -> list[Message]:
    people = ("ilse", "marek", "小吴")
    talk = [said(n, who, text) for n, (who, text) in enumerate(FACTS, 1)]
    return talk + [said(n, people[n % 3], CHATTER[n % len(CHATTER)]) for n in range(7, 127)]


def asked(text: str, sender: str = "marek", **fields) -> Message:
    return Message(id="q", room_id="house", sender_id=sender, text=text, **({"sent_at": LATER} | fields))


BOILER = "When did Ilse say the boiler would be serviced?"
KEYS = "之前小吴说备用钥匙放在哪里？"
GENERAL = "How do I get a boiler out of a carpet?"


def far(context: roomlore.Context) -> dict[str, str]:
    found = {one.message.id: one.reason for one in context.messages}
    return {id_: reason for id_, reason in found.items() if reason.startswith("answers the question")}


@pytest.mark.parametrize(("question", "answer"), [(BOILER, "m3"), (KEYS, "m5")])
async def test_the_answer_said_long_ago_is_shown(lore, question, answer):
    await lore.messages.add([*house(), asked(question)])
    context = await lore.context.build("house", "q")
    assert far(context)[answer] == "answers the question"
    chosen = next(one for one in context.messages if one.message.id == answer)
    assert chosen.score == max(one.score for one in context.messages)
    assert 0 < chosen.score < 1
    assert chosen.signals is not None
    assert context.degraded is None
    assert context.strategy == "threaded"
    order = [(one.message.at, one.message.arrival) for one in context.messages]
    assert order == sorted(order)


async def test_it_is_found_by_meaning_too_where_embeddings_are_on():
    async with roomlore.open("sqlite://", embedder=HashEmbedder(), background=False) as lore:
        await lore.messages.add([*house(), asked(BOILER)])
        async for _ in lore.index.drain():
            pass
        context = await lore.context.build("house", "q")
        assert "m3" in far(context)
        assert context.degraded is None


async def test_never_more_than_max_messages_and_none_twice(lore):
    await lore.messages.add([*house(), asked(BOILER)])
    for most in (1, 2, 5, 20, 60):
        context = await lore.context.build("house", "q", max_messages=most)
        shown = [one.message.id for one in context.messages]
        assert len(shown) <= most
        assert len(set(shown)) == len(shown)
        assert "q" not in shown
        assert "m3" in shown


async def test_nothing_later_than_the_message_is_shown(lore):
    await lore.messages.add([*house(), asked(BOILER)])
    before = await lore.context.build("house", "q")
    later = [said(n, "ilse", f"The boiler is serviced, number {n}", sent_at=LATER) for n in range(200, 290)]
    await lore.messages.add(later)
    after = await lore.context.build("house", "q")
    assert [one.message.id for one in after.messages][:3] == [one.message.id for one in before.messages][:3]
    assert not {one.message.id for one in after.messages} & {one.id for one in later}


async def test_a_deleted_answer_is_not_shown(lore):
    await lore.messages.add([*house(), asked(BOILER)])
    await lore.messages.delete("house", "m3")
    context = await lore.context.build("house", "q")
    assert far(context)
    assert "m3" not in [one.message.id for one in context.messages]


async def test_off_by_the_settings_of_all_and_of_a_room(lore):
    await lore.messages.add([*house(), asked(BOILER)])
    await lore.rooms.configure("house", {"context_recall": False})
    assert far(await lore.context.build("house", "q")) == {}
    await lore.rooms.configure("house", {"context_recall": True})
    assert far(await lore.context.build("house", "q"))
    assert far(await lore.context.build("house", "q", strategy="weighted")) == {}
    async with roomlore.open("sqlite://", settings=Settings(context_recall=False)) as other:
        await other.messages.add([*house(), asked(BOILER)])
        assert far(await other.context.build("house", "q")) == {}


@dataclass
class Searching:
    """Stands for search: counts the calls, and does what it is told."""

    answer: Earlier | None = None
    error: Exception | None = None
    hangs: bool = False
    asked: list[str] = field(default_factory=list)

    async def before(self, entry: Entry, *, limit: int, by_words: bool = False) -> Earlier:
        self.asked.append(entry.message.text)
        if self.hangs:
            await asyncio.sleep(60)
        if self.error:
            raise self.error
        assert self.answer is not None
        return self.answer


def with_search(lore: roomlore.Lore, search: Searching) -> roomlore.Lore:
    from roomlore.services.contexts import ContextService

    shared = lore._resources
    lore.context = ContextService(
        shared,
        tenant=lore.tenant,
        recorder=shared.recorder,
        past=search.before,
        options=shared.options,
        experiment=Experiment({}),
    )
    return lore


@pytest.mark.parametrize(
    "text",
    ["Good morning all, the boiler works!", "那我九点到储物柜，回头见。"],
)
async def test_a_message_that_needs_nothing_far_searches_for_nothing(lore, text):
    await lore.messages.add([*house(), asked(text, sent_at=MAY + timedelta(hours=64))])
    search = Searching(error=AssertionError("nothing is to be searched for"))
    context = await with_search(lore, search).context.build("house", "q")
    assert search.asked == []
    assert context.degraded is None


@pytest.mark.parametrize(
    ("text", "found"),
    [(GENERAL, {"m2", "m3"}), ("怎么洗掉储物柜上的红酒？", {"m5"})],
)
async def test_what_a_general_question_finds_comes_after_the_newest(lore, text, found):
    await lore.messages.add([*house(), asked(text, sent_at=MAY + timedelta(hours=64))])
    context = await lore.context.build("house", "q")
    maybe = [one for one in context.messages if one.reason == "may answer the question"]
    assert found <= {one.message.id for one in maybe}
    assert all(one.is_far and one.score < 0.3 for one in maybe)
    assert {f"m{n}" for n in range(119, 127)} <= {one.message.id for one in context.messages}
    without = await lore.context.build("house", "q", min_messages=0)
    assert not [one for one in without.messages if one.is_far]


async def test_a_notice_does_not_answer_a_general_question(lore):
    notice = said(1, "ilse", "Topic created: boiler and carpet", role="system")
    await lore.messages.add([notice, *house()[1:], asked(GENERAL, sent_at=MAY + timedelta(hours=64))])
    shown = {one.message.id for one in (await lore.context.build("house", "q")).messages}
    assert "m2" in shown
    assert "m1" not in shown


async def test_a_search_that_fails_costs_only_what_is_far(lore):
    await lore.messages.add([*house(), asked(BOILER, reply_to="m126")])
    search = Searching(error=StorageUnavailable("the disk is full"))
    context = await with_search(lore, search).context.build("house", "q")
    assert search.asked == [BOILER]
    assert context.strategy == "threaded"
    assert "the disk is full" in context.degraded
    assert context.parent == "m126"
    assert far(context) == {}


async def test_a_search_that_hangs_leaves_time_for_the_thread():
    async with roomlore.open("sqlite://", settings=Settings(context_build_timeout_seconds=1)) as lore:
        await lore.messages.add([*house(), asked(BOILER, reply_to="m126")])
        context = await with_search(lore, Searching(hangs=True)).context.build("house", "q")
        assert context.strategy == "threaded"
        assert "timeout" in context.degraded
        assert context.parent == "m126"


async def test_without_fallback_the_error_is_raised():
    async with roomlore.open("sqlite://", settings=Settings(fallback_on_error=False)) as lore:
        await lore.messages.add([*house(), asked(BOILER)])
        with pytest.raises(StorageUnavailable):
            await with_search(lore, Searching(error=StorageUnavailable("gone"))).context.build("house", "q")


async def test_words_alone_are_searched_where_meaning_cannot_be_had():
    embedder = HashEmbedder()
    async with roomlore.open("sqlite://", embedder=embedder, background=False) as lore:
        await lore.messages.add([*house(), asked(BOILER)])
        async for _ in lore.index.drain():
            pass
        searched = await lore.messages.search("house", BOILER)
        assert searched.degraded is None

        async def down(texts, *, kind):
            raise roomlore.ModelUnavailable("the embedder is down")

        embedder.embed = down
        context = await lore.context.build("house", "q")
        assert "m3" in far(context)
        assert "the embedder is down" in context.degraded


async def test_compare_and_the_record_hold_them(lore):
    await lore.messages.add([*house(), asked(BOILER)])
    context = await lore.context.build("house", "q")
    threaded, *others = await lore.context.compare("house", "q")
    taken = {one.message.id: (one.score, one.reason) for one in threaded.taken}
    assert taken == {one.message.id: (one.score, one.reason) for one in context.messages}
    assert all("answers the question" not in one.reason for other in others for one in other.taken)
    record = await lore.context.usage(context.context_id)
    assert "m3" in record.context_message_ids
    assert record.relevance_scores["m3"] == next(one.score for one in context.messages if one.message.id == "m3")


async def test_a_room_of_another_tenant_answers_nothing(lore):
    await lore.messages.add(house())
    other = lore.for_tenant("other")
    await other.messages.add([said(1, "marek", "hello"), asked(BOILER)])
    context = await other.context.build("house", "q")
    assert [one.message.text for one in context.messages] in (["hello"], [])
