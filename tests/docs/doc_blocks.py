"""The code blocks of the documentation: fenced ones, and those that are indented by four spaces."""

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<language>[\w+-]*)(?P<rest>.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_ITEM = re.compile(r"^ {0,3}([-*+]|\d+[.)]|!!!|\?\?\?\+?|===) ")
_COMMAND = re.compile(r"^(\$ )?(pip|uv|python|roomlore|make|curl|docker|export|git|npm) ")


@dataclass(frozen=True)
class Block:
    """`line`: where its text begins, from 1. `language`: as written; "" where the fence names none."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every page, by its path from the root, in an order that stays."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def blocks_of(page: str) -> list[Block]:
    return blocks_in(page, (ROOT / page).read_text(encoding="utf-8"))


def blocks_in(page: str, text: str) -> list[Block]:
    """The blocks of a page, from its beginning. What is indented under a list's item or a note is part of that."""
    lines, found, at, inside = text.splitlines(), [], 0, False
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence:
            found.append(_fenced(page, lines, at, fence))
            at += len(found[-1].text.splitlines()) + 2
            continue
        if lines[at].strip():
            inside = bool(_ITEM.match(lines[at])) or (inside and lines[at].startswith(" "))
        if not inside and _begins_indented(lines, at):
            found.append(_indented(page, lines, at))
            at += len(found[-1].text.splitlines())
            continue
        at += 1
    return found


def _fenced(page: str, lines: list[str], at: int, fence: re.Match[str]) -> Block:
    end = re.compile(rf"^ *{fence['ticks'][0]}{{{len(fence['ticks'])},}} *$")
    inner = list(takewhile(lambda line: not end.match(line), lines[at + 1 :]))
    if at + 1 + len(inner) == len(lines):
        raise ValueError(f"{page}:{at + 1} opens a block that nothing closes")
    title = _TITLE.search(fence["rest"])
    text = "".join(f"{line.removeprefix(fence['indent'])}\n" for line in inner)
    return Block(page, at + 2, fence["language"], title[1] if title else "", text)


def _begins_indented(lines: list[str], at: int) -> bool:
    return lines[at].startswith("    ") and bool(lines[at].strip()) and (at == 0 or not lines[at - 1].strip())


def _indented(page: str, lines: list[str], at: int) -> Block:
    run = list(takewhile(lambda line: line.startswith("    ") or not line.strip(), lines[at:]))
    while not run[-1].strip():
        run.pop()
    text = "".join(f"{line[4:]}\n" for line in run)
    return Block(page, at + 1, "sh" if _COMMAND.match(text) else "text", "", text)
