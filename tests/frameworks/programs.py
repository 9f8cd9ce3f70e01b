"""Programs of the documentation, run as they stand; and how far each is from the program without roomlore."""

import asyncio
import difflib
import inspect
import re
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_CHANGED = 3


def blocks(page: str, language: str = "python") -> list[str]:
    """Return the blocks of a how-to in this language."""
    text = (ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8")
    return [block for named, block in _BLOCK.findall(text) if named == language]


def changed(before: str, after: str) -> list[str]:
    """Return the lines of a program that its other form lacks, without what only moved to the right."""
    lines = [[line.strip() for line in text.splitlines() if line.strip()] for text in (before, after)]
    return [line[2:] for line in difflib.ndiff(*lines) if line.startswith("+ ")]


def run(program: str, **names: Any) -> dict[str, Any]:
    """Run a program of a page, which may await, and return its names."""
    known: dict[str, Any] = {"__name__": "__main__", **names}
    code = compile(program, "page", "exec", flags=PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, known))
    else:
        exec(code, known)
    return known
