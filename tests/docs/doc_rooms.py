"""Data of the documentation's readers: a chat's export, a room that talks, facts about people."""

import json

from doc_page import Page

import roomlore
from roomlore_testkit.model_server import serve_models

_SPOKEN = [
    ("Ann", "who paid for lunch?"),
    ("小李", "周五聚餐去哪儿？"),
    ("Bob", "lunch was on me"),
    ("王姐", "午饭是 Bob 付的钱"),
    ("Ann", "thanks, Bob!"),
]
TELEGRAM = {
    "name": "Tea",
    "type": "private_group",
    "id": 4242,
    "messages": [
        {"id": n, "type": "message", "date_unixtime": f"{1780304400 + n}", "from": who, "from_id": who, "text": text}
        for n, (who, text) in enumerate(_SPOKEN, 1)
    ],
}
DEERFLOW = {
    "facts": [{"id": "f1", "content": "喜欢爬山", "category": "preference", "confidence": 0.9}],
    "user": {"topOfMind": {"summary": "Plans a trip to Huangshan"}},
}
MEM0 = {"results": [{"id": "1", "memory": "Drinks oolong", "user_id": "anna"}]}


async def said(lore: roomlore.Lore, room: str, *texts: str, senders: tuple[str, ...] = ("ann", "bob")) -> None:
    """Messages m1, m2, ... of these people in turn, the names those of the ids."""
    await lore.messages.add(
        [
            roomlore.Message(
                id=f"m{n}",
                room_id=room,
                sender_id=senders[n % len(senders)],
                sender_name=senders[n % len(senders)].title(),
                text=text,
            )
            for n, text in enumerate(texts)
        ]
    )


def evolving(url: str) -> dict:
    """Settings with a model at this address that evolves what is remembered."""
    providers = [{"name": "local", "model_id": "tiny-model"}]
    return {
        "models": {"memory-evolve-model": {"internal": True, "providers": providers}},
        "providers": {"local": {"base_url": url}},
        "durable_work": "process",
    }


def operations(*lines: dict) -> str:
    """A model's answer: a JSON object a line."""
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


def evolved_once(page: Page, database: str, room: str) -> tuple[str, str]:
    """A room whose memory has evolved: the ends of the ids of the memory and of the evolution."""
    statement = "他们每周五聚会 They meet on Fridays"
    operation = {"action": "create", "statement": statement, "change_reason": "said twice", "evidence": ["c1", "c2"]}
    with serve_models([operations(operation)]) as server:
        lore = page.open(database, **evolving(server.url))
        page.wait(said(lore, room, "Friday again? 周五见？", "Friday at eight 周五八点"))
        done = page.wait(lore.memories.evolve(room))
    (memory,) = page.wait(lore.memories.page(f"group:{room}"))
    return memory.memory_id[-8:], done.evolution_id[-8:]
