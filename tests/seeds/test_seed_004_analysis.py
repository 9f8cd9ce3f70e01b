"""Seed 004, sections 3.1 and 4.1: what is read from a message, and the names of the values."""

import pytest
from group_chat import GROUP, NINE, TALK, group, said
from rig import served

from roomlore import InvalidInput, Message, MessageAnalyzer, MessageType

WIRE = {"message_id": "om_1", "group_id": "oc_1", "user_id": "ann", "timestamp": 1_760_000_000}


def features(text: str, *, people=None, **more):
    return MessageAnalyzer(people or {"bob": "Bob", "u2": "王姐"}).analyze_message({**WIRE, "content": text, **more})


# 4.1 MessageType


@pytest.mark.parametrize("name", ["question", "answer", "discussion", "notification", "casual"])
def test_a_message_type_is(name):
    assert MessageType[name.upper()] == name


def test_there_are_five_message_types():
    assert len(MessageType) == 5


TYPED = {
    "明天几点发布？": "question",
    "How do I reset the router?": "question",
    "@Bob 明天上午十点发布": "answer",
    "Bob: tomorrow at ten": "answer",
    "我觉得这个方案的索引太慢了，应该换一种设计": "discussion",
    "I think the index is too slow, we should change the design": "discussion",
    "[系统通知] 今晚停机维护": "notification",
    "@all the meeting begins": "notification",
    "哈哈哈": "casual",
    "lol ok": "casual",
}


@pytest.mark.parametrize("text", TYPED)
def test_a_text_is_of_the_type(text):
    assert features(text).message_type == TYPED[text]


def test_a_reply_of_the_platform_is_an_answer():
    assert features("明天上午十点", reply_to="om_0").message_type is MessageType.ANSWER


# 3.1 MessageAnalyzer


def test_a_message_under_the_documents_names_is_read():
    found = features("@Bob 明天几点发布 v1.2？")
    assert (found.message_type, found.mentions) == (MessageType.QUESTION, ("bob",))
    assert {"发布", "v1.2"} <= set(found.keywords)


@pytest.mark.parametrize(
    ("text", "mentions"),
    [("@Bob 几点？", ("bob",)), ("几点？@王姐", ("u2",)), ("@bob @王姐 来吗", ("bob", "u2")), ("几点？", ())],
)
def test_mentions_are_the_ids_of_people(text, mentions):
    assert features(text).mentions == mentions


def test_mentions_of_the_platform_count():
    assert features("来吗", mentions=["u9"]).mentions == ("u9",)


@pytest.mark.parametrize("text", ["@全体 开会", "@all meeting now"])
def test_a_mention_of_everybody_is_told(text):
    assert features(text).mentions_all is True


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("我们的数据库迁移失败了", {"数据库", "迁移", "失败"}),
        ("The database migration of the server failed", {"database", "migration", "server", "failed"}),
        ("用 net/http 和 v1.2", {"net/http", "v1.2"}),
        ("好的", set()),
    ],
)
def test_keywords_are_words_that_tell_something(text, keywords):
    assert set(features(text).keywords) == keywords


def test_a_quotation_is_a_reply():
    assert features("> 明天几点发布？\n十点").reply.kind == "quote"


def test_an_at_in_front_is_a_reply_to_its_person():
    reply = features("@Bob 十点").reply
    assert (reply.kind, reply.sender_id) == ("mention", "bob")


def test_a_thread_of_the_platform_is_a_reply():
    reply = features("十点", root_id="om_0").reply
    assert (reply.kind, reply.message_id) == ("thread", "om_0")


def test_a_reply_of_the_platform_names_its_message():
    reply = features("十点", reply_to="om_0").reply
    assert (reply.kind, reply.message_id) == ("reply", "om_0")


def test_a_message_without_any_of_it_has_the_defaults():
    found = features("嗯")
    assert (found.reply, found.mentions, found.keywords, found.mentions_all) == (None, (), (), False)


def test_a_message_without_an_id_is_refused():
    with pytest.raises(InvalidInput, match="id"):
        MessageAnalyzer().analyze_message({"content": "嗯", "group_id": "oc_1", "user_id": "ann"})


# 4.1 in a room


async def test_features_are_stored_with_the_message_and_shown():
    async with group(*TALK) as lore, served(lore) as http:
        shown = (await http.get(f"/messages/{GROUP}/m6")).json()["features"]
    assert (shown["message_type"], shown["mentions"]) == ("question", ["wang"])
    assert "火锅" in shown["keywords"]
    assert (shown["reply"]["kind"], shown["reply"]["message_id"]) == ("reply", "m4")


async def test_a_reply_of_the_platform_names_the_person_it_answers():
    async with group(*TALK) as lore:
        reply = (await lore.messages.get(GROUP, "m3")).features.reply
    assert (reply.message_id, reply.sender_id) == ("m1", "ann")


@pytest.mark.parametrize("name", ["group_id", "chat_id", "conversation_id", "room_id"])
async def test_a_message_is_added_under_the_name_the_caller_has_for_its_room(name):
    async with group() as lore, served(lore) as http:
        body = {"id": "m1", name: "oc_1", "sender_id": "ann", "text": "几点？"}
        assert (await http.post("/messages", json=body)).status_code == 200
        assert [one.id for one in await lore.messages.page("oc_1")] == ["m1"]


async def test_the_time_of_a_message_is_kept_in_utc():
    async with group(said(1, "ann", "几点？")) as lore:
        (stored,) = await lore.messages.page(GROUP)
    assert (stored.sent_at, stored.sent_at.utcoffset().total_seconds()) == (NINE.replace(minute=1), 0)


# Differences


async def test_features_stand_beside_the_message_and_do_not_repeat_it():
    async with group(*TALK) as lore, served(lore) as http:
        shown = (await http.get(f"/messages/{GROUP}/m3")).json()
    assert [shown["message"][name] for name in ("id", "room_id", "sender_id", "text", "sent_at")] == [
        "m3",
        GROUP,
        "bob",
        "按住重置键十秒",
        "2026-05-04T09:03:00+00:00",
    ]
    assert not {"message_id", "user_id", "group_id", "content", "timestamp"} & shown["features"].keys()


def test_a_reply_of_the_platform_has_a_kind_of_its_own():
    """The document knows quote, mention and thread."""
    assert features("十点", reply_to="om_0").reply.kind == "reply"


async def test_analysis_needs_no_dict():
    message = Message(id="om_1", room_id="oc_1", sender_id="ann", text="@Bob 十点")
    assert MessageAnalyzer({"bob": "Bob"}).analyze_message(message) == features("@Bob 十点")
