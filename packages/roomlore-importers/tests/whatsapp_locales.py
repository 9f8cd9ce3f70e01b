"""Zips as WhatsApp hands them out on Android and iOS in several languages, made without a word of the importer's.

Each has the same talk: 4 texts, one of two lines, one with a link, one that was edited if the words for that are known,
one file with words beside it, one picture that was left out. `told` is what a reader must find.
"""

import io
import zipfile
from dataclasses import dataclass
from datetime import datetime

TALK = (
    (datetime(2024, 1, 25, 9, 3, 15), "Ann Lee", "Who brings tea? 谁带茶？"),
    (datetime(2024, 1, 25, 21, 4, 0), "王 芳", "I do: green\nand black"),
    (datetime(2024, 2, 3, 12, 30, 59), "Ann Lee", "https://example.org/a: see 3/4, 10:15 - there"),
    (datetime(2024, 2, 3, 0, 5, 1), "王 芳", "好"),
)
FILE = (datetime(2024, 2, 13, 18, 0, 0), "Ann Lee", "tea.jpg")
LEFT_OUT = (datetime(2024, 2, 14, 7, 59, 9), "王 芳")


@dataclass(frozen=True)
class Locale:
    """`android`, `ios`: of the stamp, for strftime; {h}, {d}, {m} and {half} are hours of the half day, and day, month
    without padding, and the half of the day."""

    name: str
    android: str
    ios: str
    media: str
    attached: str
    ios_media: str
    ios_attached: str
    halves: tuple[str, str] = ("AM", "PM")
    chat: str = "WhatsApp Chat with Tea"
    edited: str = ""


LOCALES = (
    Locale("en-US", "{m}/{d}/%y, {h}:%M {half}", "{m}/{d}/%y, {h}:%M:%S {half}", "<Media omitted>",
           "file attached", "image omitted", "<attached: {}>", ("AM", "PM"), edited="<This message was edited>"),
    Locale("en-GB", "%d/%m/%Y, %H:%M", "%d/%m/%Y, %H:%M:%S", "<Media omitted>", "file attached", "image omitted",
           "<attached: {}>", edited="<This message was edited>"),
    Locale("de", "%d.%m.%y, %H:%M", "%d.%m.%y, %H:%M:%S", "<Medien ausgeschlossen>", "Datei angehängt",
           "Bild weggelassen", "<Anhang: {}>", chat="WhatsApp Chat mit Tea",
           edited="<Diese Nachricht wurde bearbeitet.>"),
    Locale("es", "{d}/{m}/%y, %H:%M", "{d}/{m}/%y, %H:%M:%S", "<Multimedia omitido>", "archivo adjunto",
           "imagen omitida", "<adjunto: {}>", chat="Chat de WhatsApp con Tea",
           edited="<Se editó este mensaje.>"),
    Locale("fr", "%d/%m/%Y, %H:%M", "%d/%m/%Y %H:%M:%S", "<Médias omis>", "fichier joint", "image absente",
           "<pièce jointe : {}>", chat="Discussion WhatsApp avec Tea",
           edited="<Ce message a été modifié>"),
    Locale("it", "%d/%m/%y, %H:%M", "%d/%m/%y, %H:%M:%S", "<Media omessi>", "file allegato", "immagine omessa",
           "<allegato: {}>", chat="Chat WhatsApp con Tea",
           edited="<Questo messaggio è stato modificato>"),
    Locale("pt-BR", "%d/%m/%Y %H:%M", "%d/%m/%y, %H:%M:%S", "<Mídia oculta>", "arquivo anexado", "imagem ocultada",
           "<anexado: {}>", chat="Conversa do WhatsApp com Tea",
           edited="<Mensagem editada>"),
    Locale("nl", "%d-%m-%Y %H:%M", "%d-%m-%Y %H:%M:%S", "<Media weggelaten>", "bestand bijgevoegd",
           "afbeelding weggelaten", "<bijgevoegd: {}>", chat="WhatsApp-chat met Tea",
           edited="<Dit bericht is bewerkt>"),
    Locale("ru", "%d.%m.%Y, %H:%M", "%d.%m.%Y, %H:%M:%S", "<Без медиафайлов>", "файл добавлен",
           "изображение отсутствует", "<прикреплено: {}>", chat="Чат WhatsApp с Tea"),
    Locale("tr", "%d.%m.%Y %H:%M", "{d}.%m.%Y %H:%M:%S", "<Medya dahil edilmedi>", "dosya ekli",
           "görüntü dahil edilmedi", "<eklendi: {}>", chat="Tea ile WhatsApp Sohbeti"),
    Locale("pl", "{d}.%m.%Y, %H:%M", "{d}.%m.%Y, %H:%M:%S", "<Pominięto multimedia>", "plik załączony",
           "obraz pominięto", "<załącznik: {}>", chat="Czat WhatsApp z Tea"),
    Locale("id", "%d/%m/%y %H.%M", "%d/%m/%y %H.%M.%S", "<Media tidak disertakan>", "file terlampir",
           "gambar tidak disertakan", "<terlampir: {}>", chat="Chat WhatsApp dengan Tea"),
    Locale("zh-CN", "%Y/{m}/{d} %H:%M", "%Y/{m}/{d} %H:%M:%S", "<省略多媒体文件>", "文件附件", "图像已忽略",
           "<附件：{}>", chat="与Tea的WhatsApp聊天",
           edited="<此消息已编辑>"),
    Locale("zh-TW", "%Y/{m}/{d} {half}{h}:%M", "%Y/{m}/{d} {half}{h}:%M:%S", "<省略多媒體檔>", "檔案附件",
           "圖片已略去", "<附件：{}>", ("上午", "下午"), chat="與Tea的WhatsApp對話",
           edited="<此訊息已編輯>"),
    Locale("ja", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "<メディアは含まれていません>", "添付ファイル",
           "画像は含まれていません", "<添付ファイル：{}>", chat="Teaとのトーク"),
    Locale("ko", "%Y. {m}. {d}. {half} {h}:%M", "%Y. {m}. {d}. {half} {h}:%M:%S", "<미디어 파일을 제외한 내용>",
           "파일 첨부됨", "사진 생략됨", "<첨부: {}>", ("오전", "오후"), chat="Tea 님과의 WhatsApp 대화"),
)  # fmt: skip


def told(system: str) -> list[tuple[datetime, str, str, str]]:
    """Return what a reader must find: the time, the author, the text, and the name of a file."""
    whole = [(at, who, text, "") for at, who, text in TALK] + [(*FILE[:2], "look", FILE[2]), (*LEFT_OUT, "", "")]
    if system == "android":  # which writes no seconds
        whole = [(at.replace(second=0), *rest) for at, *rest in whole]
    return whole


def stamp(form: str, at: datetime, halves: tuple[str, str]) -> str:
    half = halves[at.hour >= 12]
    return at.strftime(form).format(h=at.hour % 12 or 12, d=at.day, m=at.month, half=half)


def export(locale: Locale, system: str) -> tuple[str, bytes]:
    """Return the name and the bytes of a zip."""
    form = locale.android if system == "android" else locale.ios
    text = _android(locale, form) if system == "android" else _ios(locale, form)
    name = f"{locale.chat}.txt" if system == "android" else "_chat.txt"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, text.encode())
        archive.writestr(FILE[2], b"\xff\xd8\xff")
    return (f"{locale.chat}.zip" if system == "android" else "WhatsApp Chat - Tea.zip"), packed.getvalue()


def _android(locale: Locale, form: str) -> str:
    lines = [f"{stamp(form, at, locale.halves)} - {who}: {text}" for at, who, text in TALK]
    lines[-1] += locale.edited and f" {locale.edited}"
    at, who, name = FILE
    lines.append(f"{stamp(form, at, locale.halves)} - {who}: \u200e{name} ({locale.attached})\nlook")
    at, who = LEFT_OUT
    lines.append(f"{stamp(form, at, locale.halves)} - {who}: {locale.media}")
    return "\n".join(lines) + "\n"


def _ios(locale: Locale, form: str) -> str:
    lines = [f"[{stamp(form, at, locale.halves)}] {who}: {text}" for at, who, text in TALK]
    lines[-1] += locale.edited and f" \u200e{locale.edited}"
    at, who, name = FILE
    lines.append(f"\u200e[{stamp(form, at, locale.halves)}] {who}: look \u200e{locale.ios_attached.format(name)}")
    at, who = LEFT_OUT
    lines.append(f"\u200e[{stamp(form, at, locale.halves)}] {who}: \u200e{locale.ios_media}")
    return "\r\n".join(lines) + "\r\n"
