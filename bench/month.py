"""A simulated month: rooms in both languages evolve every night with a scripted model that is eager and unreliable.

The model updates and merges in any wording and either language, creates at times what is there already, fails, answers
rubbish and invents. What is held after the last night is compared with what was said.
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import roomlore
from bench.progress import Progress
from roomlore import Lore, Message, Settings
from roomlore.adapters.inprocess import InProcessWork
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.chat import ChatAnswer, ChatRequest, Usage
from roomlore.core.errors import ModelUnavailable
from roomlore.core.memory.memory import Memory
from roomlore.services.evolution import EvolutionService
from roomlore.services.models import ModelService
from roomlore.wiring.work import make_evolutions

_BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
_ALL_DAYS = 3_650
_SUBJECTS = 8
_FAILS, _RUBBISH, _INVENTS, _AGAIN = 0.05, 0.02, 0.05, 0.1
_SAID, _CHANGES, _SMALL_TALK = 0.35, 0.2, 6
_INVENTED = "The group meets {} times a week in room {}"
_TALK = (
    "the coffee machine is loud today",
    "今天的云真好看",
    "my train was late again",
    "午饭吃了面",
    "哈哈哈哈",
    "nice!",
)

# Each row: what people write, then the wordings of a memory. {} is the value, a number.
_WORDINGS: Mapping[str, Sequence[str]] = {
    "stand-up": (
        "the stand-up is at {} from now on",
        "The team holds its stand-up at {}",
        "Everybody joins the daily stand-up at {}",
        "团队每天 {} 点开站会",
    ),
    "deploy": (
        "we deploy on day {} of the sprint now",
        "Deployments happen on day {} of each sprint",
        "The release goes out on sprint day {}",
        "每个迭代的第 {} 天部署上线",
    ),
    "dues": (
        "dues are {} pounds a month now",
        "Members pay dues of {} pounds every month",
        "The monthly membership fee is {} pounds",
        "会费每月 {} 镑",
    ),
    "lunch": (
        "我们以后 {} 点一起吃午饭",
        "大家固定 {} 点一起吃午饭",
        "午饭时间定在 {} 点",
        "The group has lunch together at {}",
    ),
    "review": (
        "以后代码评审要 {} 个人通过",
        "代码评审需要 {} 人通过才能合并",
        "合并之前必须有 {} 个评审人同意",
        "A change needs {} reviewers before it is merged",
    ),
    "badminton": (
        "羽毛球改到 {} 号场",
        "大家在 {} 号场打羽毛球",
        "羽毛球活动用 {} 号场地",
        "They play badminton on court {}",
    ),
    "library": (
        "books can be kept for {} weeks now",
        "The club lends each book for {} weeks",
        "A borrowed book comes back within {} weeks",
        "俱乐部的书可以借 {} 周",
    ),
    "budget": (
        "团建预算改成每人 {} 元",
        "团建的预算是每人 {} 元",
        "每人有 {} 元团建经费",
        "The outing budget is {} yuan each",
    ),
    "choir": (
        "rehearsal starts at {} now",
        "The choir rehearses from {} o'clock",
        "Rehearsals of the choir begin at {}",
        "合唱团 {} 点开始排练",
    ),
    "parking": ("停车改到地下 {} 层", "大家的车停在地下 {} 层", "停车位在地下 {} 层", "They park on basement level {}"),
}
_READ = {
    key: [re.compile(re.escape(wording).replace(r"\{\}", r"(\d+)"), re.IGNORECASE) for wording in wordings]
    for key, wordings in _WORDINGS.items()
}


def subject_of(text: str) -> tuple[str, str] | None:
    """Return the subject of a text of this bench and its value."""
    for key, shapes in _READ.items():
        for shape in shapes:
            if match := shape.search(text):
                return key, match[1]
    return None


@dataclass
class EagerModel:
    """Answers each prompt from what it shows. `invented`: the statements that nobody said."""

    chance: random.Random
    asked: Counter[str] = field(default_factory=Counter)
    invented: set[str] = field(default_factory=set)

    async def can_ask(self, model_id: str) -> bool:
        return True

    async def has_provider(self, model_id: str) -> bool:
        return True

    async def complete(self, model_id: str, request: ChatRequest, **more: Any) -> ChatAnswer:
        return ChatAnswer(text=self._text(request), provider="eager", model_id=model_id, usage=Usage(1, 1))

    def _text(self, request: ChatRequest) -> str:
        if len(request.messages) > 1:
            self.asked["again"] += 1
            return "[]"
        luck = self.chance.random()
        if luck < _FAILS:
            self.asked["failed"] += 1
            raise ModelUnavailable("The scripted model fails.", cause="unreachable")
        if luck < _FAILS + _RUBBISH:
            self.asked["rubbish"] += 1
            return "I'm sorry, as a language model I would rather talk about the weather."
        self.asked["answered"] += 1
        prompt = str(request.messages[0]["content"])
        lines = list(self._lines(_shown(prompt, "memories"), _shown(prompt, "messages")))
        return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) or "[]"

    def _lines(self, memories: Mapping[str, str], messages: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        held: defaultdict[str, list[str]] = defaultdict(list)
        values: dict[str, str] = {}
        for handle, text in memories.items():
            if match := subject_of(text):
                held[match[0]].append(handle)
                values[match[0]] = match[1]
        handles_by_key: defaultdict[str, list[str]] = defaultdict(list)
        for handle, text in messages.items():
            if match := subject_of(text):
                handles_by_key[match[0]].append(handle)
                values[match[0]] = match[1]
        for key in dict.fromkeys((*handles_by_key, *(key for key, handles in held.items() if len(handles) > 1))):
            yield self._line(key, values[key], held[key], handles_by_key[key])
        if messages and self.chance.random() < _INVENTS * max(len(handles_by_key), 1):
            yield self._invention(self.chance.choice(list(messages)))

    def _line(self, key: str, value: str, held: Sequence[str], evidence: Sequence[str]) -> dict[str, Any]:
        line: dict[str, Any] = {
            "statement": self._worded(key, value),
            "change_reason": "said",
            "evidence": list(evidence),
        }
        if not held or (evidence and self.chance.random() < _AGAIN):
            return {"action": "create", **line}
        if len(held) > 1:
            return {"action": "update", "old_ids": list(held)[:5], **line}
        return {"action": "update", "old_id": held[0], **line}

    def _worded(self, key: str, value: str) -> str:
        return self.chance.choice(_WORDINGS[key][1:]).format(value)

    def _invention(self, handle: str) -> dict[str, Any]:
        statement = _INVENTED.format(self.chance.randint(20, 90), self.chance.randint(200, 900))
        self.invented.add(statement)
        return {"action": "create", "statement": statement, "change_reason": "seen", "evidence": [handle]}


def _shown(prompt: str, block: str) -> dict[str, str]:
    """Return the lines of a block by handle, without what stands in brackets before them."""
    inside = prompt.rpartition(f"<{block}>")[2].partition(f"</{block}>")[0]
    matches = (re.match(r"(\w+) \[[^\]]*\]:? (.*)", line) for line in inside.splitlines())
    return {match[1]: match[2] for match in matches if match}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rooms", type=int, default=20)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="show what is held twice or contradicts")


async def run(arguments: argparse.Namespace) -> None:
    chance = random.Random(f"month {arguments.seed}")
    model = EagerModel(random.Random(f"model {arguments.seed}"))
    settings = Settings(evolve_schedule="")
    async with roomlore.open("sqlite://", settings=settings, background=False) as lore:
        service = _evolver(lore, settings, model)
        rooms = [_Room(f"room-{number}", chance) for number in range(arguments.rooms)]
        progress = Progress("nights", arguments.days)
        rejected: Counter[str] = Counter()
        for day in range(arguments.days):
            for room in rooms:
                await lore.messages.add(list(room.say(day)))
                rejected.update(await _night(service, room))
            progress.at(day + 1)
        progress.end(arguments.days)
        await _report(lore, rooms, model, rejected, show=arguments.show)


def _evolver(lore: Lore, settings: Settings, model: EagerModel) -> EvolutionService:
    """Return the service as it is wired, but for the model."""
    common = replace(lore._resources, settings=settings, background=False)  # noqa: SLF001 - a part is taken
    work = InProcessWork(clock=common.clock, at_once=1)
    return make_evolutions(common, work, cast(ModelService, model), PackagedPrompts()).service


async def _night(service: EvolutionService, room: "_Room") -> list[str]:
    """Evolve a room, and return the reasons of what was rejected."""
    room.nights_behind += 1
    try:
        result = await service.evolve(tenant="default", scope=f"group:{room.room_id}", days=_ALL_DAYS, mode="llm")
    except ModelUnavailable:
        return []
    room.nights_behind = 0 if result.remaining == 0 else room.nights_behind
    return [re.sub(r"'[^']*'|\d+", "…", rejection.reason) for rejection in result.rejected]


class _Room:
    """A room with its subjects. `values`: what holds of each, as last said. `nights_behind`: the days that no evolution
    has read."""

    def __init__(self, room_id: str, chance: random.Random) -> None:
        self.room_id = room_id
        self._chance = chance
        self._subjects = chance.sample(sorted(_WORDINGS), _SUBJECTS)
        self.values: dict[str, str] = {}
        self.said = 0
        self.nights_behind = 0

    def say(self, day: int) -> Iterator[Message]:
        """Yield the messages of a day."""
        texts = [self._chance.choice(_TALK) for _ in range(self._chance.randint(1, _SMALL_TALK))]
        for key in self._subjects:
            if self._chance.random() < _SAID:
                if key not in self.values or self._chance.random() < _CHANGES:
                    self.values[key] = str(self._chance.randint(2, 19))
                texts.append(_WORDINGS[key][0].format(self.values[key]))
        self._chance.shuffle(texts)
        for minute, text in enumerate(texts):
            self.said += 1
            at = _BEGIN + timedelta(days=day, minutes=minute)
            who = self._chance.choice(("anna", "bo", "小林", "老周"))
            yield Message(id=f"{self.room_id}-{self.said}", room_id=self.room_id, sender_id=who, text=text, sent_at=at)


async def _report(
    lore: Lore, rooms: Sequence[_Room], model: EagerModel, rejected: Mapping[str, int], *, show: bool
) -> None:
    twice, wrong, held, lacking, marked, unmarked = 0, 0, 0, 0, 0, 0
    for room in rooms:
        memories = await lore.memories.page(f"group:{room.room_id}")
        by_subject = _by_subject(memories)
        for key, value in room.values.items():
            memories_there = by_subject.get(key, [])
            values = {(subject_of(memory.statement) or ("", ""))[1] for memory in memories_there}
            held += 1
            lacking += not memories_there
            twice += len(memories_there) > 1
            wrong += bool(values - {value})
            if show and (len(memories_there) > 1 or values - {value}):
                print(room.room_id, key, value, [memory.statement for memory in memories_there])
        invented = [memory for memory in memories if memory.statement in model.invented]
        marked += sum(bool(memory.doubtful) for memory in invented)
        unmarked += sum(not memory.doubtful for memory in invented)
    print(f"asked: {dict(model.asked)}; rejected: {dict(rejected)}")
    print("| after the last night | |\n|---|---|")
    print(
        f"| subjects that people spoke of | {held} |\n| not remembered | {lacking} |\n| held more than once | {twice} |"
    )
    print(f"| with an outdated value in force | {wrong} |")
    behind = [room.nights_behind for room in rooms]
    print(f"| rooms with unread messages, at most of how many days | {sum(map(bool, behind))}, {max(behind)} |")
    print(f"| inventions in force: marked, not marked | {marked}, {unmarked} |")


def _by_subject(memories: Sequence[Memory]) -> dict[str, list[Memory]]:
    by_subject: defaultdict[str, list[Memory]] = defaultdict(list)
    for memory in memories:
        if subject := subject_of(memory.statement):
            by_subject[subject[0]].append(memory)
    return by_subject
