"""Two processes on one database, as two servers are: what one writes, the other tells at once, whatever is cached."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from other_server import SETTINGS, do, told

import roomlore
from forked_process import ForkedProcess
from roomlore import Settings

_OTHER = Path(__file__).with_name("other_server.py")
_START = datetime(2026, 1, 5, tzinfo=UTC)


class Other:
    """A server in a process of its own."""

    def __init__(self, process: ForkedProcess) -> None:
        self._process = process

    @classmethod
    async def start(cls, url: str) -> "Other":
        other = cls(await ForkedProcess.start(_OTHER, url))
        await other._answer()
        return other

    async def do(self, verb: str, given: dict[str, str]) -> Any:
        self._process.stdin.write(json.dumps([verb, given]).encode() + b"\n")
        await self._process.stdin.drain()
        return await self._answer()

    async def _answer(self) -> Any:
        return json.loads(await self._process.stdout.readline())

    async def close(self) -> None:
        self._process.stdin.close()
        assert await self._process.wait() == 0


async def test_servers_that_write_in_turns_tell_the_same_at_once(url):
    """In turns at random, so that each has the room in its caches when the other changes it."""
    random, said, others = Random(11), dict[str, str](), 0
    other = await Other.start(url)
    async with roomlore.open(url, settings=Settings(**SETTINGS), background=False) as lore:
        for number in range(40):
            verb, given = _step(random, number, said)
            if random.random() < 0.5:
                theirs = await other.do(verb, given)
                others += 1
            else:
                await do(lore, verb, given)
                theirs = await other.do("tell", {})
            assert theirs == await told(lore), f"after step {number}, {verb} {given}"
            assert theirs[0] == sorted([name, text] for name, text in said.items())
    await other.close()
    assert 10 < others < 30
    assert len(said) > 10


def _step(random: Random, number: int, said: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The next change, noted in what is said."""
    kind = random.random()
    if kind < 0.6 or len(said) < 3:
        given = {"id": f"m{number}", "text": f"the garden needs water {number}", "by": random.choice("abc")}
        said[given["id"]] = given["text"]
        return "add", given | {"at": (_START + timedelta(minutes=number)).isoformat()}
    name = random.choice(sorted(said))
    if kind < 0.85:
        said[name] = f"the mill needs no water {number}"
        return "edit", {"id": name, "text": said[name]}
    del said[name]
    return "delete", {"id": name}
