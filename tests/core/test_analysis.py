"""From messages to features, and who is known by which name."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.analysis import Participants, analyse
from roomlore.core.models import Message, MessageFeatures, MessageType, ReplyInfo, Role
from roomlore_testkit.case_table import all_cases

PEOPLE = Participants.of({"U1": "Anna Lindt", "ou_1": "张三", "ou_2": "周雨桐", "foo_": "", "genii": "", "me": "Me"})


def features(text, **given):
    return analyse(Message(**{"id": "1", "room_id": "r", "sender_id": "me", "text": text, **given}), PEOPLE)


TYPES = [
    ("how do I fix it", "question"),
    ("genii: what version?", "question"),
    ("谁有多余的线", "question"),
    ("@张三 这个怎么弄", "question"),
    ("genii: use apt for that", "answer"),
    ("张三，在抽屉里", "answer"),
    ("> is it on?\nit is switched on", "answer"),
    ("I upgraded the kernel yesterday", "discussion"),
    ("今天的版本已经发了", "discussion"),
    ("thanks genii!", "casual"),
    ("genii: thanks a lot", "casual"),
    ("谢谢", "casual"),
    ("hi all", "casual"),
    ("哈哈哈哈", "casual"),
    ("好的，收到", "casual"),
    ("👍👍", "casual"),
    ("", "casual"),
    ("谢谢，收到了", "casual"),
    ("谢谢你帮我搬家", "casual"),
    ("谢谢，还要旧密码", "discussion"),
    ("thanks, I also need the old password", "discussion"),
    ("hi, please send me the file", "discussion"),
    ("@全体成员 明天放假", "notification"),
    ("【通知】周五停电", "notification"),
    ("公告：新版本已上线", "notification"),
    ("张三 加入了群聊", "notification"),
    ("genii has joined the channel", "notification"),
]


class TestTypes:
    def test_golden(self):
        with all_cases() as case:
            for text, expected in TYPES:
                with case(text):
                    assert features(text).message_type == expected

    @pytest.mark.parametrize("role", [Role.SYSTEM, Role.TOOL])
    def test_machine_roles_notify(self, role):
        assert features("what?", role=role).message_type is MessageType.NOTIFICATION

    def test_replies_and_assistants_answer(self):
        assert features("it is on the left", reply_to="0").message_type is MessageType.ANSWER
        assert features("it is on the left", role=Role.ASSISTANT).message_type is MessageType.ANSWER
        assert features("it is on the left").message_type is MessageType.DISCUSSION


SIGNS = [
    ("genii: yes", {"reply_to": "0", "root_id": "9"}, ReplyInfo(kind="reply", message_id="0")),
    ("genii: yes", {"root_id": "9"}, ReplyInfo(kind="thread", message_id="9")),
    ("yes", {"reply_to": "1", "root_id": "1"}, None),
    ("> so\nyes", {}, ReplyInfo(kind="quote")),
    ("&gt; so\nyes", {}, ReplyInfo(kind="quote")),
    (">:( no", {}, None),
    ("「张三：吃了吗」\n- - - - - - -\n吃了", {}, ReplyInfo(kind="quote", sender_id="ou_1")),
    ("「张三」", {}, None),
    (
        "yes",
        {"metadata": {"quote": {"id": "7", "sender_id": "U1"}}},
        ReplyInfo(kind="quote", message_id="7", sender_id="U1"),
    ),
    ("yes", {"metadata": {"quote": "so?"}}, ReplyInfo(kind="quote")),
    ("yes", {"metadata": {"quote": {"id": 7, "sender_id": ["U1"]}}}, ReplyInfo(kind="quote")),
    ("genii: yes", {}, ReplyInfo(kind="mention", sender_id="genii")),
    ("@周雨桐 好", {}, ReplyInfo(kind="mention", sender_id="ou_2")),
    ("I saw genii", {}, None),
]


class TestReplies:
    def test_the_strongest_sign_counts(self):
        with all_cases() as case:
            for text, given, expected in SIGNS:
                with case(repr(text), given):
                    assert features(text, **given).reply == expected

    def test_a_quotation_belongs_to_its_author(self):
        found = features("> @genii: is the printer on?\nit is now")
        assert (found.mentions, found.message_type) == ((), MessageType.ANSWER)
        assert "printer" in found.keywords


class TestMentions:
    def test_platform_mentions_come_first_and_once(self):
        found = features("@Anna Lindt and genii", mentions=("genii", "U1", "U7"))
        assert found.mentions == ("genii", "U1", "U7")
        assert found.addressed == ("U1",)

    def test_nobody_mentions_himself(self):
        found = features("Me: and @me too, genii", mentions=("me",))
        assert (found.mentions, found.addressed) == (("genii",), ())

    @pytest.mark.parametrize("everybody", ["all", "@all", "everyone", "here", "channel"])
    def test_the_platform_mentions_all(self, everybody):
        found = features("look", mentions=(everybody, "U1"))
        assert (found.mentions, found.mentions_all) == (("U1",), True)

    def test_given_names_and_ornaments(self):
        assert features("anna: look").mentions == ("U1",)
        assert features("雨桐你看").mentions == ("ou_2",)
        assert features("foo: look").mentions == ("foo_",)


class TestKeywords:
    def test_caption_is_read_with_the_text(self):
        assert features("看图", metadata={"caption": "服务器日志"}).keywords == ("图", "服务器", "日志")
        assert features("", metadata={"caption": "what is the kernel panic?"}).message_type is MessageType.QUESTION
        assert features("", metadata={"caption": 7}).keywords == ()

    def test_names_of_those_mentioned_are_none(self):
        assert features("genii: <@U1> the kernel, 张三").keywords == ("kernel",)


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.sampled_from(["", "Ann", "ann", "a", "b", "ann_", "Ann Lee", "王小明", "小明"])
    ),
    max_size=12,
)


class TestParticipants:
    @given(STEPS)
    def test_names_depend_on_the_last_known_ones_alone(self, steps):
        grown, last = Participants(), {}
        for sender, name in steps:
            grown.see(sender, name)
            last[sender] = name or last.get(sender, "")
        assert grown.names == Participants.of(last).names
        assert len(grown) == len(last)
        assert all(grown.name_of(sender) == name for sender, name in last.items())

    @given(STEPS)
    def test_everybody_is_found_by_id(self, steps):
        people = Participants()
        for sender, name in steps:
            people.see(sender, name)
        assert all(people.names[sender] == sender and sender in people for sender, _ in steps)

    def test_ids_win_over_names_and_names_over_ornamented_nicks(self):
        assert Participants.of({"x": "bob", "bob": ""}).names["bob"] == "bob"
        assert Participants.of({"bob_": "", "x": "bob"}).names["bob"] == "x"
        assert Participants.of({"x": "bob", "y": "Bob"}).names["bob"] == "x"

    def test_a_given_name_that_two_bear_finds_neither(self):
        people = Participants.of({"x": "Anna Lindt", "y": "Anna Berg"})
        assert "anna" not in people.names
        people.see("y", "Birgit Berg")
        assert people.names["anna"] == "x"


@given(
    st.text(max_size=80), st.dictionaries(st.sampled_from(["caption", "quote"]), st.text() | st.none() | st.integers())
)
def test_any_message_has_features(text, metadata):
    found = features(text, metadata=metadata)
    assert isinstance(found, MessageFeatures)
    assert set(found.addressed) <= set(found.mentions)


HOSTILE = [
    "> a\n",
    "<@a|",
    "<at id=",
    "「」",
    "「x」- ",
    "genii, ",
    "@",
    "joined the ",
    "ha",
    "好的",
    "&gt; \n",
    "[",
    "\n",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_are_read_quickly(piece):
    begun = time.thread_time()
    features(piece * (1_000_000 // len(piece)) + "x")
    features((piece * 60)[:58] + "§x")
    assert time.thread_time() - begun < 2
