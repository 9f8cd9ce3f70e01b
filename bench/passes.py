"""How many modules of the library one call passes: `python -m bench passes`.

A switch is a call, or the continuation of a coroutine, in another module of `roomlore` than the one whose function ran
before it. Comprehensions are part of the function that they stand in.
"""

import sys
import threading
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import roomlore
from roomlore.wiring import Lore

_SOURCE = str(Path(roomlore.__file__).parent)
_BEGUN = datetime(2026, 1, 1, 10, tzinfo=UTC)
_BEFORE = 30
"""Messages in the room, and turns in the session, before the call that is counted: their state is in memory."""


@dataclass(slots=True)
class Passes:
    """`modules`: the calls of functions of each module. `switches`: those from one module to another."""

    modules: Counter[str] = field(default_factory=Counter)
    switches: Counter[tuple[str, str]] = field(default_factory=Counter)
    _last: str = ""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count a call, as a profile function."""
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not code.co_filename.startswith(_SOURCE):
            return
        module = code.co_filename[len(_SOURCE) + 1 : -len(".py")]
        self.modules[module] += 1
        if module != self._last:
            self.switches[self._last, module] += 1
        self._last = module


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--each", action="store_true", help="also print the modules, and the commonest switches")


async def run(arguments: Namespace) -> None:
    """Print the modules and switches of one `messages.add` and one `sessions.write_turn`."""
    print("| | modules | switches |\n|---|---:|---:|")
    counted = await measured()
    for name, passes in counted.items():
        print(f"| {name} | {len(passes.modules)} | {passes.switches.total()} |")
    for name, passes in counted.items() if arguments.each else ():
        print(f"\n{name}: {', '.join(f'{module} {calls}' for module, calls in passes.modules.most_common())}")
        for (before, after), times in passes.switches.most_common(30):
            print(f"{times:4} {before} -> {after}")


async def measured() -> dict[str, Passes]:
    """Return what each call passes in a database of its own, by the verb."""
    with TemporaryDirectory() as folder:
        async with roomlore.open(f"sqlite:///{folder}/passes.db", background=False) as lore:
            for number in range(_BEFORE):
                await _add(lore, number)
                await _write_turn(lore, number)
            return {
                "messages.add": await _passes(lambda: _add(lore, _BEFORE)),
                "sessions.write_turn": await _passes(lambda: _write_turn(lore, _BEFORE)),
            }


async def _passes(call: Callable[[], Awaitable[object]]) -> Passes:
    passes = Passes()
    threading.setprofile(passes)
    sys.setprofile(passes)
    try:
        await call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return passes


async def _add(lore: Lore, number: int) -> None:
    at = _BEGUN + timedelta(minutes=number)
    text = f"Shall we meet at {number}? The kettle is on."
    message = roomlore.Message(id=f"m{number}", room_id="tea", sender_id=f"u{number % 3}", text=text, sent_at=at)
    await lore.messages.add(message)


async def _write_turn(lore: Lore, number: int) -> None:
    query, answer = f"Which tea is number {number}?", f"Number {number} is a green tea."
    await lore.sessions.write_turn("chat", "ada", "tea-bot", query, answer)
