"""What a program writes in place of media, polls, calls and deleted messages is no text of the sender."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import catalogue
import pytest

import roomlore
import roomlore_importers
from roomlore.core.models import Role
from roomlore_testkit.case_table import all_cases

MARK = "\u200e"


def read_line(said, folder, system):
    """Return the message of a chat of WhatsApp in which Bo writes this."""
    stamps = {"android": "12/05/2024, 18:3{} - ", "ios": "[12/05/2024, 18:3{}:00] "}[system]
    path = folder / "WhatsApp Chat with Dinner.txt"
    path.write_text(f"{stamps.format(1)}Ann: so?\n{stamps.format(2)}Bo: {said}\n", encoding="utf-8")
    return catalogue.messages(path)[-1]


DELETED = (
    "This message was deleted", "You deleted this message", "This message was deleted by admin Ann",
    "Diese Nachricht wurde gelöscht.", "Du hast diese Nachricht gelöscht.", "Se eliminó este mensaje",
    "Ce message a été supprimé", "Questo messaggio è stato eliminato", "Mensagem apagada", "Dit bericht is verwijderd",
    "Данное сообщение удалено", "Bu mesaj silindi",
    "此消息已删除", "此訊息已被刪除", "你已刪除這則訊息", "这条消息已被删除",
    "このメッセージは削除されました", "삭제된 메시지입니다", "تم حذف هذه الرسالة",
)  # fmt: skip


@pytest.mark.parametrize("system", ["android", "ios"])
def test_a_deleted_message_has_no_text_in_any_language(system, tmp_path):
    with all_cases() as case:
        for words in DELETED:
            with case(words):
                said = read_line(f"{MARK}{words}" if system == "ios" else words, tmp_path, system)
                assert (said.text, said.metadata) == ("", {"deleted": True})


LEFT_OUT = (
    ("<Media omitted>", "", {"type": "file"}),
    ("<Media omitted>\nthe new oven\n新烤箱", "the new oven\n新烤箱", {"type": "file"}),
    ("<View once voice message omitted>", "", {"type": "voice"}),
    ("<Video note omitted>", "", {"type": "video"}),
    ("image omitted", "", {"type": "picture"}),
    (f"{MARK}GIF omitted", "", {"type": "video"}),
    (f"{MARK}sticker omitted", "", {"type": "sticker"}),
    (f"look {MARK}image omitted", "look", {"type": "picture"}),
    (f"{MARK}immagine omessa", "", {"type": "picture"}),
    (f"{MARK}аудиофайл отсутствует", "", {"type": "voice"}),
    (f"{MARK}视频已忽略", "", {"type": "video"}),
    (f"{MARK}Contact card omitted", "", {"type": "contact"}),
    (f"recipe.pdf • {MARK}3 pages {MARK}document omitted", "", {"type": "file", "name": "recipe.pdf"}),
    (f"{MARK}IMG-20240512-WA0001.jpg (file attached)\nthe pot", "the pot",
     {"type": "picture", "name": "IMG-20240512-WA0001.jpg", "file": "IMG-20240512-WA0001.jpg"}),
    ("STK-20240512-WA0003.webp (file attached)", "",
     {"type": "sticker", "name": "STK-20240512-WA0003.webp", "file": "STK-20240512-WA0003.webp"}),
    ("PTT-20240512-WA0005.opus (файл добавлен)", "",
     {"type": "voice", "name": "PTT-20240512-WA0005.opus", "file": "PTT-20240512-WA0005.opus"}),
    ("<pièce jointe : VID-20240512-WA0006.mp4>", "",
     {"type": "video", "name": "VID-20240512-WA0006.mp4", "file": "VID-20240512-WA0006.mp4"}),
    ("location: https://maps.google.com/?q=52.5,-13.4", "",
     {"type": "location", "caption": "52.5,-13.4", "url": "https://maps.google.com/?q=52.5,-13.4"}),
    (f"{MARK}Café Kranz (Main St 4): https://foursquare.com/v/4b", "",
     {"type": "location", "caption": "Café Kranz (Main St 4)", "url": "https://foursquare.com/v/4b"}),
    ("live location shared", "", {"type": "location"}),
    ("POLL:\nWhat shall we cook?\nOPTION: Curry (1 vote)\nOPTION: Soup (hot) (0 votes)\n", "What shall we cook?",
     {"type": "poll", "caption": "Curry (1), Soup (hot) (0)"}),
    (f"{MARK}投票：\n吃什么？\n{MARK}选项：火锅（{MARK}2 票）\n{MARK}选项：面（{MARK}0 票）", "吃什么？",
     {"type": "poll", "caption": "火锅 (2), 面 (0)"}),
    ("UMFRAGE:\nWas kochen wir?\nOPTION: Suppe (1 Stimme)", "Was kochen wir?",
     {"type": "poll", "caption": "Suppe (1)"}),
    (f"{MARK}КВОРУМ:\nЧто?\n{MARK}ВЫБОР: суп ({MARK}1 голос)", "Что?", {"type": "poll", "caption": "суп (1)"}),
)  # fmt: skip


def test_what_was_left_out_is_an_attachment_and_its_words_stay(tmp_path):
    with all_cases() as case:
        for words, text, held in LEFT_OUT:
            with case(words):
                said = read_line(words, tmp_path, "ios" if MARK in words else "android")
                assert (said.text, said.metadata["attachments"], said.role) == (text, [held], Role.USER)
                assert said.metadata.get("caption") in (None, "recipe.pdf")


@pytest.mark.parametrize(
    "said",
    [
        "null",
        "Waiting for this message.",
        "Waiting for this message. This may take a while.",
        "正在等待此消息。请稍候。",
        "You received a view once photo. For added privacy, you can only open it on your phone.",
        f"{MARK}Waiting for this message. Ask Ann to open it.",
    ],
)
def test_a_message_that_could_not_be_shown_has_no_text_and_keeps_its_words(said, tmp_path):
    found = read_line(said, tmp_path, "ios" if MARK in said else "android")
    assert (found.text, found.metadata) == ("", {"not_shown": said.replace(MARK, "")})


@pytest.mark.parametrize(
    "said",
    [
        "Missed voice call",
        "Verpasster Sprachanruf, Zum Zurückrufen tippen",
        "未接语音通话，点击回拨",
        f"{MARK}Missed video call, {MARK}Tap to call back",
        f"{MARK}Voice call, {MARK}2 min",
    ],
)
def test_a_call_is_a_notice_of_the_program(said, tmp_path):
    found = read_line(said, tmp_path, "ios")
    assert (found.role, found.sender_id, found.text) == (Role.SYSTEM, "Bo", said.replace(MARK, ""))


@pytest.mark.parametrize(
    "said",
    [
        "midnight <Media omitted> is no media",
        "null and void",
        "I deleted this message was deleted",
        "Voice call, at nine?",
        "Missed voice call, sorry, I was driving. What did you want?",
        "Waiting for this message. It took you a day",
        "Warten auf diese Nachricht. Mach ich gern",
        "You received a view once photo. Of me?",
        "This message was deleted by admin Ann, was it you?",
        "my location: https://example.org/?q=52.5,13.4",
        "POLL: who comes?",
        "LIST:\nfor soup\nOnion: red (2 kg)\nOnion: white (1 kg)",
    ],
)
def test_what_a_person_writes_stays(said, tmp_path):
    found = read_line(said, tmp_path, "android")
    assert (found.text, found.role, found.metadata) == (said, Role.USER, {})


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("[图片]", [{"type": "picture"}]),
        (
            "[图片][图片] [表情 抱抱]",
            [{"type": "picture"}, {"type": "picture"}, {"type": "sticker", "caption": "抱抱"}],
        ),
        ("[语音:3秒]", [{"type": "voice", "caption": "3秒"}]),
        ("[文件] 第三章.pdf", [{"type": "file", "name": "第三章.pdf"}]),
        ("[位置 国贸]", [{"type": "location", "name": "国贸"}]),
        ("![图片](http://127.0.0.1:5030/image/b)", [{"type": "picture", "url": "http://127.0.0.1:5030/image/b"}]),
        ("看 [图片]", None),
        ("[图片]看这个", None),
        ("[红包] 恭喜发财", None),
        ("[急] 谁有空", None),
        ("[合并转发]\n甲: 周日", None),
    ],
)
def test_labels_of_chinese_programs_alone_are_no_text(said, held):
    event = {"message_id": 7, "group_id": 9, "user_id": 1, "time": 1762650000, "message_type": "group"}
    found = roomlore_importers.onebot_message(event | {"message": [{"type": "text", "data": {"text": said}}]})
    assert (found.text, found.metadata.get("attachments")) == (said if held is None else "", held)


async def test_a_picture_of_a_chinese_chat_is_not_found_by_its_label(tmp_path):
    said = "2025-11-09 10:00:00 土豆(10001)\n[图片]\n\n2025-11-09 10:01:00 番茄(10002)\n这是香山的红叶？\n"
    (tmp_path / "爬山.txt").write_text(f"消息记录（此消息记录为文本格式）\n消息对象:爬山\n\n{said}", encoding="utf-8")
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.imports.run(tmp_path / "爬山.txt")
        assert not (await lore.messages.search("爬山", "图片")).hits
        page = await lore.messages.page("爬山")
        assert "土豆: [图片]\n" in (await lore.context.build("爬山", page[-1].id)).to_prompt(query=page[-1])


CHAT = """\
12/05/2024, 18:31 - Ann: Shall we cook on Friday?
12/05/2024, 18:32 - Ann: <Media omitted>
12/05/2024, 18:33 - Bo: This message was deleted
12/05/2024, 18:34 - Ann: POLL:
What shall we cook?
OPTION: Curry (1 vote)
OPTION: Pizza (3 votes)

12/05/2024, 18:35 - Bo: IMG-20240512-WA0001.jpg (file attached)
12/05/2024, 18:36 - Bo: null
12/05/2024, 18:37 - Ann: Then pizza it is. I bring the flour.
"""
WORDS = ("omitted", "deleted", "OPTION", "vote", "POLL", "IMG-20240512-WA0001.jpg", "null")


async def test_placeholders_are_neither_found_nor_shown_as_words(tmp_path):
    path = tmp_path / "WhatsApp Chat with Dinner.txt"
    path.write_text(CHAT, encoding="utf-8")
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.imports.run(path, timezone="UTC")
        for word in WORDS:
            assert not (await lore.messages.search("Dinner", word)).hits
        page = await lore.messages.page("Dinner")
        context = (await lore.context.build("Dinner", page[-1].id)).to_prompt()
        digest = await lore.digest("Dinner", since=datetime(2024, 1, 1, tzinfo=UTC))
        told = "\n".join(f"{one.title}\n{[line.text for line in one.lines]}" for one in digest.entries)
    assert "What shall we cook? [poll: Curry (1), Pizza (3)]" in context
    assert "[picture: IMG-20240512-WA0001.jpg]" in context
    assert not [word for word in ("omitted", "deleted", "OPTION", "POLL", "null") if word in context]
    assert not [word for word in WORDS if word in told]


async def test_a_chat_that_an_earlier_importer_stored_is_imported_again_without_conflicts(tmp_path):
    """It kept what the program wrote as text or caption, under the same ids."""
    path = tmp_path / "WhatsApp Chat with Dinner.txt"
    path.write_text(CHAT, encoding="utf-8")
    async with roomlore.open("sqlite://", background=False) as lore:
        kept = [one for one in catalogue.messages(path) if not one.metadata.get("deleted")]
        await lore.messages.add([replace(one, text=one.text or "<Media omitted>", metadata={}) for one in kept])
        report = await lore.imports.run(path, timezone="UTC")
        assert (report.conflict_count, report.duplicates, report.added) == (0, len(kept), 1)


async def test_what_was_taken_for_a_notice_before_makes_no_conflict(tmp_path):
    path = tmp_path / "WhatsApp Chat with Dinner.txt"
    said = ("null", "Missed voice call, sorry, I was driving.", "Waiting for this message. It took a day")
    lines = (f"12/05/2024, 18:3{place} - Bo: {words}" for place, words in enumerate(said))
    path.write_text("\n".join(lines), encoding="utf-8")
    null, call, waiting = catalogue.messages(path)
    unshown = {"text": "", "metadata": {"not_shown": True}}
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(
            [replace(null, **unshown), replace(call, role=Role.SYSTEM), replace(waiting, **unshown)]
        )
        report = await lore.imports.run(path, timezone="UTC")
    assert (report.conflict_count, report.duplicates, report.added) == (0, 3, 0)


FOUND = {
    "WhatsApp Chat with Food.txt": (
        "12/05/2024, 18:31 - Ann: POLL:\nWhere to?\nOPTION: Dumplinghouse (1 vote)\nOPTION: 火锅店 (37 votes)\n\n"
        f"12/05/2024, 18:32 - Ann: {MARK}Café Kranz: https://foursquare.com/v/4b\n"
    ),
    "result.json": json.dumps(
        {"name": "Food", "type": "private_group", "id": 4, "messages": [
            {"id": 1, "type": "message", "date_unixtime": "1714550400", "from": "Ann", "from_id": "user1", "text": "",
             "poll": {"question": "Where to?", "answers": [
                 {"text": "Dumplinghouse", "voters": 1}, {"text": "火锅店", "voters": 37}]}},
            {"id": 2, "type": "message", "date_unixtime": "1714550460", "from": "Ann", "from_id": "user1", "text": "",
             "place_name": "Café Kranz", "location_information": {"latitude": 52.5, "longitude": 13.4}},
            {"id": 3, "type": "message", "date_unixtime": "1714550520", "from": "Ann", "from_id": "user1", "text": "",
             "contact_information": {"first_name": "Cosima", "phone_number": "+491"}},
        ]}
    ),
    "lark.json": json.dumps(
        [{"message_id": f"om_{number}", "msg_type": kind, "create_time": f"171455040{number}000", "chat_id": "oc",
          "sender": {"id": "ou_ann", "id_type": "open_id", "sender_type": "user"},
          "body": {"content": json.dumps(content)}}
         for number, (kind, content) in enumerate((
             ("vote", {"topic": "Where to?", "options": ["Dumplinghouse", "火锅店"]}),
             ("location", {"name": "Café Kranz", "longitude": "13.4", "latitude": "52.5"}),
         ))]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
async def test_options_places_and_contacts_are_found_but_are_no_speech(name, tmp_path):
    (tmp_path / name).write_text(FOUND[name], encoding="utf-8")
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.imports.run(tmp_path / name, timezone="UTC")
        (room,) = await lore.rooms.page()
        page = await lore.messages.page(room.room_id)
        wanted = {"Dumplinghouse": 0, "火锅店": 0, "Kranz": 1} | ({"Cosima": 2} if name == "result.json" else {})
        for word, place in wanted.items():
            hits = (await lore.messages.search(room.room_id, word)).hits
            assert [hit.message.id for hit in hits][:1] == [page[place].id], word
        for word in ("OPTION", "vote", "votes", "poll", "投票", "37", "52.5"):
            assert not (await lore.messages.search(room.room_id, word)).hits, word
        digest = await lore.digest(room.room_id, since=datetime(2024, 1, 1, tzinfo=UTC))
        told = [(one.title, [line.text for line in one.lines]) for one in digest.entries]
        assert "Where to?" in str(told)
        assert "Dumplinghouse" not in str(told)
        assert "[poll: Dumplinghouse" in (await lore.context.build(room.room_id, page[1].id)).to_prompt()
