"""Finding and taking out what tells of a person."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from roomlore.core.memory.memory import Action, Change, Evolution, Memory, MemoryKind, Source
from roomlore.core.models import MessageFeatures, ReplyInfo, StoredMessage
from roomlore.core.privacy import (
    Redaction,
    Taken,
    Traces,
    features_without,
    passages,
    record_without,
    weight,
    without_copies,
    without_person,
)
from roomlore_testkit.case_table import all_cases

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "weighs"), [("ok", 2), ("好的", 4), ("see you", 7), ("🥜", 2), ("e\u0301", 1), ("", 0)], ids=range(6)
)
def test_wide_characters_weigh_twice(text, weighs):
    assert weight(text) == weighs


def test_passages_are_the_whole_and_its_lines_but_nothing_short():
    text = "good morning\nmy locker is number 4471\nok\n我住在梧桐路十四号"
    assert passages(text) == [text, "good morning", "my locker is number 4471", "我住在梧桐路十四号"]
    assert passages("thanks!") == passages("谢谢大家") == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("ask anna-7 about it", "ask [forgotten] about it"),
        ("ask anna-7.", "ask [forgotten]."),
        ("问一下anna-7吧", "问一下[已删除]吧"),
        ("anna-77, joanna-7, anna-7.b and anna-7_c are others", "anna-77, joanna-7, anna-7.b and anna-7_c are others"),
        ("user:anna-7", "[forgotten]"),
        ("anna-7: see you at noon", "[forgotten]: see you at noon"),
        ("Anna-7, ANNA-7 and Anna-77", "[forgotten], [forgotten] and Anna-77"),
    ],
    ids=range(7),
)
def test_an_id_is_a_whole_word(text, left):
    assert Traces("anna-7").redact(text) == left
    assert Traces("anna-7").mentioned(text) == (left != text)


@pytest.mark.parametrize("user_id", ["7", "u1", "1234", "明"], ids=range(4))
def test_a_short_id_counts_in_a_text_only_where_it_is_addressed(user_id):
    traces = Traces(user_id)
    assert traces.redact(f"there are {user_id} of them, 一共 {user_id} 个") == (
        f"there are {user_id} of them, 一共 {user_id} 个"
    )
    assert traces.redact(f"thanks a lot @{user_id} !") == "thanks a lot @[forgotten] !"
    assert traces.redact(f"<at user_id='{user_id}'>A</at>") == "<at user_id='[forgotten]'>A</at>"
    assert traces.mentioned(f"facts:{user_id}")


def test_a_chinese_id_has_an_edge_everywhere():
    assert Traces("小明7号").redact("我和小明7号一起去") == "我和[已删除]一起去"


ADDRESSED = [
    ("will", "I will come, will you? Will", None),
    ("will", "so will: no", None),
    ("will", "Will, see you\nwill : yes", "[forgotten], see you\n[forgotten] : yes"),
    ("will", "thanks @Will will you?", "thanks @[forgotten] will you?"),
    ("will", "<at user_id='will'>", "<at user_id='[forgotten]'>"),
    ("will", "willow: hi, mr.will: hi, will.com", None),
    ("明天见面", "我们明天见面吧", None),
    ("明天见面", "明天见面：好的", "[已删除]：好的"),
    ("will_7", "I will_7 come", "I [forgotten] come"),
    ("ou_will", "I ou_will come", "I [forgotten] come"),
    ("abcdefghijklmnopqrstuv", "I abcdefghijklmnopqrstuv come", "I [forgotten] come"),
]


def test_an_id_that_is_a_word_counts_in_a_text_only_where_it_is_addressed():
    """A regression: the ids of IRC are nicks, and 'I will come' lost its verb."""
    with all_cases() as case:
        for user_id, text, left in ADDRESSED:
            with case(user_id, text):
                assert Traces(user_id).redact(text) == (left or text)
                assert Taken().redact(text, Traces(user_id)) == (left or text)
                assert Traces(user_id).has_id(text) == (left is not None)


def test_an_id_that_is_a_word_counts_where_the_message_or_the_name_is_theirs():
    traces = Traces("will")
    assert Taken(named=True).redact("ask will about it", traces) == "ask [forgotten] about it"
    assert traces.in_label("phone of will")
    assert not traces.in_label("phone of willow")
    assert traces.redact_name("phone of will") == "phone of [forgotten]"
    assert traces.redact_name("user:will") == "[forgotten]"
    assert traces.named_in("dm/will")


@pytest.mark.parametrize(
    ("said", "text", "left"),
    [
        ("I live in Elm Street", "he wrote: I live in Elm Street!", "he wrote: [forgotten]!"),
        ("我对花生过敏很严重", "她说我对花生过敏很严重，记住", "她说[已删除]，记住"),
        ("I live in Elm Street", "I live in elm street", "I live in elm street"),
    ],
    ids=["en", "zh", "other words"],
)
def test_a_passage_is_taken_out_wherever_it_stands(said, text, left):
    assert Traces("u", [said]).redact(text) == left


def test_the_longest_passage_wins_and_neighbours_become_one_mark():
    traces = Traces("u", ["number seventeen", "number seventeen in the yard", "beside the well"])
    assert traces.redact("number seventeen in the yardbeside the well, or not") == "[forgotten], or not"


@pytest.mark.parametrize(
    ("said", "before", "left"),
    [
        ("shoes by the red door", "he wrote ", "he wrote [forgotten]"),
        ("门口的那双红色鞋子", "他写道：", "他写道：[已删除]"),
    ],
    ids=["en", "zh"],
)
def test_a_passage_at_the_end_goes_where_a_longer_one_begins_like_it(said, before, left):
    """A regression: the longer one's length was taken for its, and nothing was cut out."""
    traces = Traces("u", [said, f"{said}, and many more words, 还有很多很多话"])
    assert traces.redact(before + said) == left
    assert traces.redact(said) in ("[forgotten]", "[已删除]")


def test_names_go_only_where_asked_for():
    traces = Traces("u-123", names=["Anna", "小林", "A"])
    assert traces.redact("Anna and 小林 and A") == "Anna and 小林 and A"
    assert traces.redact("Anna, Annabel and 小林 and A", and_names=True) == "[forgotten], Annabel and [forgotten] and A"


def test_a_part_of_what_was_said_is_a_copy():
    said = "my new flat is on the third floor of the mill, come by"
    assert (
        without_copies("she said her new flat is on the third floor of the mill", [said]) == "she said her [forgotten]"
    )
    assert without_copies("the third floor", [said]) == "the third floor"
    assert without_copies("他说下周三晚上在老地方见面", ["我们下周三晚上在老地方见"]) == "他说[已删除]面"


def test_a_short_line_is_a_copy_and_a_shorter_one_where_it_is_quoted():
    assert without_copies("you said: PIN 4471!", ["PIN 4471"]) == "you said: [forgotten]!"
    assert without_copies("你说过我怀孕了", ["我怀孕了"]) == "你说过[已删除]"
    assert without_copies("> no\n>> yes\nno way", ["no\nyes"]) == "> [forgotten]\n>> [forgotten]\nno way"


def test_a_long_sentence_is_a_passage():
    said = "Hi all. The man next door reads every letter of mine. Help!"
    assert passages(said) == [said, "The man next door reads every letter of mine."]
    assert passages("你们好。我楼下的邻居每天都偷看我的信件和包裹。")[1:] == ["我楼下的邻居每天都偷看我的信件和包裹。"]


@pytest.mark.parametrize(
    ("user_id", "name", "named"),
    [
        ("user", "user:ben", False),
        ("user", "facts:user", True),
        ("user", "user:user", True),
        ("anna-7", "user:Anna-7", False),
        ("anna-7", "dm/anna-7", True),
        ("anna-7", "anna-77", False),
        ("小林", "小林子", False),
        ("小林", "群/小林", True),
        ("anna!", "anna!b", False),
    ],
    ids=range(9),
)
def test_names_of_things_count_letter_by_letter(user_id, name, named):
    assert Traces(user_id).named_in(name) is named


@pytest.mark.parametrize(
    ("path", "named"), [("chats/ann.json", True), ("annual.json", False), ("小林.json", False)], ids=range(3)
)
def test_a_path_names_somebody_by_a_whole_word(path, named):
    assert Traces("ann").in_path(path) is named


def test_a_number_may_be_an_id():
    metadata = {"from": 123456789, "size": 1234, "seen": True, "others": [123456780]}
    message = StoredMessage(id="2", room_id="r", sender_id="b", arrival=2, sent_at=NOW, metadata=metadata)
    left = without_person(message, Traces("123456789"), taken=Taken(), gone=())
    assert left.metadata == {**metadata, "from": "[forgotten]"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("I live in Elm Street", "I live in Elm Street"),
        ("> I live in Elm Street\nwhere?", "> [forgotten]\nwhere?"),
        ('she said "I live in Elm Street" to me', 'she said "[forgotten]" to me'),
        ("“I live in Elm Street” or “not", "“[forgotten]” or “not"),
        ('"or not" I live in Elm Street "hm"', '"or not" I live in Elm Street "hm"'),
        ("「我对花生过敏很严重」收到", "「[已删除]」收到"),
        ("我对花生过敏很严重", "我对花生过敏很严重"),
    ],
    ids=range(7),
)
def test_without_a_link_a_passage_counts_in_a_quotation_alone(text, left):
    traces = Traces("u-123", ["I live in Elm Street", "我对花生过敏很严重"])
    assert Taken().redact(text, traces) == left
    assert Taken(counts=lambda _: False).redact(text, traces) == text
    assert "[" in Taken(linked=True).redact(text, traces)


def test_a_call_by_name_goes_where_it_is_theirs():
    traces = Traces("u-123", names=["Lena Lund"])
    text = "@Lena Lund, @\u2068lena lund\u2069 and Lena Lund"
    assert Taken().redact(text, traces) == text
    assert Taken(called=True).redact(text, traces) == "@[forgotten], @\u2068[forgotten]\u2069 and Lena Lund"


def test_a_text_of_others_tells_by_a_name_beside_the_words():
    traces = Traces("u-123", ["I live in Elm Street"], ["Lena"])
    assert not traces.tells("I live in Elm Street")
    assert not traces.tells("Lena likes tea")
    assert traces.tells("Lena: I live in Elm Street")
    assert traces.redact_others("I live in Elm Street") == "I live in Elm Street"
    assert traces.redact_others("Lena: I live in Elm Street") == "Lena: [forgotten]"


def test_somebody_elses_message_loses_the_person_and_no_more():
    message = StoredMessage(
        id="2", room_id="r", sender_id="ben", arrival=2, sent_at=NOW, text="> I live in Elm Street\n@anna-7 where?",
        mentions=("anna-7", "cid"), reply_to="1", root_id="0", topic_id="1", turn_id="t1",
        metadata={"anna-7": ["I live in Elm Street", 3, None], "n": 1},
    )  # fmt: skip
    traces = Traces("anna-7", ["I live in Elm Street"])
    left = without_person(message, traces, taken=Taken(linked=True), gone={"1"})
    assert left == replace(
        message, text="> [forgotten]\n@[forgotten] where?", mentions=("cid",), reply_to=None,
        metadata={"[forgotten]": ["[forgotten]", 3, None], "n": 1},
    )  # fmt: skip
    features = MessageFeatures(
        mentions=("anna-7", "cid"), addressed=("anna-7",), partners=("cid", "anna-7"), keywords=("elm",),
        reply=ReplyInfo(kind="reply", message_id="1", sender_id="anna-7"),
    )  # fmt: skip
    assert features_without(features, traces, gone={"1"}) == MessageFeatures(
        mentions=("cid",), partners=("cid",), keywords=("elm",), reply=ReplyInfo(kind="reply")
    )


MINE, OTHERS, BOT = Source("r", "mine"), Source("r", "others"), Source("r", "bot")


def memory(statement: str, *sources: Source, **more) -> Memory:
    return Memory(
        memory_id="m", lineage_id="m", scope="group:r", kind=MemoryKind.GROUP, statement=statement, sources=sources,
        created_at=NOW, updated_at=NOW, supported_at=NOW, **more,
    )  # fmt: skip


def redaction(**more) -> Redaction:
    said = {MINE: "I cannot eat any walnuts at all"}
    return Redaction(Traces("anna-7", names=["Anna"]), said.get, frozenset([OTHERS]), **more)


def test_a_memory_that_rests_on_the_person_alone_says_nothing_any_more():
    before = memory("Anna cannot eat walnuts", MINE, BOT, tags=("food",), category="health", change_summary="Anna said")
    assert redaction().version(before) == memory("[forgotten]")
    assert redaction().version(memory("安娜不能吃核桃", MINE)) == memory("[已删除]")


def test_a_memory_that_rests_on_others_too_loses_the_person():
    before = memory("Anna and Ben bake", MINE, OTHERS, tags=("Anna", "cake"))
    assert redaction().version(before) == memory("[forgotten] and Ben bake", OTHERS, tags=("[forgotten]", "cake"))


def test_words_that_the_person_changed_since_are_known_to_nobody():
    before = memory("walnuts are bad for them, and Ben bakes", MINE, OTHERS)
    for later, left in ((NOW + timedelta(seconds=1), memory("[forgotten]")), (NOW, replace(before, sources=(OTHERS,)))):
        assert redaction(edited_at={MINE: later}.get).version(before) == left


def test_a_deleted_message_may_have_been_theirs():
    without = redaction(deleted=frozenset([BOT]))
    assert without.version(memory("Anna hates nuts", BOT)) == memory("[forgotten]")
    assert without.version(memory("Anna hates nuts", BOT, OTHERS)) == memory("[forgotten] hates nuts", OTHERS)


def test_a_memory_of_others_keeps_names_and_loses_the_id():
    assert redaction().version(memory("Anna likes tea", OTHERS)) == memory("Anna likes tea", OTHERS)
    assert redaction().version(memory("anna-7 likes tea", OTHERS)) == memory("[forgotten] likes tea", OTHERS)


def test_a_memory_of_others_keeps_the_same_words():
    traces = Traces("anna-7", ["I cannot eat any walnuts"], ["Anna"])
    mine = {MINE: "I cannot eat any walnuts at all"}
    others = memory("I cannot eat any walnuts", OTHERS)
    assert Redaction(traces, mine.get, frozenset([OTHERS])).version(others) == others
    assert Redaction(traces, mine.get, frozenset([OTHERS]), shared=True).version(others) == others
    unsaid = memory("I cannot eat any walnuts")
    assert Redaction(traces, mine.get).version(unsaid) == unsaid
    assert Redaction(traces, mine.get, shared=True).version(unsaid) == memory("[forgotten]")
    named = memory("Anna: I cannot eat any walnuts", OTHERS)
    assert Redaction(traces, mine.get, frozenset([OTHERS])).version(named) == memory("Anna: [forgotten]", OTHERS)


def test_an_entry_of_the_log_follows_its_memory_and_what_was_said_before():
    old, new = memory("Anna cannot eat walnuts", MINE), memory("Ben brings bread", OTHERS)
    entry = Change(number=2, scope="group:r", action=Action.UPDATE, memory=new, old_statement=old.statement, at=NOW)
    without = redaction()
    assert without.entry(entry, without.statements([old, new])) == replace(entry, old_statement="[forgotten]")
    own = replace(entry, memory=old, reason="Anna told us so")
    assert without.entry(own, {}).reason == ""


def test_forgetting_twice_changes_nothing_more():
    for whole in (False, True):
        without = redaction(whole=whole)
        for one in (memory("Anna cannot eat walnuts", MINE), memory("Anna and Ben bake", MINE, OTHERS)):
            entry = Change(number=1, scope="group:r", action=Action.CREATE, memory=one, reason="why", at=NOW)
            once = without.entry(entry, {})
            assert without.entry(once, {}) == once
            assert once.memory == without.version(one)


def test_a_record_that_read_the_person_keeps_numbers_and_names():
    record = Evolution(
        evolution_id="e", scope="group:r", kind="evolution", status="applied", room_id="r", first_arrival=1,
        last_arrival=9, messages=9, raw_answer='{"statement": "Anna cannot eat walnuts"}',
        quarantined=(("Anna", "no JSON"),), facts={"mode": "llm", "kept": 3, "said": ["Anna eats no nuts", "安娜"]},
        error="Anna", started_at=NOW, finished_at=NOW,
    )  # fmt: skip
    left = record_without(record, Traces("anna-7"), touched=True)
    assert (left.raw_answer, left.quarantined, left.error) == ("", (), "")
    assert left.facts == {"mode": "llm", "kept": 3, "said": ["[forgotten]", "[已删除]"]}
    assert record_without(record, Traces("anna-7"), touched=False) == record
