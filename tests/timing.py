"""Where the minutes of the tests go: processor and wall time, cases and functions by folder.

`make test-times` runs the tests with it. Each worker adds a line for each case to the file that ROOMLORE_TEST_TIMES
names. Processor time includes that of child processes which have ended; what a fixture of a module or a session costs
counts for the test that asked for it first.
"""

import json
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import pytest


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Timing:
    """A plugin of pytest that writes the time of each case to a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        wall, processor = time.perf_counter(), _processor_seconds()
        try:
            return (yield)
        finally:
            wall, processor = time.perf_counter() - wall, _processor_seconds() - processor
            self._file.write(json.dumps([item.nodeid, round(processor, 4), round(wall, 4)]) + "\n")
            self._file.flush()


@dataclass
class Folder:
    """The sums of one folder. Times are seconds."""

    processor: float = 0.0
    wall: float = 0.0
    cases: int = 0
    functions: set[str] = field(default_factory=set)

    def add(self, node: str, processor: float, wall: float) -> None:
        self.processor += processor
        self.wall += wall
        self.cases += 1
        self.functions.add(node.split("[")[0])


def table(lines: Iterable[str]) -> str:
    """Return the table of the folders, sorted by processor time, and the sums of all."""
    folders: dict[str, Folder] = defaultdict(Folder)
    for line in lines:
        node, processor, wall = json.loads(line)
        path = Path(node.split("::")[0])
        for name in (str(path.parent), "all"):
            folders[name].add(node, processor, wall)
    rows = [f"{'folder':<40} {'processor s':>12} {'wall s':>9} {'cases':>7} {'functions':>10} {'ms a case':>10}"]
    for name, folder in sorted(folders.items(), key=lambda entry: entry[1].processor, reverse=True):
        each = folder.processor / folder.cases * 1000
        rows.append(
            f"{name:<40} {folder.processor:>12.1f} {folder.wall:>9.1f} {folder.cases:>7} {len(folder.functions):>10}"
            f" {each:>10.0f}"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    with Path(os.environ["ROOMLORE_TEST_TIMES"]).open(encoding="utf-8") as written:
        sys.stdout.write(table(written) + "\n")
