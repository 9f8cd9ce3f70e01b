"""People named in a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.mentions import Mentions, find_mentions, ids_named, with_names
from roomlore_testkit.case_table import all_cases

NAMES = {
    "anna": "U1",
    "anna lindt": "U2",
    "张三": "ou_1",
    "张三丰": "ou_2",
    "foo_": "foo_",
    "foo-bar|away": "foo-bar|away",
    "[baz]": "[baz]",
    "well": "W",
    "python": "P",
    "u9": "U9",
    "bo": "B",
}


FORMS = [
    ("@anna hi", ["U1"], ["U1"]),
    ("@Anna Lindt hi", ["U2"], ["U2"]),
    ("ask @ANNA.", ["U1"], []),
    ("@张三你好", ["ou_1"], ["ou_1"]),
    ("@张三丰你好", ["ou_2"], ["ou_2"]),
    ("问一下＠张三 吧", ["ou_1"], []),
    ("anna: yes", ["U1"], ["U1"]),
    ("Anna, yes", ["U1"], ["U1"]),
    ("张三：在", ["ou_1"], ["ou_1"]),
    ("张三，在", ["ou_1"], ["ou_1"]),
    ("foo_: anna: see", ["foo_", "U1"], ["foo_", "U1"]),
    ("anna and foo_: see", ["U1", "foo_"], ["U1", "foo_"]),
    ("foo-bar|away: x", ["foo-bar|away"], ["foo-bar|away"]),
    ("[baz]: x", ["[baz]"], ["[baz]"]),
    ("anna you are right", ["U1"], ["U1"]),
    ("I told anna so", ["U1"], []),
    ("I told foo_ and [baz].", ["foo_", "[baz]"], []),
    ("anna's idea", ["U1"], []),
    ("问下张三这个", ["ou_1"], []),
    ("well, I think so", [], []),
    ("well: look here", ["W"], ["W"]),
    ("I use python and bo", [], []),
    ("annabel is here", [], []),
    ("in /home/anna/x", [], []),
    ("mail anna@example.org or x.y@anna", [], []),
    ("<@U9> and <@U77|somebody>", ["U9", "U77"], ["U9"]),
    ("<@!123> hi", ["123"], ["123"]),
    ('<at user_id="ou_1">张三</at> 看下', ["ou_1"], ["ou_1"]),
    ("@newcomer hi", ["newcomer"], ["newcomer"]),
    ("@新同事 你好", ["新同事"], ["新同事"]),
    ("import @angular/core", [], []),
    ("call @Input() here", [], []),
    ("12:30, fine", [], []),
    ("@", [], []),
    ("", [], []),
]


def test_forms():
    with all_cases() as case:
        for text, people, addressed in FORMS:
            with case(text):
                assert find_mentions(text, NAMES) == Mentions(tuple(people), tuple(addressed))


@pytest.mark.parametrize(
    "text",
    [
        "@all look",
        "hey @everyone",
        "@here",
        "@channel!",
        "<!here> hi",
        "@全体成员 开会",
        "＠所有人",
        "请@全体",
        "@大家",
    ],
)
def test_calls_to_everybody(text):
    assert find_mentions(text, NAMES) == Mentions(everyone=True)


@pytest.mark.parametrize("text", ["all of us", "@allan hi", "大家好", "@here_we_go"])
def test_no_calls_to_everybody(text):
    assert not find_mentions(text, NAMES).everyone


PIECES = [*"@＠<>!|:,：，「」 \n/._-anUu9张三丰全体", "anna", "@anna", "<@U9>", "@all"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_names_known_people_once(text):
    found = find_mentions(text, NAMES)
    assert len(set(found.people)) == len(found.people)
    assert set(found.addressed) <= set(found.people)


def test_a_known_sender_is_found_however_the_at_is_written():
    for at in "@＠":
        for name, sender in NAMES.items():
            assert sender in find_mentions(f"你看 {at}{name.upper()} 这里", NAMES).people


_PIECES = [*"abno_[]|^-@/. :,\\\n", " anna ", " foo_ ", "[baz]", "foo-bar|away"]


@given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_plain_ascii_is_read_as_it_is_beside_other_text(text):
    assert find_mentions(text, NAMES) == find_mentions(f"{text}\n é", NAMES)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@123 你看下日志", "@小明 你看下日志"),
        ("@123你看", "@小明你看"),
        ("问问@123。", "问问@小明。"),
        ("ask @123.", "ask @小明."),
        ("<@123> and <@!77|bob> look", "@小明 and @Bob look"),
        ('<at user_id="123"></at> 看看', "@小明 看看"),
        ("@77 is nobody the platform mentions", "@77 is nobody the platform mentions"),
        ("@999 <@999> @1234 a@123 ab", "@999 <@999> @1234 a@123 ab"),
        ("@all @全体成员 <!here>", "@all @全体成员 <!here>"),
    ],
)
def test_people_mentioned_by_their_ids_are_shown_by_their_names(text, shown):
    assert with_names(text, {"123": "小明", "77": "Bob", "5": ""}, ["123"]) == shown
    ids = ids_named(text, ["123"])
    assert with_names(text, {one: {"123": "小明", "77": "Bob"}.get(one, "") for one in ids}, ["123"]) == shown


@given(st.lists(st.sampled_from([*"@<>!|.-", "123", "<@", "<at id=", "</at>", "小明", " "]), max_size=40).map("".join))
def test_names_go_into_any_text(text):
    assert with_names(text, {}, ["123"]) == text
    assert with_names(text, {"123": "Bo"}, []) == text or "<" in text
