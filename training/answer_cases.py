"""What the search of memories learns its scores from: questions, memories, and which of them answer.

Own groups (`memory_groups.txt`) and own attributes (`memory_attributes.txt`), in Chinese and English and across, and
labelled chats whose messages stand for memories. Questions without an answer are of four kinds: asked of a thing that
the memories know, for what they do not say (`near`); with the answer taken out (`removed`); asked of another
conversation (`elsewhere`); asked of the world (`general`).
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from roomlore.core.text import keywords

OWN = Path(__file__).parent
LANGUAGES = ("zh", "en")
_OF_OTHERS = 3
_PADDING = (0, 0, 2, 8, 30, 200)
_MESSAGES = (4, 8, 16, 32, 64)
_ANSWERS = 4
_CHARS = 600


@dataclass(frozen=True, slots=True)
class Case:
    """A question put to memories; `answers`: the indices of those that answer. `part`: what is held out together."""

    source: str
    part: str
    kind: str
    question: str
    memories: Sequence[str]
    answers: Sequence[int]
    languages: str = ""


@dataclass(frozen=True, slots=True)
class _Group:
    """Pairs of a text in each of `LANGUAGES`; `asked` with the index of the memory that answers."""

    name: str
    memories: list[list[str]]
    asked: list[tuple[list[str], int]]
    unknown: list[list[str]]
    general: list[list[str]]


def groups() -> Iterator[Case]:
    """Return the cases of the own groups, in all combinations of languages."""
    rng, found = random.Random(0), _read_groups()
    general = [question for group in found for question in group.general]
    for written, language in enumerate(LANGUAGES):
        everything = [(group.name, pair[written]) for group in found for pair in group.memories]
        for group in found:
            others = [text for name, text in everything if name != group.name]
            memories = [pair[written] for pair in group.memories]
            for spoken, asked_in in enumerate(LANGUAGES):
                combined = f"{asked_in}-{language}"
                for question, answer in group.asked:
                    more = rng.sample(others, rng.choice(_PADDING))
                    rest = [text for place, text in enumerate(memories) if place != answer]
                    text, part = question[spoken], group.name
                    yield Case("groups", part, "answered", text, [*memories, *more], [answer], combined)
                    yield Case("groups", part, "removed", text, [*rest, *more], [], combined)
                for asked in rng.sample(
                    [asked for other in found if other is not group for asked in other.asked], _OF_OTHERS
                ):
                    yield Case("groups", group.name, "elsewhere", asked[0][spoken], memories, [], combined)
                for question in rng.sample(general, _OF_OTHERS):
                    yield Case("groups", group.name, "general", question[spoken], memories, [], combined)
                for question in group.unknown:
                    more = rng.sample(others, rng.choice(_PADDING))
                    yield Case("groups", group.name, "near", question[spoken], [*memories, *more], [], combined)


def phrases() -> Iterator[Case]:
    """Return searches that are no questions: one or two words of a memory, in the own groups."""
    rng = random.Random(2)
    for group in _read_groups():
        for written, language in enumerate(LANGUAGES):
            memories = [pair[written] for pair in group.memories]
            for memory in memories:
                found = keywords(memory)
                start = rng.randrange(len(found))
                phrase = " ".join(found[start : start + rng.choice([1, 2])])
                answers = [place for place, text in enumerate(memories) if {*phrase.split()} <= {*keywords(text)}]
                rest = [text for place, text in enumerate(memories) if place not in answers]
                languages = f"{language}-{language}"
                yield Case("phrases", group.name, "answered", phrase, memories, answers, languages)
                yield Case("phrases", group.name, "removed", phrase, rest, [], languages)


def _read_groups() -> list[_Group]:
    found: list[_Group] = []
    for line in (OWN / "memory_groups.txt").read_text(encoding="utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark == "#":
            found.append(_Group(text, [], [], [], []))
        elif mark == "M":
            found[-1].memories.append(text.split(" | "))
        elif mark == "N":
            found[-1].unknown.append(text.split(" | "))
        elif mark == "G":
            found[-1].general.append(text.split(" | "))
        elif mark == "Q":
            pair, _, answer = text.rpartition(" > ")
            found[-1].asked.append((pair.split(" | "), int(answer)))
    return found


_ALIKE = (
    "when, start time, deadline, maintenance|opens, closes, day off|reason, broken, repair|job, duty, employer, salary"
    "|home, hometown|address, transit|illness, medicine, allergy|manager, key|who, sponsor, allowed|book, rules"
    "|hobby, leave|bought, warranty|spouse, children|brand, version"
)
_TOGETHER = [frozenset(alike.split(", ")) for alike in _ALIKE.split("|")]
"""Attributes of which one may answer a question for another."""
_VALUES = {
    "date": (
        ("三月九号", "十一月二日", "下周四", "8 月 15 日"),
        ("9 March", "2 November", "next Thursday", "15 August"),
    ),
    "time": (("八点半", "七点", "晚上十点", "14:00"), ("half past eight", "seven", "ten", "14:00")),
    "place": (("长沙", "城西花园", "火车站后面", "大学路"), ("Leeds", "Park Hill", "Station Road", "the old harbour")),
}
_OF_ONE = 5
_KNOWN = 12


def attributes() -> Iterator[Case]:
    """Return cases in which a thing is asked for one attribute while others of it are known, and others' same one."""
    rng = random.Random(1)
    for block in re.split(r"^# .*$", (OWN / "memory_attributes.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)[
        1:
    ]:
        first, *lines = block.strip().splitlines()
        things = [thing.split("=") for thing in re.split(r" (?=[\u4e00-\u9fff])", first.removeprefix("@ "))]
        forms = [line.split(" | ") for line in lines]
        for thing in things:
            known = rng.sample(forms, _KNOWN)
            for form in known[:_OF_ONE]:
                yield from _of_attribute(thing, form, known, [one for one in things if one != thing], rng)


def _of_attribute(
    thing: list[str], form: list[str], known: list[list[str]], others: list[list[str]], rng: random.Random
) -> Iterator[Case]:
    spoken, written = rng.choice([(0, 0), (1, 1), (0, 0), (1, 1), (0, 1), (1, 0)])
    apart = [one for one in known if not any({one[0], form[0]} <= alike for alike in _TOGETHER) and one is not form]
    about = [_filled(one[3 + written], thing, written, rng) for one in rng.sample(apart, rng.choice([1, 2, 4]))]
    about += [_filled(form[3 + written], one, written, rng) for one in rng.sample(others, rng.choice([1, 2, 3]))]
    about += [_filled(one[3 + written], rng.choice(others), written, rng) for one in rng.sample(apart, 3)]
    answer = _filled(form[3 + written], thing, written, rng)
    question = _filled(form[1 + spoken], thing, spoken, rng)
    languages = f"{LANGUAGES[spoken]}-{LANGUAGES[written]}"
    yield Case("attributes", thing[1], "answered", question, [answer, *about], [0], languages)
    yield Case("attributes", thing[1], "near", question, about, [], languages)


def _filled(forms: str, thing: Sequence[str], language: int, rng: random.Random) -> str:
    text = rng.choice(re.split("[;；]", forms)).strip().replace("{x}", thing[language])
    for name, values in _VALUES.items():
        text = text.replace(f"{{{name}}}", rng.choice(values[language]))
    text = text.replace("{num2}", str(rng.randint(12, 68))).replace("{num}", str(rng.randint(1_200, 98_000)))
    return text[0].upper() + text[1:]


def labelled(folder: Path, suffix: str = "") -> Iterator[Case]:
    """Return the cases of a folder with `messages.jsonl`, `queries.jsonl` and `gold.jsonl`."""
    rng, name, rooms = random.Random(0), folder.name, dict[str, dict[str, str]]()
    for row in _rows(folder / "messages.jsonl"):
        if row["text"].strip():
            rooms.setdefault(row["room_id"], {})[row["id"]] = f"{row['sender_id']}: {row['text']}"[:_CHARS]
    gold = {row["qid"]: row["gold"] for row in _rows(folder / f"gold{suffix}.jsonl")}
    for row in _rows(folder / f"queries{suffix}.jsonl"):
        own, wanted, question = rooms[row["room_id"]], gold[row["qid"]], row["query"]
        answers = [own[one] for one in wanted if one in own][:_ANSWERS]
        others = [text for one, text in own.items() if one not in wanted]
        if not answers:
            continue
        drawn = rng.sample(others, min(rng.choice(_MESSAGES), len(others)))
        yield Case(name, row["room_id"], "answered", question, [*answers, *drawn], range(len(answers)))
        yield Case(name, row["room_id"], "removed", question, drawn, [])
        elsewhere = [text for room in sorted({*rooms} - {row["room_id"]}) for text in rooms[room].values()]
        yield Case(name, row["room_id"], "elsewhere", question, rng.sample(elsewhere, len(drawn) + 2), [])


def _rows(path: Path) -> Iterator[dict]:  # type: ignore[type-arg]
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
