"""The contract of `Corrections`."""

from datetime import timedelta

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.linking.calibration import Calibration, Linked
from roomlore.core.linking.corrections import Standing
from roomlore.core.models import Correction, CorrectionKind, LinkKind
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry, link
from roomlore.testing.contracts.texts import HARD_TEXTS, ROOM, TENANT, erase, everything, fill

_ERRORS = (9, 8, 7, 6, 5, 4)


async def _add(
    storage: Storage,
    arrival: int,
    answers: int | None = None,
    *,
    kind: CorrectionKind | None = None,
    by: str = "eve",
    room_id: str = ROOM,
    errors: tuple[int, ...] = (),
) -> int:
    said = kind or (CorrectionKind.NOTHING if answers is None else CorrectionKind.ANSWERS)
    undone = said is CorrectionKind.UNDONE
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=room_id, now=START)
        return await work.corrections.add(
            tenant=TENANT,
            room_id=room_id,
            arrival=arrival,
            kind=said,
            standing=None if undone else Standing(answers, "model" if errors else "", errors),
            by=by,
            at=START + timedelta(seconds=arrival),
        )


async def _standing(storage: Storage, *arrivals: int, tenant: str = TENANT) -> dict[int, Standing]:
    async with storage.reading() as work:
        return await work.corrections.standing(tenant=tenant, room_id=ROOM, arrivals=arrivals)


async def _page(storage: Storage, *, before: int | None = None, limit: int = 10) -> list[Correction]:
    async with storage.reading() as work:
        return await work.corrections.page(tenant=TENANT, room_id=ROOM, before=before, limit=limit)


async def _in_force(storage: Storage, after: tuple[str, int] = ("", 0), limit: int = 10) -> list[tuple[str, int]]:
    async with storage.reading() as work:
        found = await work.corrections.in_force(tenant=TENANT, after=after, limit=limit)
    return [(one.room_id, one.number) for one in found]


class CorrectionsContract:
    async def test_the_last_one_of_a_message_is_in_force(self, storage: Storage) -> None:
        await fill(storage, [entry(number) for number in range(1, 6)])
        numbers = [
            await _add(storage, 3, 1),
            await _add(storage, 4),
            await _add(storage, 3, 2),
            await _add(storage, 4, kind=CorrectionKind.UNDONE),
        ]
        assert numbers == [1, 2, 3, 4]
        assert await _standing(storage, 1, 3, 4, 99) == {3: Standing(2)}
        assert await _standing(storage) == {}
        assert await _standing(storage, 3, tenant="other") == {}
        assert [(one.number, one.standing) for one in await _page(storage)] == [
            (4, False),
            (3, True),
            (2, False),
            (1, False),
        ]

    async def test_the_log_names_messages_newest_first(self, storage: Storage) -> None:
        await fill(storage, [entry(number) for number in range(1, 6)])
        await _add(storage, 3, 1)
        await _add(storage, 4, by="王敏")
        newest, oldest = await _page(storage)
        assert newest == Correction(
            room_id=ROOM,
            number=2,
            message_id="m4",
            kind=CorrectionKind.NOTHING,
            standing=True,
            by="王敏",
            at=START + timedelta(seconds=4),
        )
        assert (oldest.message_id, oldest.kind, oldest.answers) == ("m3", CorrectionKind.ANSWERS, "m1")
        assert await _page(storage, before=2) == [oldest]
        assert await _page(storage, limit=1) == [newest]
        async with storage.reading() as work:
            assert await work.corrections.page(tenant=TENANT, room_id="none", before=None, limit=5) == []
            assert await work.corrections.page(tenant="other", room_id=ROOM, before=None, limit=5) == []

    async def test_those_in_force_are_listed_by_room_and_number(self, storage: Storage) -> None:
        for room_id in ("b", "a", "å"):
            await fill(storage, [entry(number) for number in range(1, 4)], room_id=room_id)
            await _add(storage, 2, 1, room_id=room_id)
            await _add(storage, 3, room_id=room_id)
            await _add(storage, 2, room_id=room_id)
        wanted = [("a", 2), ("a", 3), ("b", 2), ("b", 3), ("å", 2), ("å", 3)]
        assert await _in_force(storage) == wanted
        assert await _in_force(storage, ("a", 2), 3) == wanted[1:4]
        assert await _in_force(storage, ("å", 3)) == []
        async with storage.reading() as work:
            assert await work.corrections.in_force(tenant="other", after=("", 0), limit=5) == []

    async def test_erasing_a_message_ends_its_log(self, storage: Storage) -> None:
        await fill(storage, [entry(number) for number in range(1, 6)])
        await _add(storage, 3, 1)
        await _add(storage, 4, 3)
        await erase(storage, 3)
        (left,) = await _page(storage)
        assert (left.message_id, left.answers, left.standing) == ("m4", None, True)
        assert await _standing(storage, 3, 4) == {4: Standing(3)}
        assert await _add(storage, 5, 4) == 3

    async def test_what_it_added_to_the_calibration(self, storage: Storage) -> None:
        await fill(storage, [entry(number) for number in range(1, 6)])
        await _add(storage, 3, 1, errors=_ERRORS)
        await _add(storage, 4, 1)
        assert (await _standing(storage, 3))[3] == Standing(1, "model", _ERRORS)
        async with storage.writing() as work:
            await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            await work.corrections.hear(
                tenant=TENANT, room_id=ROOM, model="next", errors={4: _ERRORS}, arrivals=(3, 4, 5)
            )
        assert await _standing(storage, 3, 4) == {3: Standing(1), 4: Standing(1, "next", _ERRORS)}

    async def test_links_and_calibration_change_together(self, storage: Storage) -> None:
        before = await fill(storage, [entry(number) for number in range(1, 4)])
        linked = Linked(by="model", calibration=Calibration(1, 1, _ERRORS))
        async with storage.writing() as work:
            await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            room = await work.messages.relink(
                tenant=TENANT,
                room_id=ROOM,
                links={3: link(1, 1, kind=LinkKind.CORRECTED, parent_probability=1.0)},
                linked=linked,
            )
        assert (room.linked, room.revision) == (linked, before.revision + 1)
        assert (await everything(storage))[2].link.kind is LinkKind.CORRECTED

    async def test_a_corrected_link_waits_for_nothing(self, storage: Storage) -> None:
        said = entry(2, reply_to="m9", link=link(1, 1, kind=LinkKind.CORRECTED, parent_probability=1.0))
        await fill(storage, [entry(1), said, entry(3, reply_to="m9")])
        async with storage.reading() as work:
            found = await work.messages.waiting(tenant=TENANT, room_id=ROOM, message_ids=["m9"])
        assert [one.message.id for one in found] == ["m3"]

    async def test_the_lock_is_needed(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        async with storage.writing() as work:
            with pytest.raises(InvalidInput, match="Lock the room"):
                await work.corrections.add(
                    tenant=TENANT,
                    room_id=ROOM,
                    arrival=1,
                    kind=CorrectionKind.NOTHING,
                    standing=Standing(None),
                    by="eve",
                    at=START,
                )

    @pytest.mark.parametrize("by", HARD_TEXTS)
    async def test_any_name_comes_back(self, storage: Storage, by: str) -> None:
        await fill(storage, [entry(1)])
        await _add(storage, 1, by=by)
        assert [one.by for one in await _page(storage)] == [by]

    async def test_a_room_is_removed_with_them(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await _add(storage, 2, 1)
        async with storage.writing() as work:
            await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
            while await work.maintenance.remove_room(tenant=TENANT, room_id=ROOM, limit=1) >= 0:
                pass
        assert await _in_force(storage) == []
        await fill(storage, [entry(1), entry(2)])
        assert await _standing(storage, 2) == {}
