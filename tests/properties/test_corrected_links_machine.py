"""Any sequence of messages, corrections, undoings, edits, deletions and new link models leaves links as people said."""

import asyncio
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from relink_rig import EARLIER, ROOM, TODAY, opened, relinked, told
from roomlore import Conflict, LinkKind, NotFound
from roomlore.core.models import Entry

STEPS = ("say", "say", "answer", "answer", "nothing", "undo", "edit", "delete", "anew", "open")


class Room:
    """A room, and what is to be true of it. `said`: message id to what a person said that it answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.model = TODAY
        self.count = 0
        self.gone: set[str] = set()
        self.said: dict[str, str | None] = {}
        self.log: list[tuple[str, str]] = []
        self.refused: list[tuple[str, str | None, bool]] = []

    async def run(self, steps: list[tuple[str, int, int]]) -> None:
        left = list(steps)
        while left:
            async with opened(self.url, self.model, piece=4) as lore:
                while left:
                    step, one, other = left.pop(0)
                    if step == "open":
                        break
                    await getattr(self, step)(lore, one, other)
                    if step == "anew":
                        break
                    await self.check(lore)

    async def say(self, lore, one: int, other: int) -> None:
        """Some reply to messages that come later, or never."""
        late = str(self.count + 2) if one % 4 == 0 else None
        await lore.messages.add([told(self.count, **({"reply_to": late} if late else {}))])
        self.count += 1

    async def answer(self, lore, one: int, other: int) -> None:
        await self._correct(lore, self._name(one), self._name(other))

    async def nothing(self, lore, one: int, other: int) -> None:
        await self._correct(lore, self._name(one), None)

    async def _correct(self, lore, name: str, answers: str | None) -> None:
        try:
            await lore.links.correct(ROOM, name, answers=answers)
        except NotFound:
            assert {name, answers} & self.gone or not self.count
            return
        except Conflict as error:
            self.refused.append((name, answers, "itself" in str(error)))
            return
        assert answers is None or int(answers) < int(name)
        if self.said.get(name, "never") != answers:
            self.log.append((name, "nothing" if answers is None else "answers"))
        self.said[name] = answers

    async def undo(self, lore, one: int, other: int) -> None:
        name = self._name(one)
        try:
            await lore.links.undo(ROOM, name)
        except NotFound:
            assert name in self.gone or not self.count
            return
        if name in self.said:
            del self.said[name]
            self.log.append((name, "undone"))

    async def edit(self, lore, one: int, other: int) -> None:
        if self._name(one) not in self.gone and self.count:
            await lore.messages.edit(ROOM, self._name(one), text=f"why {other}? nginx 发布")

    async def delete(self, lore, one: int, other: int) -> None:
        name = self._name(one)
        if self.count and name not in self.gone:
            await lore.messages.delete(ROOM, name)
            self.gone.add(name)
            self.said.pop(name, None)
            self.log = [entry for entry in self.log if entry[0] != name]

    async def anew(self, lore, one: int, other: int) -> None:
        """From the next opening on, another model links."""
        self.model = EARLIER if self.model is TODAY else TODAY

    def _name(self, number: int) -> str:
        return str(number % max(1, self.count))

    async def check(self, lore) -> None:
        if not self.count:
            return
        async with lore.storage.reading(lore.tenant) as work:
            room = await work.rooms.find(room_id=ROOM)
            entries = await work.messages.tail(room_id=ROOM, limit=1000)
        for name, answers, circle in self.refused:
            assert answers is not None
            assert circle or int(answers) >= int(name)
        log = await lore.links.corrections(ROOM)
        assert sorted((one.message_id, one.kind.value) for one in log) == sorted(self.log)
        self.standing(entries)
        self.whole(entries)
        assert min(room.linked.calibration.errors) >= 0

    def standing(self, entries: list[Entry]) -> None:
        """A link is as a person said, unless what is answered was deleted and the room linked anew since."""
        for entry in entries:
            link, name = entry.link, entry.message.id
            if name not in self.said:
                assert link.kind is not LinkKind.CORRECTED, name
                continue
            answers = self.said[name]
            if answers in self.gone and link.kind is not LinkKind.CORRECTED:
                continue
            assert link.kind is LinkKind.CORRECTED
            assert link.parent == (None if answers is None else int(answers) + 1)

    def whole(self, entries: list[Entry]) -> None:
        """Each message is in the thread of what it answers, and no chain of answers is a circle."""
        links = {entry.message.arrival: entry.link for entry in entries}
        for arrival, link in links.items():
            if link.kind is not LinkKind.NEW and link.parent in links:
                assert link.thread == links[link.parent].thread, (arrival, link.parent)
            seen = set()
            while link is not None and link.kind is not LinkKind.NEW and link.parent is not None:
                assert link.parent not in seen
                seen.add(link.parent)
                link = links.get(link.parent)


@settings(max_examples=12)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 40), st.integers(0, 40)), max_size=22))
def test_links_stay_as_people_said(steps):
    async def work() -> None:
        with TemporaryDirectory() as folder:
            room = Room(f"sqlite:///{folder}/room.db")
            await room.run([("say", number, 0) for number in range(1, 9)] + steps)
            async with opened(room.url, room.model, piece=4) as lore:
                await relinked(lore)
                await room.check(lore)
                assert (await lore.privacy.verify()).sound
                for name in list(room.said):
                    await room.undo(lore, int(name), 0)
                    await room.check(lore)

    asyncio.run(work())
