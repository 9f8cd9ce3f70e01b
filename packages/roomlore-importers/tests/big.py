"""Big exports made on the spot, and what reading them costs.

By hand: `python tests/importers/big.py [megabytes] [format ...]` reads one file of each format and prints MB/s and the
growth of the process' memory.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from roomlore_importers import Parsed, open_import

WORDS = (
    *["the", "kettle", "is", "坏了", "again,", "who", "can", "look?"],
    "我明天去",
    "买一个",
    "新的",
    "—",
    "v1.2 of net/http",
    "🙂",
)


def text(number: int) -> str:
    return " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 8 + number % 17))


def moment(number: int) -> str:
    return (datetime(2020, 1, 1) + timedelta(seconds=7 * number)).isoformat()


def jsonl(number: int) -> str:
    record = {
        "id": f"m{number}",
        "room_id": "big",
        "sender_id": f"u{number % 40}",
        "text": text(number),
        "sent_at": moment(number) + "Z",
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def telegram(number: int) -> str:
    record = {
        "id": number, "type": "message", "date": moment(number), "date_unixtime": str(1_700_000_000 + number),
        "from": "Ann", "from_id": f"user{number % 40}", "text": text(number),
        "text_entities": [{"type": "plain", "text": text(number)}],
    }  # fmt: skip
    return ("," if number else "") + json.dumps(record, ensure_ascii=False, indent=1)


def discord(number: int) -> str:
    author = {"id": str(number % 40), "name": "ann", "nickname": "Ann", "isBot": False, "roles": []}
    record = {
        "id": str(number), "type": "Default", "timestamp": moment(number) + "+00:00", "timestampEdited": None,
        "content": text(number), "author": author, "attachments": [], "embeds": [], "reactions": [], "mentions": [],
    }  # fmt: skip
    return ("," if number else "") + json.dumps(record, ensure_ascii=False, indent=2)


def irc(number: int) -> str:
    return f"[{number // 60 % 24:02d}:{number % 60:02d}] <nick{number % 40}> {text(number)}\n"


def whatsapp(number: int) -> str:
    when = moment(number)
    return f"{when[8:10]}/{when[5:7]}/{when[:4]}, {when[11:16]} - Person {number % 40}: {text(number)}\n"


def openai(number: int) -> str:
    said = [{"role": "user", "content": text(number)}, {"role": "assistant", "content": text(number + 1)}]
    return json.dumps({"messages": said}, ensure_ascii=False) + "\n"


def lark(number: int) -> str:
    record = {
        "message_id": f"om_{number}", "msg_type": "text", "create_time": str(10**12 + number), "chat_id": "oc",
        "sender": {"id": f"ou_{number % 40}", "id_type": "open_id", "sender_type": "user"},
        "body": {"content": json.dumps({"text": text(number)}, ensure_ascii=False)},
    }  # fmt: skip
    return ("," if number else "") + json.dumps(record, ensure_ascii=False)


def line(number: int) -> str:
    when = datetime(2020, 1, 1) + timedelta(minutes=number)
    day = f"{when:%Y.%m.%d %A}\n" if number % 1440 == 0 else ""
    return f"{day}{when:%H:%M}\tPerson {number % 40}\t{text(number)}\n"


def kakaotalk(number: int) -> str:
    when = datetime(2020, 1, 1) + timedelta(minutes=number)
    half, hour = ("오후" if when.hour > 11 else "오전"), (when.hour - 1) % 12 + 1
    return f"{when.year}년 {when.month}월 {when.day}일 {half} {hour}:{when:%M}, 사람{number % 40} : {text(number)}\n"


def meta(number: int) -> str:
    """One of the messages, the newest first."""
    said = {
        "sender_name": f"P{number % 40}",
        "timestamp_ms": 1_900_000_000_000 - number * 1000,
        "content": text(number),
    }
    return ("," if number else "") + json.dumps(said, indent=1)


def matrix(number: int) -> str:
    event = {"type": "m.room.message", "sender": f"@p{number % 40}:x", "event_id": f"${number}", "room_id": "!r:x"}
    event |= {"origin_server_ts": 1_600_000_000_000 + number * 1000, "content": {"body": text(number)}}
    return ("," if number else "") + json.dumps(event, ensure_ascii=False)


Maker = Callable[[int], str]
FILES: dict[str, tuple[str, str, Maker, str]] = {
    "jsonl": ("big.jsonl", "", jsonl, ""),
    "telegram": ("result.json", '{"name":"Big","type":"private_group","id":1,"messages":[', telegram, "]}"),
    "discord": ("big.json", '{"guild":{"id":"1"},"channel":{"id":"7"},"messages":[', discord, '],"messageCount":1}'),
    "irc": ("2024-01-01.log", "", irc, ""),
    "whatsapp": ("chat.txt", "", whatsapp, ""),
    "openai": ("chats.jsonl", "", openai, ""),
    "lark": ("lark.json", '{"code":0,"data":{"items":[', lark, "]}}"),
    "line": ("[LINE] Big.txt", "[LINE] Chat history in Big\nSaved on: 2024.01.01 09:00\n\n", line, ""),
    "kakaotalk": ("KakaoTalkChats.txt", "Big 카카오톡 대화\n저장한 날짜 : 2024년 1월 1일 오전 9:00\n\n", kakaotalk, ""),
    "meta": ("message_1.json", '{"participants":[{"name":"P1"}],"messages":[', meta, '],"thread_path":"inbox/big_1"}'),
    "matrix": ("export.json", '{"room_name":"Big","messages":[', matrix, "]}"),
}


def write(folder: Path, form: str, size: int, *, repeat: bool = False) -> tuple[Path, int]:
    """(a file of at least `size` bytes, its messages); `repeat`: the same messages over and over, made faster."""
    name, head, make, tail = FILES[form]
    path = folder / name
    count = 2000
    with path.open("w", encoding="utf-8") as file:
        file.write(head + "".join(map(make, range(count))))
        block = "".join(map(make, range(1, count + 1)))
        while file.tell() < size:
            file.write(block if repeat else "".join(map(make, range(count, count + 2000))))
            count += 2000
        file.write(tail)
    return path, count * (2 if form == "openai" else 1)


def resident() -> int:
    """Bytes of memory the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def growth(path: Path, form: str) -> tuple[int, int]:
    """(messages read, most the process grew by, in bytes)"""
    before, most = resident(), 0
    count = 0
    for item in open_import(path, form):
        count += isinstance(item, Parsed)
        if count % 5000 == 0:
            most = max(most, resident() - before)
    return count, most


def _report(forms: list[str], size: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        for form in forms:
            path, wanted = write(Path(folder), form, size)
            start = time.perf_counter()
            count, most = growth(path, form)
            seconds = time.perf_counter() - start
            bytes_read = path.stat().st_size
            path.unlink()
            yield (
                f"{form}: {bytes_read / 1e6:.0f} MB, {count} of {wanted} messages, {bytes_read / 1e6 / seconds:.1f} "
                f"MB/s, {count / seconds:.0f} messages/s, memory +{most / 1e6:.1f} MB"
            )


if __name__ == "__main__":
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for line in _report(sys.argv[2:] or list(FILES), megabytes * 1_000_000):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
