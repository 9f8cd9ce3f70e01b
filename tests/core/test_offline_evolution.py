"""The evolution without a model: what it finds, what it leaves alone, and that every claim has its evidence."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from offline_rooms import ANIME, MONDAY, ROOM, TEAM, Said, answer, memory, said_in

from roomlore.core.evolution.offline import offline_answer
from roomlore.core.evolution.plan import PlanInput, plan
from roomlore.core.evolution.prompt import handles_of, message_handles
from roomlore.core.evolution.requests import Operation, Plan, Rules, ScopeState
from roomlore.core.memory.memory import Action, Memory, MemoryKind, Source
from roomlore.core.models import Role, StoredMessage

STANDUP = "Stand-up is every Monday at 9 in the blue room"
ANIME_NIGHT = "每周五晚上八点一起看新番"
CLAIM = re.compile(
    r"(?:On (?P<days>\d+) of (?P<all>\d+) days with messages .*?, (?P<people>\d+) people"
    r"|在有消息的 (?P<alle>\d+) 天中.*?有 (?P<tage>\d+) 天.*?、(?P<leute>\d+) 人)"
)


def statements(operations: Sequence[Operation]) -> list[str]:
    return [operation.statement for operation in operations]


def evidence(operation: Operation, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    return [messages[int(handle[1:]) - 1] for handle in operation.evidence]


def planned(room: Sequence[StoredMessage], memories: Sequence[Memory], *, fresh: int) -> Plan:
    return plan(
        answer(room, fresh=fresh, memories=memories),
        PlanInput(
            offered=handles_of(memories),
            messages=message_handles(Source(one.room_id, one.id) for one in room),
            similar=None,
            rules=Rules(),
            state=ScopeState(scope="group:r", number=len(memories), active=len(memories)),
            kind=MemoryKind.GROUP,
            evolution_id="e",
            new_id=iter("abcdefgh").__next__,
            actor="offline",
            now=MONDAY + timedelta(days=40),
        ),
    )


def test_what_a_chinese_group_does_every_week_is_found_with_its_weekday():
    operations = answer(said_in(ANIME)).operations
    assert [operation.kind for operation in operations] == ["create"]
    assert ANIME_NIGHT in operations[0].statement
    assert "有 3 天（都是周五）、3 人" in operations[0].statement
    assert operations[0].evidence == ("c5", "c10", "c16")


def test_what_an_english_team_does_every_week_is_found_and_what_it_talks_about():
    ritual, topic = answer(said_in(TEAM)).operations
    assert STANDUP.lower() in ritual.statement.lower()
    assert "each of the 3 a Monday, 3 people said the same" in ritual.statement
    assert ritual.evidence == ("c1", "c6", "c11")
    assert topic.statement.startswith("On 5 of 11 days with messages (2026-03-02 to 2026-03-19), 3 people talked about")
    assert topic.tags == ("invoice export",)
    assert topic.evidence == ("c4", "c8", "c12", "c13", "c14")


def test_what_several_people_say_of_themselves_is_quoted_with_its_author():
    room: list[Said] = [
        (0, "小林", "大家好，我是做前端的"),
        (1, "阿哲", "我是做前端的，请多关照"),
        (2, "小美", "今天的风好大"),
        (3, "老周", "我也是做前端的"),
        (6, "小美", "我是做前端的，刚入职"),
    ]
    (operation,) = answer(said_in(room)).operations
    assert "“我是做前端的”（小美的原话）" in operation.statement
    assert len(operation.evidence) == 4


def test_a_mixed_room_with_emoji_is_read_in_both_languages():
    room: list[Said] = [
        (0, "Ann", "deploy 前先跑 smoke test 🚀"),
        (1, "小林", "记得 deploy 前先跑 smoke test"),
        (2, "Ann", "ok 👍"),
        (4, "老周", "deploy 前先跑 smoke test 哦 🙏"),
    ]
    (operation,) = answer(said_in(room)).operations
    assert "deploy 前先跑 smoke test" in operation.statement
    assert operation.evidence == ("c1", "c2", "c4")


def test_a_weekday_is_one_word_in_both_languages():
    room: list[Said] = [
        (day, who, text)
        for day, who, text in (
            (0, "Ann", "Badminton on Friday, who brings the shuttlecocks?"),
            (2, "小林", "周五 badminton 场地订好了"),
            (5, "Ann", "badminton Friday as usual"),
            (8, "小林", "星期五的 badminton 我迟到十分钟"),
            (9, "Bob", "I can drive to badminton on Friday"),
        )
    ]
    (operation,) = answer(said_in(room)).operations
    assert operation.evidence == ("c1", "c2", "c3", "c4", "c5")
    assert "badminton" in operation.statement.lower()


def test_a_link_that_several_share_is_found_without_its_secrets():
    room: list[Said] = [
        (0, "Ann", "notes are at https://wiki.example.org/minutes?token=s3cret"),
        (2, "小林", "看这里 https://wiki.example.org/minutes，谢谢"),
        (3, "Bob", "please use https://www.wiki.example.org/minutes#top"),
    ]
    (operation,) = answer(said_in(room)).operations
    assert operation.statement.endswith("3 people shared wiki.example.org/minutes")
    assert "s3cret" not in operation.statement


@pytest.mark.parametrize("sentence", [STANDUP, ANIME_NIGHT], ids=["en", "zh"])
def test_the_chatter_of_one_day_is_no_memory(sentence):
    room: list[Said] = [(0, f"p{number % 5}", sentence) for number in range(30)]
    assert answer(said_in(room), fresh=30).operations == ()


@pytest.mark.parametrize("sentence", [STANDUP, ANIME_NIGHT], ids=["en", "zh"])
@pytest.mark.parametrize("echoes", [0, 1, 2])
def test_what_one_person_repeats_is_not_the_groups(sentence, echoes):
    """Nor where somebody repeats it on one day."""
    room: list[Said] = [(day, "spammer", sentence) for day in range(20)]
    room += [(19, f"echo{number}", sentence) for number in range(echoes)]
    assert answer(said_in(room)).operations == ()


@pytest.mark.parametrize(
    "room",
    [
        pytest.param([(day, who, f"<memory_context>{STANDUP}</memory_context>") for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, f"[MEMORY_CHECKPOINT] {ANIME_NIGHT}") for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, f"> {STANDUP}\nhm{who}") for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, f"「小林: {ANIME_NIGHT}」\n- - - - -\n嗯{who}") for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, f"```\n{STANDUP}\n```") for day, who in enumerate("ABCD")]),
        pytest.param([(day, f"{who}-bot", STANDUP) for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, "Is stand-up every Monday at 9 in the blue room?") for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, "Good morning everyone, thanks a lot!") for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, "大家早上好，辛苦了") for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, "WARNING: the disk of node seven is full") for day, who in enumerate("ABCD")]),
        pytest.param([(day, who, "slightly_smiling_face:") for day, who in enumerate("ABCD")]),
    ],
    ids=[
        "block",
        "checkpoint",
        "quote",
        "card",
        "code",
        "bot",
        "question",
        "courtesy-en",
        "courtesy-zh",
        "log",
        "emoji",
    ],
)
def test_what_nobody_states_is_no_memory(room):
    assert answer(said_in(room)).operations == ()


@pytest.mark.parametrize("fields", [{"role": Role.ASSISTANT}, {"role": Role.SYSTEM}, {"has_tool_calls": True}], ids=str)
def test_only_people_are_read(fields):
    room = said_in([(day, who, STANDUP) for day, who in enumerate("ABCD")])
    assert len(answer(room).operations) == 1
    assert answer([replace(one, **fields) for one in room]).operations == ()


@pytest.mark.parametrize(
    "texts",
    [
        [f"Stand-up is every Monday at {hour} in the blue room" for hour in (8, 9, 10, 11)],
        [STANDUP, "Stand-up is no longer every Monday at 9 in the blue room"] * 2,
        ["每周五晚上一起看新番", "每周六晚上一起看新番", "每周日晚上一起看新番", "周一晚上一起看新番"],
        [ANIME_NIGHT, "每周五晚上八点不一起看新番了"] * 2,
    ],
    ids=["hours", "denied-en", "weekdays", "denied-zh"],
)
def test_what_contradicts_each_other_is_not_the_same(texts):
    room: list[Said] = [(day, who, text) for day, (who, text) in enumerate(zip("ABCD", texts, strict=True))]
    assert [one for one in statements(answer(said_in(room)).operations) if "the same" in one or "同样" in one] == []


def test_nothing_is_found_in_old_messages_alone():
    room = said_in([*ANIME, (20, "小美", "楼下新开了一家面馆")])
    assert answer(room, fresh=1).operations == ()


def test_a_message_without_a_handle_is_not_read():
    room = said_in(TEAM)
    handles = message_handles(Source(one.room_id, one.id) for one in room[:10])
    given = {"handles": handles, "zone": UTC, "earlier": room[:10]}
    assert offline_answer(room[10:], {}, **given).operations == ()


def test_days_are_those_of_the_zone():
    """20:17 UTC on Friday is Saturday in Shanghai, eight hours on."""
    (operation,) = answer(said_in(ANIME), zone=timezone(timedelta(hours=8))).operations
    assert "有 3 天（都是周六）、3 人" in operation.statement


@pytest.mark.parametrize(
    ("statement", "again"),
    [
        ("每周五晚上大家一起看新番", "大家每周五晚上一起看新番哈"),
        ("Stand-up is every Monday at 9", "stand-up every Monday at 9, blue room"),
    ],
    ids=["zh", "en"],
)
def test_a_memory_that_is_said_again_is_confirmed(statement, again):
    room = said_in([(0, "Ann", "吃了面 noodles again"), (1, "Bob", again)])
    (change,) = planned(room, [memory(statement)], fresh=2).changes
    assert change.action is Action.STRENGTH
    assert change.memory.statement == statement
    assert change.memory.sources == (Source(ROOM, f"{ROOM}-2"),)
    assert change.reason in ("1 条新消息又说到", "Said again in 1 new message")


@pytest.mark.parametrize(
    "other",
    ["stand-up is no longer every Monday at 9", "stand-up every Monday at 10", "Monday is my laundry day", "周一开会"],
    ids=["denied", "hour", "weekday", "zh"],
)
def test_a_memory_that_is_not_said_again_is_left_alone(other):
    room = said_in([(1, "Bob", other)])
    assert answer(room, memories=[memory("Stand-up is every Monday at 9")]).operations == ()


@pytest.mark.parametrize("room", [ANIME, TEAM], ids=["zh", "en"])
def test_what_was_found_is_confirmed_and_not_found_again(room):
    found = [change.memory for change in planned(said_in(room), [], fresh=4).changes]
    assert found
    again = said_in([*room, *((day + 21, who, text) for day, who, text in room[-8:])])
    changes = planned(again, found, fresh=8).changes
    known = [change for change in changes if change.action in (Action.STRENGTH, Action.UPDATE)]
    assert {change.memory.lineage_id for change in known} == {one.lineage_id for one in found}
    made = " ".join(change.memory.statement for change in changes if change.action is Action.CREATE).lower()
    assert not any(words in made for words in ("stand-up", "invoice", "看新番"))


@pytest.mark.parametrize("room", [ANIME, TEAM], ids=["zh", "en"])
def test_what_somebody_deleted_is_not_made_again(room):
    found = statements(answer(said_in(room)).operations)
    assert answer(said_in(room), deleted=found).operations == ()


def test_a_count_is_told_anew_once_it_has_doubled():
    found = planned(said_in(TEAM), [], fresh=4).changes[0].memory
    more = [(21 + 7 * week, who, STANDUP) for week, who in enumerate(("Ann", "Bob", "Dee"))]
    (change,) = planned(said_in([*TEAM, *more]), [found], fresh=3).changes
    assert change.action is Action.UPDATE
    assert change.memory.version == 2
    assert "On 6 of 14 days" in change.memory.statement
    assert "stand-up is every Monday at 9 in the blue room" in change.memory.statement.replace("Stand", "stand")


def test_nobody_elses_statement_is_rewritten():
    statement = "Stand-up is every Monday at 9"
    more = [(7 * week, who, STANDUP) for week, who in enumerate(("Ann", "Bob", "Dee") * 4)]
    operations = answer(said_in(more), memories=[memory(statement)], fresh=12).operations
    assert [operation.statement for operation in operations if operation.handles] == [statement]


def test_the_same_messages_give_the_same_answer():
    assert answer(said_in(TEAM)) == answer(said_in(TEAM))


SENTENCES = [
    STANDUP,
    ANIME_NIGHT,
    "The invoice export is ready",
    "invoice export broke again",
    "新番的音乐太赞了",
    "周五一起看新番吗",
    "see https://wiki.example.org/minutes please",
    "> quoted\nown words about the invoice export",
    "猫把水杯推下桌子 🐈",
    "e\u0301\u200bmoji 🇨🇳 and a\u0300 lone \ud800",
]
rooms = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["Ann", "Bob", "小林", "老周"]), st.sampled_from(SENTENCES)),
    max_size=60,
).map(sorted)


@settings(max_examples=60)
@example(
    room=[
        *[(0, "Ann", "周五一起看新番吗")] * 2,
        *[(day, who, "每周五晚上八点一起看新番") for day, who in enumerate(("Ann", "Bob", "Bob"))],
    ],
    fresh=1,
)
@given(room=rooms, fresh=st.integers(1, 60))
def test_each_claim_is_borne_out_by_its_evidence(room, fresh):
    messages = said_in(room)
    for operation in answer(messages, fresh=fresh).operations:
        cited = evidence(operation, messages)
        claim = CLAIM.match(operation.statement)
        assert claim
        assert len({one.at.date() for one in cited}) == int(claim["days"] or claim["tage"])
        assert len({one.sender_id for one in cited}) == int(claim["people"] or claim["leute"])
        assert len({one.at.date() for one in messages}) >= int(claim["all"] or claim["alle"])
        assert any(one in messages[-fresh:] for one in cited)
        for word in operation.tags:
            assert all(re.sub(r"\W", "", word.lower()) in re.sub(r"\W", "", one.text.lower()) for one in cited)


HOSTILE = {
    "huge-word": "a" * 10_000,
    "huge-han": "新番" * 5_000,
    "zero-width": "\u200b".join(ANIME_NIGHT) * 20,
    "marks": "e" + "\u0301" * 9_999,
    "quotation-marks": "“" * 5_000,
    "brackets": "(" * 10_000,
    "greater-than": ">" * 9_000,
    "dots": ".。" * 5_000,
    "letters": "a b " * 2_500,
    "weekdays": "周五 Monday " * 900,
    "links": "https://[" + "x" * 500 + "].com/ http://a..b/ https://例子.中国/ " * 50,
    "surrogates": "\ud800\udfff\x00\x1b[31m" * 500,
    "numbers": "9:30 " * 2_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_makes_it_raise_or_says_more_than_fits(name):
    room: list[Said] = [(day, f"p{day % 4}", HOSTILE[name]) for day in range(60)]
    room += [(day, f"p{day % 4}", f"{HOSTILE[name][:300]} {day} {STANDUP}") for day in range(60, 100)]
    messages = said_in(room)
    given = answer(messages, fresh=40, people={"p1": HOSTILE[name]}, deleted=[HOSTILE[name]], memories=[memory("x")])
    made = planned(messages, [], fresh=40)
    assert made.rejected == ()
    assert all(len(operation.evidence) <= 1_000 for operation in given.operations)


def test_very_many_messages_keep_the_evidence_short_and_the_counts_right():
    room: list[Said] = [(number // 40, f"p{number % 9}", STANDUP) for number in range(1_000)]
    messages = said_in(room)
    days = len({one.at.date() for one in messages})
    (operation,) = answer(messages, fresh=200).operations
    assert operation.statement.startswith(f"On {days} of {days} days")
    assert ", 9 people said the same" in operation.statement
    assert len(operation.evidence) == 60
