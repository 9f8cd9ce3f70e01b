"""Chinese exports as people have them: short files in GBK, one line for a whole document, names that are missing, kinds
of messages that nobody knows, forwarded chats inside each other, quotes of messages outside of the file."""

import json
from datetime import UTC, datetime, timedelta

import catalogue
import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Role
from roomlore_importers import Bad, Parsed, detect, onebot_message, open_import

MIDNIGHT = 1762704000
"""2025-11-10 00:00 in Shanghai."""


def written(tmp_path, name, content, encoding="utf-8"):
    path = tmp_path / name
    if not isinstance(content, str):
        content = json.dumps(content, ensure_ascii=False)
    path.write_bytes(content.encode(encoding))
    return path


def said(path):
    return [
        (one.sender_id, one.sender_name, one.text, one.reply_to)
        for one in catalogue.messages(path, timezone="Asia/Shanghai")
    ]


def test_a_chatlab_document_on_one_line(tmp_path):
    """A regression: the document was taken for JSON lines, and nothing was read."""
    document = {
        "chatlab": {"version": "0.0.2"},
        "meta": {"name": "", "platform": "qq", "type": "group", "groupId": "555"},
        "members": [{"platformId": "1", "accountName": "🐱", "groupNickname": ""}],
        "messages": [
            {"sender": "1", "accountName": "🐱", "timestamp": MIDNIGHT, "type": 0, "content": "零点"},
            {"sender": "2", "accountName": "乙", "groupNickname": '乙,"名片"', "timestamp": MIDNIGHT, "type": 25,
             "content": "同意", "replyToMessageId": "outside"},
            {"sender": "1", "accountName": "🐱", "timestamp": MIDNIGHT + 1, "type": 5, "content": None},
        ],
    }  # fmt: skip
    path = written(tmp_path, "a.json", document)
    assert said(path) == [("1", "🐱", "零点", None), ("2", '乙,"名片"', "同意", "outside"), ("1", "🐱", "", None)]
    items = catalogue.items(path)
    assert {item.message.room_id for item in items} == {"555"}
    assert catalogue.items(path, resume_from=items[0].position) == items[1:]


def test_chatlab_lines_with_comments_a_mark_and_line_ends_of_windows(tmp_path):
    head = {
        "_type": "header",
        "chatlab": {"version": "0.0.2"},
        "meta": {"name": "猫", "platform": "qq", "type": "group"},
    }
    line = {
        "_type": "message",
        "sender": "1",
        "accountName": "🐱",
        "timestamp": MIDNIGHT,
        "type": 0,
        "content": "一\n二",
    }
    rows = ["# comment", json.dumps(head), "", json.dumps(line), json.dumps({"_type": "other"})]
    items = catalogue.items(written(tmp_path, "a.jsonl", "\r\n".join(rows) + "\r\n", "utf-8-sig"))
    assert [type(item) for item in items] == [Parsed, Bad]
    assert items[0].message.text == "一\n二"
    assert items[0].message.sent_at == datetime(2025, 11, 9, 16, tzinfo=UTC)


TABLE = "Time,SenderName,Sender,TalkerName,Talker,Content\n"


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "utf-8", "utf-8-sig"])
def test_a_short_table_in_each_encoding(tmp_path, encoding):
    """A regression: half of the pairs of a short text in GBK are UTF-8 by chance, and it was read as that."""
    rows = TABLE + "2025-11-10 00:00:00,小猫,wxid_1,读书群,9@chatroom,零点了各位\n"
    rows += '2025-11-10 23:59:59,"小狗,""汪""",wxid_2,读书群,9@chatroom,"晚安,\n明天见"\n'
    path = written(tmp_path, "a.csv", rows, encoding)
    assert said(path) == [
        ("wxid_1", "小猫", "零点了各位", None),
        ("wxid_2", '小狗,"汪"', "晚安,\n明天见", None),
    ]


def test_a_short_text_of_memotrace_in_gbk(tmp_path):
    text = "2025-11-09 23:59:59 小猫\n晚安各位朋友\n\n2025-11-10 00:00:00 小狗\n新的一天开始了\n\n"
    assert said(written(tmp_path, "a.txt", text, "gbk")) == [
        ("小猫", "小猫", "晚安各位朋友", None),
        ("小狗", "小狗", "新的一天开始了", None),
    ]


@pytest.mark.parametrize("text", ["Привет, как дела", "déjà vu, garçon été", "爬山去吧各位"])
def test_a_utf8_text_with_one_broken_byte_stays_utf8(tmp_path, text):
    good = f"[21:14] <a> {text}\n".encode()
    path = tmp_path / "a.log"
    path.write_bytes(good * 4 + b"[21:15] <a> \xe5x\n")
    assert catalogue.messages(path)[0].text == text


def test_qqs_text_with_a_person_without_a_name(tmp_path):
    """A regression: the line became part of the message of the person before."""
    text = (
        "消息记录（此消息记录为文本格式，不支持重新导入）\n消息对象:\n\n"
        "2025-11-10 0:00:00 【群主】🐱(喵)(10001)\n零点\n\n"
        "2025-11-10 00:00:01 小狗<dog@qq.com>\n2025-11-10 说的不是消息头\n\n2025-11-10 00:00:02 \n没有名字\n"
    )
    assert said(written(tmp_path, "a.txt", text)) == [
        ("10001", "🐱(喵)", "零点", None),
        ("dog@qq.com", "小狗", "2025-11-10 说的不是消息头", None),
        ("unknown", "", "没有名字", None),
    ]


def of_exporter(number, elements, text="", **more):
    content = {"text": text, "elements": elements, "resources": [], "mentions": []}
    sender = {"uid": "u_1", "uin": "10001", "name": "群主"}
    return {"messageId": str(number), "timestamp": MIDNIGHT * 1000, "sender": sender, "content": content, **more}


def test_elements_without_a_text_in_an_export_of_qqchatexporter(tmp_path):
    nested = {"senderName": "戊", "messages": [{"senderName": "己", "content": "里面"}]}
    forward = {"title": "群聊的聊天记录", "messages": [{"senderName": "丁", "content": "一"}, nested]}
    document = {
        "metadata": {"name": "QQChatExporter V5", "version": "5.2"},
        "chatInfo": {"name": "", "type": "group", "peerUin": "556"},
        "messages": [
            of_exporter(1, [{"type": "market_face", "data": {"name": "[抱抱]"}}]),
            of_exporter(2, [{"type": "hologram", "data": {"x": 1}}]),
            of_exporter(3, [{"type": "forward", "data": forward}], "[转发消息]"),
            of_exporter(4, [{"type": "reply", "data": {"referencedMessageId": "77"}}], "[回复消息]好"),
            of_exporter(5, [], "秘密", isRecalled=True),
        ],
    }
    found = catalogue.messages(written(tmp_path, "group.json", document))
    assert [one.text for one in found] == [
        "",
        "[hologram]",
        "[合并转发] 群聊的聊天记录\n丁: 一\n戊: [合并转发]\n  己: 里面",
        "好",
        "",
    ]
    assert found[0].metadata == {"attachments": [{"type": "sticker", "caption": "抱抱"}]}
    assert found[3].reply_to == "77"


def test_a_forwarded_conversation_of_qqchatexporter_may_hold_onebot_messages(tmp_path):
    """Since 5.5.66 it writes what NapCat's `get_forward_msg` answers: shuakami/qq-chat-exporter, commit 33ff54d,
    plugins/qq-chat-exporter/lib/core/exporter/JsonExporter.ts and parser/MessageParser.ts."""

    def node(card, *segments, **more):
        sender = {"user_id": 10002, "nickname": "糖", "card": card}
        message = [{"type": kind, "data": data} for kind, data in segments]
        return {"message_id": 1, "message_type": "group", "sender": sender, "message": message, **more}

    inner = node("里", ("text", {"text": "最里面"}))
    forward = {
        "title": "群聊的聊天记录",
        "messages": [
            node("", ("text", {"text": "明天见"}), raw_message="明天见"),
            node(
                "阿南", ("at", {"qq": "10003", "name": "花"}), ("text", {"text": " 好"}), ("image", {"file": "a.jpg"})
            ),
            node("阿东", ("forward", {"id": "9", "content": [inner]})),
            {"sender": {"nickname": "老样子"}, "raw_message": "只有[CQ:face,id=1]文字"},
            {"sender": {"nickname": "数组"}, "content": [{"type": "text", "data": {"text": "也行"}}]},
        ],
    }
    document = {
        "metadata": {"name": "QQChatExporter", "version": "5.5.66"},
        "chatInfo": {"name": "", "type": "group", "peerUin": "556"},
        "messages": [of_exporter(1, [{"type": "forward", "data": forward}], "[合并转发: 5条]")],
    }
    (found,) = catalogue.messages(written(tmp_path, "group.json", document))
    assert found.text.split("\n") == [
        "[合并转发] 群聊的聊天记录", "糖: 明天见", "阿南: @花 好[图片]", "阿东: [合并转发]", "  里: 最里面",
        "老样子: 只有[表情]文字", "数组: 也行",
    ]  # fmt: skip


def test_forwarded_chats_inside_each_other_of_onebot():
    inner = {"type": "forward", "data": {"content": [{"type": "node", "data": {"nickname": "戊", "content": "里"}}]}}
    node = {"type": "node", "data": {"nickname": "丁", "content": [{"type": "text", "data": {"text": "外"}}, inner]}}
    event = {
        "post_type": "message", "message_type": "group", "message_id": -101, "group_id": 7, "user_id": 8,
        "time": MIDNIGHT,
        "message": [{"type": "forward", "data": {"content": [node]}}], "sender": {"card": "", "nickname": "🐱"},
    }  # fmt: skip
    message = onebot_message(event)
    assert message.text == "[合并转发]\n丁: 外\n  [合并转发]\n  戊: 里"
    assert (message.id, message.sender_name) == ("-101", "🐱")


def test_kinds_that_weflow_does_not_say_more_of(tmp_path):
    def row(number, kind, **more):
        base = {"localId": number, "createTime": MIDNIGHT, "type": kind, "content": None, "isSend": 0}
        return {**base, "senderUsername": "wxid_1", "senderDisplayName": "🐱", **more}

    rows = [row(1, "通话消息"), row(2, "文本消息"), row(3, "引用消息", content="我也", replyToMessageId="outside")]
    document = {"weflow": {"version": "1"}, "session": {"wxid": "9@chatroom", "type": "群聊"}, "messages": rows}
    found = said(written(tmp_path, "a.json", document))
    assert [(text, reply) for _, _, text, reply in found] == [("[通话]", None), ("", None), ("我也", "outside")]


def test_a_line_of_the_system_in_a_table_of_pywxdump(tmp_path):
    """A regression: it was reported as a row without a sender."""
    rows = (
        "id,MsgSvrID,type_name,is_sender,talker,room_name,msg,src,CreateTime\r\n"
        "1,111,系统通知,0,,9@chatroom,乙撤回了一条消息,,2025-11-10 00:00:00\r\n"
    )
    (message,) = catalogue.messages(written(tmp_path, "a.csv", rows), timezone="Asia/Shanghai")
    assert (message.role, message.sender_id, message.sent_at) == (
        Role.SYSTEM,
        "system",
        datetime.fromtimestamp(MIDNIGHT, UTC),
    )


def test_a_quote_of_chatlog_finds_its_message_by_sender_and_second(tmp_path):
    def row(second, sender, kind=1, **more):
        at = (datetime(2025, 11, 10, tzinfo=UTC) + timedelta(seconds=second)).isoformat()
        return {"seq": second, "time": at, "talker": "9@chatroom", "talkerName": "", "isChatRoom": True,
                "sender": sender, "senderName": sender, "type": kind, "content": "x", **more}  # fmt: skip

    def quote(second, sender):
        return {"refer": {"sender": sender, "time": row(second, sender)["time"]}}

    rows = [row(0, "a"), row(1, "b", 49, subType=57, contents=quote(0, "a")), row(2, "b", 49, contents=quote(-9, "z"))]
    first, second, third = catalogue.messages(written(tmp_path, "a.json", rows))
    assert second.reply_to == first.id
    assert third.reply_to not in (None, first.id, second.id)


def test_a_recall_of_wecom_for_a_message_that_was_never_seen(tmp_path):
    recall = {"msgid": "w2", "action": "recall", "from": "li", "tolist": ["a"], "roomid": "wr1",
              "msgtime": MIDNIGHT * 1000, "msgtype": "revoke", "revoke": {"pre_msgid": "never"}}  # fmt: skip
    (item,) = catalogue.items(written(tmp_path, "a.jsonl", json.dumps(recall) + "\r\n", "utf-8-sig"))
    assert (item.deletes, item.message.role) == ("never", Role.SYSTEM)


@pytest.mark.parametrize("content", ["", "\ufeff", " \r\n\n"])
def test_an_empty_file_is_called_empty(tmp_path, content):
    path = written(tmp_path, "a.json", content)
    with pytest.raises(InvalidInput, match="is empty: export the chat again"):
        open_import(path)
    with pytest.raises(InvalidInput, match="is empty"):
        detect(path)


CHATLOG_COLUMNS = "Time,SenderName,Sender,TalkerName,Talker,Content\n"


def test_a_quote_of_chatlog_is_of_the_year_before_if_its_day_is_still_to_come(tmp_path):
    rows = (
        "2024-12-31 23:59:58,张三,wxid_zs,群,9@chatroom,新年好\n"
        '2025-01-01 00:00:03,李四,wxid_ls,群,9@chatroom,"> 张三(wxid_zs) 12-31 23:59:58\n> 新年好\n同乐"\n'
    )
    first, second = catalogue.messages(written(tmp_path, "a.csv", CHATLOG_COLUMNS + rows), timezone="Asia/Shanghai")
    assert (second.text, second.reply_to) == ("同乐", first.id)


def test_a_quote_of_chatlog_of_somebody_without_a_name_or_of_nothing(tmp_path):
    rows = (
        "2024-02-29 10:00:00,,wxid_zs,群,9@chatroom,闰日\n"
        '2024-02-29 10:00:03,李四,wxid_ls,群,9@chatroom,"> wxid_zs 02-29 10:00:00\n> 闰日\n是"\n'
        '2024-02-29 10:00:04,李四,wxid_ls,群,9@chatroom,"> [引用]\n好"\n'
        '2025-02-27 10:00:04,李四,wxid_ls,群,9@chatroom,"> wxid_zs 02-29 10:00:00\n> 闰日\n一年了"\n'
        '2025-02-28 10:00:04,李四,wxid_ls,群,9@chatroom,"> 我自己打的一行\n好"\n'
    )
    found = catalogue.messages(written(tmp_path, "a.csv", CHATLOG_COLUMNS + rows), timezone="Asia/Shanghai")
    first = found[0].id
    assert [(one.text, one.reply_to) for one in found[1:]] == [
        ("是", first),
        ("好", None),
        ("一年了", first),
        ("> 我自己打的一行\n好", None),
    ]


def test_the_table_and_the_json_of_chatlog_give_the_same_ids():
    table = catalogue.messages(catalogue.SAMPLES / "读书会.chatlog.csv", timezone="Asia/Shanghai")
    document = catalogue.messages(catalogue.SAMPLES / "读书会.chatlog.json")
    assert table[0].id == document[0].id
    assert table[2].id == document[1].id
    assert table[2].reply_to == document[1].reply_to


@pytest.mark.parametrize(
    ("text", "left", "quoted"),
    [
        ("好[引用 张三：七点]", "好", {"sender": "张三", "text": "七点"}),
        ("好[引用 [图片]]", "好", {"text": "[图片]"}),
        ("[引用 张三：七点]", "[引用 张三：七点]", {"sender": "张三", "text": "七点"}),
        ("见[引用 第三章", "见[引用 第三章", None),
    ],
)
def test_a_quote_in_weclones_table(text, left, quoted, tmp_path):
    columns = "id,MsgSvrID,type_name,is_sender,talker,msg,src,CreateTime\r\n"
    rows = f"1,1,text,0,张三,七点,,2025-11-09T01:00:00.000Z\r\n2,2,text,0,李四,{text},,2025-11-09T01:01:00.000Z\r\n"
    found = catalogue.messages(written(tmp_path, "a.csv", columns + rows))[1]
    assert (found.text, found.metadata.get("quoted")) == (left, quoted)
    assert found.reply_to == ("1" if quoted and "sender" in quoted else None)


def test_a_quote_of_memotrace_means_what_was_said_last(tmp_path):
    text = (
        "2024-03-01 20:00:00 张三\n好\n\n2024-03-01 20:01:00 张三\n好\n\n"
        "2024-03-01 20:02:00 李四\n哪个好？\n引用:张三:好\n\n2024-03-01 20:03:00 李四\n引用:张三:好\n\n"
        "2024-03-01 20:04:00 李四\n没说过\n引用:张三:不好\n\n"
    )
    found = catalogue.messages(written(tmp_path, "群.txt", text))
    assert [(one.text, one.reply_to) for one in found[2:]] == [
        ("哪个好？", found[1].id),
        ("引用:张三:好", None),
        ("没说过", None),
    ]


def test_lines_that_look_like_a_quote_stay_in_qqs_own_text(tmp_path):
    text = "消息对象:群\n\n2024-03-01 20:00:00 张三(10001)\n如下\n引用:李四:好\n\n"
    assert [one.text for one in catalogue.messages(written(tmp_path, "群.txt", text))] == ["如下\n引用:李四:好"]


def test_a_quote_is_looked_for_among_the_latest_messages_only(tmp_path, monkeypatch):
    monkeypatch.setattr("roomlore_importers.shapes.Said.KEPT", 2)
    lines = [f"2024-03-01 20:00:0{at} 张三\n{text}\n" for at, text in enumerate(("一", "二", "三"))]
    lines += ["2024-03-01 20:01:00 李四\n早的\n引用:张三:一\n", "2024-03-01 20:01:01 李四\n近的\n引用:张三:三\n"]
    found = catalogue.messages(written(tmp_path, "群.txt", "\n".join(lines)))
    assert [one.reply_to for one in found[3:]] == [None, found[2].id]


def test_a_quote_of_pywxdump_means_who_said_it_at_that_time(tmp_path):
    columns = "id,MsgSvrID,type_name,is_sender,talker,room_name,msg,src,CreateTime\n"
    rows = (
        "1,1,文本,0,wxid_zs,9@chatroom,好,,2025-11-09 09:00:00\n2,2,文本,0,wxid_ls,9@chatroom,好,,2025-11-09 09:00:01\n"
        '3,3,引用回复,0,wxid_ww,9@chatroom,"同意\n\n[引用](2025-11-09 09:00:00)张三:好",,2025-11-09 09:01:00\n'
        '4,4,文本,0,wxid_ww,9@chatroom,"同意\n\n[引用](昨天)张三:好",,2025-11-09 09:02:00\n'
    )
    found = catalogue.messages(written(tmp_path, "a.csv", columns + rows), timezone="Asia/Shanghai")
    assert [(one.text, one.reply_to) for one in found[2:]] == [
        ("同意", "1"),
        ("同意\n\n[引用](昨天)张三:好", None),
    ]


def test_a_quote_is_found_again_when_an_import_goes_on(tmp_path):
    columns = "id,MsgSvrID,type_name,is_sender,talker,msg,src,CreateTime\r\n"
    rows = "1,0,text,0,张三,七点,,2025-11-09T01:00:00.000Z\r\n2,0,text,0,张三,七点,,2025-11-09T01:00:00.000Z\r\n"
    rows += "3,0,text,0,李四,好[引用 张三：七点],,2025-11-09T01:01:00.000Z\r\n"
    path = written(tmp_path, "a.csv", columns + rows)
    first, second, third = catalogue.items(path)
    assert third.message.reply_to == second.message.id != first.message.id
    assert catalogue.items(path, resume_from=second.position) == [third]


@pytest.mark.parametrize(
    ("stamp", "hour"),
    [
        ("上午 08:00:00", 8),
        ("下午 8:00:00", 20),
        ("上午 12:00:00", 0),
        ("下午12:00:00", 12),
        ("8:00:00 PM", 20),
        ("20:00:00", 20),
    ],
)
def test_qqs_text_with_the_times_of_any_machine(stamp, hour, tmp_path):
    text = f"消息对象:群\n\n2026-09-15 {stamp} PM 阿姨(10001)\n好\n"
    (found,) = catalogue.messages(written(tmp_path, "群.txt", text))
    assert (found.sent_at.hour, found.sender_name) == (hour, "PM 阿姨")


@pytest.mark.parametrize(
    ("senders", "speakers"),
    [
        ([{"senderID": 2, "accountId": "wxid_b"}, {"senderID": 1, "accountId": "wxid_a"}], ["wxid_a", "wxid_b"]),
        ([{"accountId": "wxid_b"}, {"accountId": "wxid_a"}], ["wxid_b", "wxid_a"]),
        ({"wxid_a": {"accountId": "wxid_a"}}, ["unknown", "unknown"]),
    ],
    ids=["by their ids", "by their places", "in another shape"],
)
def test_senders_of_weflow_are_known_by_their_ids(tmp_path, senders, speakers):
    rows = [
        {"localId": number, "createTime": MIDNIGHT, "type": "文本消息", "content": "好", "senderID": number}
        for number in (1, 2)
    ]
    document = {
        "weflow": {"version": "1"},
        "session": {"wxid": "9@chatroom", "type": "群聊"},
        "senders": senders,
        "messages": rows,
    }
    assert [who for who, *_ in said(written(tmp_path, "a.json", document))] == speakers


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        ([{"type": "markdown", "data": {"content": "你好"}}], "你好"),
        ([{"type": "reply", "data": {"text": "原话"}}, {"type": "text", "data": {"text": "好"}}], "好"),
    ],
)
def test_elements_of_qq_without_a_text_of_the_message(tmp_path, elements, text):
    document = {
        "metadata": {"name": "QQChatExporter V5", "version": "5.0.0"},
        "chatInfo": {"name": "群", "type": "group"},
        "messages": [
            {"id": "7", "timestamp": MIDNIGHT * 1000, "sender": {"uid": "u_1", "uin": "1", "name": "甲"},
             "content": {"text": "", "elements": elements}},
        ],
    }  # fmt: skip
    assert [one for _, _, one, _ in said(written(tmp_path, "a.json", document))] == [text]
