"""The rig of the page about what is remembered of groups."""

import json
import re
from functools import cache

from doc_page import Page
from doc_rigs import rig
from doc_rooms import evolving, operations, said

import roomlore
from roomlore_testkit.model_server import serve_models

ROOM = "动漫群"
EARLIER = [
    ("m1", "Anna", "Anime tonight?"),
    ("m2", "Bob", "这周五晚上八点一起看新番吧"),
    ("m3", "小王", "The release is on Thursday"),
    ("m4", "Anna", "科幻动漫这季不错"),
    ("m5", "小王", "The release is on Thursday, I asked"),
    ("m6", "Bob", "对新人要友好"),
]
LATER = [
    ("m101", "Bob", "I work in Berlin now"),
    ("m102", "小王", "The standup is at 10 from Monday"),
    ("m103", "Anna", "Friday at eight, as always"),
    ("m104", "Bob", "Yes. In Berlin it is eight as well"),
    ("m105", "小王", "The release moved to Friday, after the standup"),
    ("m106", "Anna", "好的"),
]
FIRST = [
    ("群组讨论动漫", "多人提到新番", ("c2", "c4")),
    ("The release is on Thursday", "said twice", ("c3", "c5")),
    ("对新人友好", "有人说过", ("c6",)),
]


def answer(asked) -> str:
    """A model that takes anything for evidence."""
    if "群组讨论动漫" not in asked.prompt:
        return operations(*(create(*operation) for operation in FIRST)) if "Anime tonight?" in asked.prompt else ""
    handle = {said: re.search(rf"(m\d+).*{said}", asked.prompt)[1] for said, _, _ in FIRST}
    better = "每周五晚上八点讨论新番动漫，偏好科幻题材"
    return operations(
        {"action": "keep", "old_id": handle["对新人友好"]},
        create(better, "明确了时间和偏好", ("c3",), old=handle["群组讨论动漫"]),
        create(
            "The release is on Friday, after the standup", "moved", ("c5",), old=handle["The release is on Thursday"]
        ),
        create("Bob works in Berlin", "said twice", ("c1", "c4")),
    )


def create(statement: str, why: str, evidence: tuple[str, ...], old: str = "") -> dict:
    operation = {"statement": statement, "change_reason": why, "evidence": list(evidence)}
    return {"action": "update", "old_id": old, **operation} if old else {"action": "create", **operation}


@rig("docs/how-to/group-memory.md")
def group_memory(page: Page):
    with serve_models(answer) as server:
        settings = evolving(server.url)
        page.environment |= {f"MEMORY_{name.upper()}": as_text(value) for name, value in settings.items()}
        lore = page.open(**settings)
        page.wait(lore.messages.add(messages(EARLIER)))
        page.wait(lore.memories.evolve(ROOM))
        page.wait(lore.messages.add(messages(LATER)))
        page.wait(said(lore, "tea", "Green or black?", "Green"))
        page.instead |= identified(page, lore)
        page.typed = "y\n"
        page.shell("roomlore serve")
        yield
    assert "updated=1" in page.printed[2]


def identified(page: Page, lore: roomlore.Lore) -> dict:
    """The ends of ids, found once the evolution of the page has been."""

    @cache
    def heads() -> dict[str, roomlore.Memory]:
        return {one.statement: one for one in page.wait(lore.memories.page(f"group:{ROOM}"))}

    def head(begins: str) -> roomlore.Memory:
        return next(one for statement, one in heads().items() if statement.startswith(begins))

    def log() -> list:
        return page.wait(lore.memories.changes(f"group:{ROOM}"))

    return {
        "a2933f85": lambda: head("每周五").memory_id[-8:],
        "10aba5d2": lambda: head("The release").memory_id[-8:],
        "8d4ed3ed": lambda: head("Bob").memory_id[-8:],
        "2e363c25": lambda: page.wait(lore.memories.history(head("每周五").memory_id))[0].memory_id[-8:],
        "0767cbad": cache(lambda: log()[-1].evolution_id[-8:]),
        "88b557b1": cache(lambda: log()[0].evolution_id[-8:]),
    }


def messages(spoken: list[tuple[str, str, str]]) -> list[roomlore.Message]:
    return [roomlore.Message(id=n, room_id=ROOM, sender_id=who, sender_name=who, text=text) for n, who, text in spoken]


def as_text(value) -> str:
    return value if isinstance(value, str) else json.dumps(value)
