"""Made-up rooms for the evolution without a model."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from roomlore.core.evolution.offline import offline_answer
from roomlore.core.evolution.prompt import handles_of, message_handles
from roomlore.core.evolution.requests import Answer
from roomlore.core.memory.memory import Memory, MemoryKind, Source
from roomlore.core.models import StoredMessage

MONDAY = datetime(2026, 3, 2, 20, tzinfo=UTC)
ROOM = "r"
Said = tuple[int, str, str]

ANIME: Sequence[Said] = (
    (0, "小林", "新番《星海》这周更新了没"),
    (0, "阿哲", "更新了，新番质量不错"),
    (1, "小林", "中午吃了碗面"),
    (2, "老周", "键盘坏了，想换一个静音的"),
    (4, "老周", "提醒：每周五晚上八点一起看新番"),
    (4, "小美", "新番我补到第三集了"),
    (4, "小林", "快递终于到了，拆箱去"),
    (7, "阿哲", "周末爬山的照片发群里了"),
    (9, "小美", "猫又把水杯推下桌子"),
    (11, "阿哲", "别忘了每周五晚上八点一起看新番"),
    (11, "小林", "今晚新番是第五集"),
    (11, "老周", "这部新番的音乐太赞了"),
    (13, "小美", "地铁又晚点，差点迟到"),
    (14, "老周", "有人要转让演唱会门票吗"),
    (16, "小林", "雨下得真大，鞋全湿了"),
    (18, "小美", "新来的看一下，每周五晚上八点一起看新番"),
    (18, "阿哲", "新番完结那集我哭了"),
)
TEAM: Sequence[Said] = (
    (0, "Ann", "Reminder: stand-up is every Monday at 9 in the blue room"),
    (0, "Bob", "The printer on the second floor is jammed again"),
    (1, "Cho", "Lunch at the noodle place was great"),
    (2, "Dee", "I pushed the invoice export to staging"),
    (3, "Ann", "Somebody left an umbrella in the kitchen"),
    (7, "Bob", "For the new folks: stand-up is every Monday at 9, blue room"),
    (7, "Cho", "My train is late, start without me"),
    (8, "Dee", "The invoice export misses the tax column"),
    (9, "Ann", "Tax column added, please look at the diff"),
    (10, "Bob", "Who has the key of the bike shed?"),
    (14, "Cho", "Stand-up is every Monday at 9 in the blue room, as always"),
    (14, "Dee", "Invoice export is ready for accounting"),
    (15, "Ann", "Accounting signed off, the invoice export goes live on Thursday"),
    (17, "Bob", "The invoice export is live"),
)


def said_in(room: Iterable[Said], **fields: Any) -> list[StoredMessage]:
    """`room`: day from Monday 2 March 2026, sender, text; a minute between messages."""
    return [
        StoredMessage(
            id=f"{ROOM}-{number}",
            room_id=ROOM,
            sender_id=sender.lower(),
            sender_name=sender,
            text=text,
            sent_at=MONDAY + timedelta(days=day, minutes=number),
            arrival=number,
            **fields,
        )
        for number, (day, sender, text) in enumerate(room, start=1)
    ]


def memory(statement: str, **fields: Any) -> Memory:
    given: dict[str, Any] = {"memory_id": "m", "lineage_id": "m", "scope": "group:r", "kind": MemoryKind.GROUP}
    times = dict.fromkeys(("created_at", "updated_at", "supported_at"), MONDAY)
    return Memory(**{**given, **times, **fields}, statement=statement)


def answer(
    messages: Sequence[StoredMessage],
    *,
    fresh: int = 4,
    memories: Sequence[Memory] = (),
    **options: Any,
) -> Answer:
    """With the last `fresh` messages as the new ones."""
    at = max(len(messages) - fresh, 0)
    handles = message_handles(Source(one.room_id, one.id) for one in messages)
    return offline_answer(
        messages[at:],
        handles_of(memories),
        handles=handles,
        zone=options.pop("zone", UTC),
        earlier=messages[:at],
        **options,
    )
