"""WhatsApp's text as phones of many languages write it: stamps, notices and what stands for media.

`phone_stamps.jsonl` is what `phone_stamps.mjs` prints: CLDR's short dates and times of 131 locales and calendars, in
their own clock, in one of twelve hours and in one of 24. The sentences of the app are those of public exports:
starkdmi/whats_json, commit 760b3a0, test/data/ios and lib/src/patterns.dart, and HassanSardar/GBWhatsApp_Raw, commit
1e3ea14, res/values-*/strings.xml. In 300 lines of exports there, an iPhone puts U+200E (U+200F where people write from
right to left) before the brackets of what was sent as a file, and of nothing else. All names are made up.
"""

import json
from datetime import datetime
from pathlib import Path

import catalogue
import pytest

import roomlore
from roomlore.core.models import Role
from roomlore_importers.whatsapp_content import moves_told
from roomlore_importers.whatsapp_stamps import read_stamp
from roomlore_testkit.case_table import all_cases

LRM, RLM = "\u200e", "\u200f"
ROWS = [json.loads(line) for line in (Path(__file__).parent / "phone_stamps.jsonl").read_text("utf-8").splitlines()]
MOMENTS = (
    datetime(2023, 12, 31, 23, 59, 1), datetime(2024, 1, 5, 9, 3, 15), datetime(2024, 2, 29, 12, 30, 0),
    datetime(2024, 3, 11, 0, 5, 9), datetime(2024, 9, 12, 15, 12, 5), datetime(2025, 3, 21, 20, 0, 44),
)  # fmt: skip


def read(folder, lines, name="chat.txt"):
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return catalogue.messages(folder / name, format="whatsapp")


def times(messages):
    return [message.sent_at.replace(tzinfo=None) for message in messages]


def test_stamps_of_every_locale_are_read(tmp_path):
    assert len(ROWS) > 120
    with all_cases() as case:
        for row in ROWS:
            for form, stamps in row.items():
                if form == "locale":
                    continue
                with case(f"{row['locale']} {form}"):
                    ios = form.startswith("ios")
                    lines = [f"[{stamp}] Ann: hi" if ios else f"{stamp} - Ann: hi" for stamp in stamps]
                    messages = read(tmp_path, lines)
                    assert times(messages) == [moment if ios else moment.replace(second=0) for moment in MOMENTS]
                    assert {(message.sender_id, message.text) for message in messages} == {("Ann", "hi")}


@pytest.mark.parametrize(
    ("stamps", "days"),
    [
        (["03/04/24, 10:00", "13/04/24, 10:00"], [(2024, 4, 3), (2024, 4, 13)]),
        (["3/4/24, 10:00", "3/13/24, 10:00"], [(2024, 3, 4), (2024, 3, 13)]),
        (["24/9/5, 10:00", "24/9/26, 10:00", "24/10/1, 10:00"], [(2024, 9, 5), (2024, 9, 26), (2024, 10, 1)]),
        (["24. 9. 5. 오후 3:12"], [(2024, 9, 5)]),
        (["3/4/24, 9:00 AM"], [(2024, 3, 4)]),
        (["٣/٤/٢٤, 9:00 AM"], [(2024, 4, 3)]),
        (["5/9/67 15:12"], [(2024, 9, 5)]),
    ],
)
def test_the_order_of_a_date_comes_from_all_dates_of_the_chat(stamps, days, tmp_path):
    messages = read(tmp_path, [f"{stamp} - Ann: hi" for stamp in stamps])
    assert [(message.sent_at.year, message.sent_at.month, message.sent_at.day) for message in messages] == days


@pytest.mark.parametrize(
    ("stamp", "hour"),
    [
        ("2024/9/26 凌晨12:05 - ", 0), ("2024/9/26 中午12:30 - ", 12), ("2024/9/26 中午11:30 - ", 11),
        ("2024/9/26 晚上12:05 - ", 0), ("26/09/2024, 24:05 - ", 0), ("[26.9.2024 klo 3.12.05 ip.] ", 15),
        ("26/9/24, 3:12\u202fp.\u00a0m. - ", 15), ("[15:12:05, 26/9/24] ", 15), ("2024-09-26, 3:12:05 PM: ", 15),
        ("2024/09/26 15:12: ", 15),
    ],
)  # fmt: skip
def test_hours_follow_the_word_of_the_day(stamp, hour):
    assert read_stamp(f"{stamp}Ann: hi").at("dmy").hour == hour


@pytest.mark.parametrize(
    "line",
    [
        "10.5.20 bought 3.50 - yes", "2024-05-01 12:00:00 ann: hi", "2024-05-01 12:00: standup",
        "2024. 8. 14. 오후 9:00, 이름 : 안녕", "2025-11-09 10:00:00 土豆(10001)", "3/4, 10:15 - there",
        "12/05/2024 - 18:31 call 3/4/24 - no", "[9:00 PM] Ann: hi",
    ],
)  # fmt: skip
def test_other_lines_have_no_stamp(line):
    assert read_stamp(line) is None


GROUPS = {
    "es": ("Viaje", ["Los mensajes y las llamadas están cifrados de extremo a extremo.", "Boris creó este grupo",
                     "Boris te añadió", "Ahora eres admin. del grupo"]),
    "pt": ("Viagem", ["As mensagens e chamadas são protegidas com a criptografia de ponta a ponta.",
                      "Boris criou o grupo", "Boris adicionou você", "Agora você é admin do grupo"]),
    "ja": ("旅行", ["メッセージと通話はエンドツーエンド暗号化されています。", "花子さんがグループを作成しました",
                    "花子があなたを追加しました"]),
    "ar": ("رحلة", ["الرسائل والمكالمات مشفرة تمامًا بين الطرفين.", "أنشأ سامي المجموعة", "أضافك سامي"]),
    "no": ("Tur", ["Meldinger og samtaler er ende-til-ende-krypterte.", "Boris opprettet gruppen", "Boris la deg til"]),
}  # fmt: skip


@pytest.mark.parametrize("language", GROUPS)
def test_a_group_of_an_iphone_is_nobody_in_any_language(language, tmp_path):
    group, notices = GROUPS[language]
    mark = RLM if language == "ar" else LRM
    lines = [f"[14/08/2024, 21:00:1{at}] {group}: {mark}{text}" for at, text in enumerate(notices)]
    lines.append("[14/08/2024, 21:02:12] Boris: hi")
    *messages, message = read(tmp_path, lines)
    assert [(message.sender_id, message.role, message.text) for message in messages] == [
        ("system", Role.SYSTEM, text) for text in notices
    ]
    assert (message.sender_id, message.role) == ("Boris", Role.USER)


def test_the_person_of_a_chat_of_two_stays_a_person(tmp_path):
    lines = [
        f"[14/08/2024, 21:00:10] Elina: {LRM}Viestit ja puhelut salataan täysin.",
        "[14/08/2024, 21:00:11] Elina: moi",
        f"[14/08/2024, 21:00:12] Elina: {LRM}Turvanumerosi muuttui henkilön Elina kanssa. {LRM}Napauta.",
        f"{LRM}[14/08/2024, 21:00:13] Elina: {LRM}kuvia puuttuu",
    ]
    messages = read(tmp_path, lines)
    assert [(message.sender_id, message.role) for message in messages] == [
        ("system", Role.SYSTEM), ("Elina", Role.USER), ("system", Role.SYSTEM), ("Elina", Role.USER),
    ]  # fmt: skip
    assert (messages[-1].text, messages[-1].metadata["attachments"]) == ("", [{"type": "file"}])


def test_notices_of_an_iphone_make_no_members(tmp_path):
    lines = [
        f"[14.08.2024, 21:00:10] Trip: {LRM}Messages and calls are end-to-end encrypted.",
        f"[14.08.2024, 21:00:10] Boris: {LRM}Boris created group “Trip”",
        f"[14.08.2024, 21:03:00] Boris: {LRM}Voice call. {LRM}3 joined",
        f"[14.08.2024, 21:04:00] Boris: {LRM}Ryhmäpuhelu. {LRM}3 liittyi",
        f"[14.08.2024, 21:05:00] Ela: {LRM}You received a view once message. For added privacy, you can only open it"
        " on your phone.",
        f"[14.08.2024, 21:05:30] Ela: {LRM}Recibiste un mensaje de visualización única. Para mayor privacidad, solo"
        " puedes abrirlo en tu teléfono.",
        "[14.08.2024, 21:06:00] Ela: fine",
    ]
    _, _, call, unknown, once, other, fine = read(tmp_path, lines)
    assert [(message.sender_id, message.role) for message in (call, unknown)] == [("Boris", Role.SYSTEM)] * 2
    assert [(message.sender_id, message.text, list(message.metadata)) for message in (once, other)] == [
        ("Ela", "", ["not_shown"])
    ] * 2
    assert (fine.text, fine.role) == ("fine", Role.USER)
    with roomlore.open_sync("sqlite://", background=False) as lore:
        lore.imports.run(tmp_path / "chat.txt")
        assert set(lore.rooms.people("chat").people) == {"Boris", "Ela"}


def test_a_notice_with_a_mark_before_its_brackets_is_no_file(tmp_path):
    lines = [
        f"{LRM}[01.05.26, 08:00:01] Swim: {LRM}Tara Quinn created this group",
        "[01.05.26, 08:01:00] Tara Quinn: who comes?",
        f"{LRM}[01.05.26, 08:02:00] Tara Quinn: {LRM}image omitted",
        f"{LRM}[01.05.26, 08:03:00] Ines Hall: {LRM}Ines Hall left",
    ]
    created, asked, image, left = read(tmp_path, lines)
    assert [message.role for message in (created, asked, image, left)] == [
        Role.SYSTEM, Role.USER, Role.USER, Role.SYSTEM,
    ]  # fmt: skip
    assert (created.sender_id, created.metadata, left.metadata) == ("system", {}, {})
    assert [attachment["type"] for attachment in image.metadata["attachments"]] == ["picture"]


def test_a_group_without_a_first_notice_or_with_a_colon_is_nobody(tmp_path):
    late = [
        "[14/08/2024, 20:00:00] Boris: hi",
        f"[14/08/2024, 21:00:10] Tur: {LRM}Du er nå administrator",
        f"[14/08/2024, 21:00:11] Tur: {LRM}Gruppen ble låst.",
    ]
    assert [message.sender_id for message in read(tmp_path, late)] == ["Boris", "system", "system"]
    colon = [
        f"[14/08/2024, 21:00:10] Tur: Bergen: {LRM}Meldinger er ende-til-ende-krypterte.",
        "[14/08/2024, 21:00:11] Boris: nei: kanskje",
        f"[14/08/2024, 21:00:12] Tur: Bergen: {LRM}Boris la deg til",
    ]
    messages = read(tmp_path, colon, "_chat.txt")
    assert [(message.sender_id, message.room_id) for message in messages] == [
        ("system", "Tur: Bergen"), ("Boris", "Tur: Bergen"), ("system", "Tur: Bergen"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "notice",
    [
        "For your safety. For added privacy, you can only open it on your phone.",
        "太郎が退出しました",
        "花子さんが招待リンクから加入しました。",
    ],
)
def test_other_notices_move_nobody(notice):
    assert moves_told(notice) is None


LEFT_OUT = (
    ("kép küldése sikertelen.", "picture"), ("ei kuvaa", "picture"), ("bild utesluten", "picture"),
    ("התמונה הושמטה", "picture"), ("تصویر حذف شد", "picture"), ("vidéo absente", "video"),
    ("wideo pominięte", "video"), ("GIF retiré", "video"), ("ljud utelslutet", "voice"), ("fără audio", "voice"),
    ("tarraa ei sisällytetty", "sticker"), ("Posjetnica izostavljena", "contact"), ("έγγραφο παραλείφθηκε", "file"),
    ("obrázek vynechán", "picture"), ("ไม่มีรูปภาพ", "picture"), ("đã bỏ sticker", "sticker"),
    ("picha haijajumuishwa", "file"),
)  # fmt: skip


def test_what_an_iphone_leaves_out_is_an_attachment_in_any_language(tmp_path):
    with all_cases() as case:
        for label, kind in LEFT_OUT:
            with case(label):
                stamp = f"{LRM}[14.08.2024, 21:00:10]"
                lines = [f"{stamp} Bo: {LRM}{label}", f"{stamp} Bo: look {LRM}{label}", f"[{stamp[2:]} Bo: {label} ok"]
                alone, beside, typed = read(tmp_path, lines)
                assert (alone.text, alone.metadata["attachments"], alone.role) == ("", [{"type": kind}], Role.USER)
                assert (typed.text, typed.metadata) == (f"{label} ok", {})
                if kind != "file":
                    assert (beside.text, beside.metadata["attachments"]) == ("look", [{"type": kind}])


ANDROID = (
    "Mediefil udeladt", "מדיה הושמטה", "< ஊடகங்கள் நீக்கப்பட்டது >", "Pa media", "Bỏ qua Media", "Médiá vynechané",
    "تم استبعاد الوسائط", "پيوست نما/آهنگ حذف شد", "Walang kalakip na media", "মিডিয়া বাদ দেওয়া হয়েছে", "Без файл",
)  # fmt: skip
SENT = (
    "IMG-20240512-WA0001.jpg (liitetiedosto)", "IMG-20240512-WA0001.jpg (aangeheg lêer)", "plan.pdf (קובץ מצורף)",
    f"{LRM}plan.pdf (в приложении)", "plan.pdf (tệp đính kèm)", "plan.pdf (添付ファイル有り)",
)  # fmt: skip


def test_what_an_android_phone_leaves_out_or_attaches_is_an_attachment(tmp_path):
    with all_cases() as case:
        for label in ANDROID:
            with case(label):
                (message,) = read(tmp_path, [f"12/05/2024, 18:31 - Ann: <{label.strip('<>')}>"])
                assert (message.text, message.metadata["attachments"]) == ("", [{"type": "file"}])
        for words in SENT:
            with case(words):
                (message,) = read(tmp_path, [f"12/05/2024, 18:31 - Ann: {words}\nlook"])
                name = words.strip(LRM).partition(" ")[0]
                assert (message.text, message.metadata["attachments"][0]["file"]) == ("look", name)


def test_a_label_that_a_chat_repeats_is_no_text(tmp_path):
    stamp = "12/05/2024, 18:31 -"
    lines = [
        f"{stamp} Ann: <Vyombo havipo>", f"{stamp} Bo: <Vyombo havipo>\nangalia",
        f"{stamp} Ann: habari <Ujumbe huu umehaririwa>", f"{stamp} Bo: nzuri <Ujumbe huu umehaririwa>",
        f"{stamp} Ann: <just once>", f"{stamp} Ann: a <b c>",
    ]  # fmt: skip
    left, beside, edited, other, once, last = read(tmp_path, lines)
    assert [(message.text, message.metadata) for message in (left, beside)] == [
        ("", {"attachments": [{"type": "file"}]}),
        ("angalia", {"attachments": [{"type": "file"}]}),
    ]
    assert [(message.text, message.metadata) for message in (edited, other)] == [
        ("habari", {"edited": True}), ("nzuri", {"edited": True}),
    ]  # fmt: skip
    assert [message.text for message in (once, last)] == ["<just once>", "a <b c>"]


DELETED = ("Tämä viesti poistettiin.", "Tin nhắn này đã bị xoá", "Ushbu xabar o‘chirildi", "Жауапсыз қоңырау",
           "Ez az üzenet törlésre került", "ข้อความนี้ได้ถูกลบ", "Αναπάντητη κλήση", "‏לא")  # fmt: skip


def test_deleted_messages_and_missed_calls_in_more_languages(tmp_path):
    messages = read(tmp_path, [f"12/05/2024, 18:31 - Ann: {words}" for words in DELETED])
    kinds = [
        "deleted" if message.metadata else "call" if message.role is Role.SYSTEM else "said" for message in messages
    ]
    assert kinds == ["deleted", "deleted", "deleted", "call", "deleted", "deleted", "call", "said"]


NAMED = ("WhatsApp Gesprek met Tea", "دردشة واتساب مع Tea", "Tea ilə WhatsApp Söhbəti",
         "Chat WhatsApp s uživatelem Tea",
         "WhatsApp-keskustelu henkilön Tea kanssa", "צ'אט WhatsApp עם Tea", "Trò chuyện WhatsApp với Tea",
         "WhatsApp 与 Tea 的对话", "TeaとのWhatsAppチャット", "แชท WhatsApp กับ Tea", "Tea के साथ WhatsApp चैट",
         "Biseda me Tea në WhatsApp", "Чат WhatsApp с\u00a0контактом Tea", "Conversa no WhatsApp com Tea")  # fmt: skip


def test_files_name_their_chat_in_the_language_of_the_phone(tmp_path):
    with all_cases() as case:
        for name in NAMED:
            with case(name):
                (message,) = read(tmp_path, ["12/05/2024, 18:31 - Ann: hi"], f"{name}.txt")
                assert message.room_id == "Tea"
