"""The samples, what is in them, and what reading them must give.

`python tests/importers/catalogue.py` writes the expectations anew; read the difference before keeping it.
"""

import json
from pathlib import Path

from roomlore.core.records import to_record
from roomlore_importers import Bad, Item, Parsed, open_import

HERE = Path(__file__).parent
SAMPLES = HERE / "samples"
EXPECTED = HERE / "expected"

FORMAT_OF = {
    "#kitchen.log": "irc",
    "2004-11-15-#ubuntu.txt": "irc",
    "Hikers - trips [7001].json": "discord",
    "Hikers - trips - Lost glove [7002].json": "discord",
    "WhatsApp Chat with Hikers.txt": "whatsapp",
    "WhatsApp Chat with Bob.txt": "whatsapp",
    "WhatsApp Chat with Choir.txt": "whatsapp",
    "WhatsApp Chat - Choir": "whatsapp",
    "_chat.txt": "whatsapp",
    "bare.openai.json": "openai",
    "chats.openai.jsonl": "openai",
    "conversations.json": "chatgpt",
    "irc.server.#dev.weechatlog": "irc",
    "lark.events.jsonl": "lark",
    "lark.json": "lark",
    "lark.pages.jsonl": "lark",
    "lark.topics.json": "lark",
    "result.json": "telegram",
    "ChatExport_2024-06-02": "telegram",
    "room.jsonl": "jsonl",
    "slack": "slack",
    "Acme Slack export Jun 1 2024 - Jun 3 2024": "slack",
    "telegram.json": "telegram",
    "与登山队的WhatsApp聊天.txt": "whatsapp",
    "登山队.chatlab.json": "chatlab",
    "小明.chatlab.jsonl": "chatlab",
    "登山队.qce.json": "qq-exporter",
    "篮球队.qce.json": "qq-exporter",
    "group_700701_20251109.json": "qq-exporter",
    "private_10002_chunked": "qq-exporter",
    "bot.onebot.jsonl": "onebot",
    "球友.onebot.jsonl": "onebot",
    "history.onebot.json": "onebot",
    "消息记录.txt": "qq-text",
    "同学群.txt": "qq-text",
    "读书会.txt": "qq-text",
    "读书会.memotrace.csv": "wechat-csv",
    "读书会.chatlog.csv": "wechat-csv",
    "读书会.pywxdump.csv": "wechat-csv",
    "读书会.weclone.csv": "wechat-csv",
    "读书会.chatlog.json": "chatlog",
    "读书会.weflow.json": "weflow",
    "读书会.echotrace.json": "weflow",
    "读书会.arkme.json": "weflow",
    "读书会.chatlab.jsonl": "chatlab",
    "archive.wecom.jsonl": "wecom",
    "客户群.wecom.jsonl": "wecom",
    "[LINE] Trip.txt": "line",
    "[LINE] 旅行のトーク.txt": "line",
    "[LINE] 與阿哲的聊天.txt": "line",
    "[LINE]กลุ่มเดินป่า.txt": "line",
    "KakaoTalk Chats with Tour.txt": "kakaotalk",
    "KakaoTalkChats.txt": "kakaotalk",
    "KakaoTalk_20240103_1000_00_123_group.txt": "kakaotalk",
    "KakaoTalk_Chat_등산 모임.csv": "kakaotalk",
    "KakaoTalk_Tour_windows.txt": "kakaotalk",
    "Talk_2026.1.7 10_00-1.txt": "kakaotalk",
    "Signal Hikers": "signal",
    "Choir (_id7).txt": "signal",
    "matrix - Hut - Chat Export.json": "matrix",
    "kitchen.matrix.jsonl": "matrix",
    "acme.mattermost.jsonl": "mattermost",
    "general.rocketchat.json": "rocketchat",
    "history.rocketchat.json": "rocketchat",
    "Zulip export": "zulip",
    "Space AAAA1": "googlechat",
    "message_1.json": "meta",
    "message_2.json": "meta",
    "Ann Lee_5.json": "meta",
    "Teams download": "teams",
    "chat.teams.json": "teams",
}
ONE_LINE_A_MESSAGE = (
    "#kitchen.log",
    "2004-11-15-#ubuntu.txt",
    "irc.server.#dev.weechatlog",
    "room.jsonl",
    "lark.events.jsonl",
)
WHATSAPP = tuple(name for name, form in FORMAT_OF.items() if form == "whatsapp" and name.endswith(".txt"))
DOCUMENTS = (
    "Hikers - trips [7001].json",
    "Hikers - trips - Lost glove [7002].json",
    "bare.openai.json",
    "lark.json",
    "lark.topics.json",
    "result.json",
    "telegram.json",
    "登山队.chatlab.json",
    "登山队.qce.json",
    "篮球队.qce.json",
    "读书会.chatlog.json",
    "读书会.weflow.json",
    "读书会.echotrace.json",
    "读书会.arkme.json",
    "matrix - Hut - Chat Export.json",
    "history.rocketchat.json",
)
FOLDERS = {
    "slack",
    "private_10002_chunked",
    "ChatExport_2024-06-02",
    "WhatsApp Chat - Choir",
    "Acme Slack export Jun 1 2024 - Jun 3 2024",
    "Signal Hikers",
    "Zulip export",
    "Space AAAA1",
    "Teams download",
}


def items(path: Path, **options) -> list[Item]:
    with open_import(path, **options) as reading:
        return list(reading)


def messages(path: Path, **options):
    return [item.message for item in items(path, **options) if isinstance(item, Parsed)]


def described(item: Item) -> dict:
    if isinstance(item, Bad):
        return {"bad": item.number, "reason": item.reason, "excerpt": item.excerpt}
    edited = {"edited_at": item.edited_at.isoformat()} if item.edited_at else {}
    moves = [f"{'+' if move.came else '-'}{move.person}{' (name)' if move.by_name else ''}" for move in item.moves]
    deletes = {"deletes": item.deletes} if item.deletes else {}
    room = {"kind": item.room.kind, "members": list(item.room.members or ())} if item.room else {}
    if item.room and item.room.name:
        room["name"] = item.room.name
    return (
        to_record(item.message)
        | edited
        | deletes
        | ({"moves": moves} if moves else {})
        | ({"room": room} if room else {})
    )


def expected(name: str) -> list[dict]:
    text = (EXPECTED / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def _write() -> None:
    for name in FORMAT_OF:
        lines = [json.dumps(described(item), ensure_ascii=False) for item in items(SAMPLES / name)]
        (EXPECTED / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    EXPECTED.mkdir(exist_ok=True)
    _write()
