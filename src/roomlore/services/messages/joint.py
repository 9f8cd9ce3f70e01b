"""Messages that come one by one and at once: they are added as one batch, and each gets its own answer."""

from asyncio import CancelledError, Future, Task, create_task, get_running_loop, sleep, wait
from collections.abc import Awaitable, Callable, Collection, Container, Iterable
from contextvars import Context, copy_context
from copy import copy

from roomlore.core.errors import StorageUnavailable
from roomlore.core.models import Message
from roomlore.services.messages.planning import Batches, BatchPlan, by_room
from roomlore.services.messages.room_states import RoomTurn, Turns

Add = Callable[[Batches], Awaitable[list[BatchPlan]]]


class _Member:
    """A message that waits for the answer of its group."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.answer: Future[BatchPlan] = get_running_loop().create_future()
        self.task: Task[None] | None = None

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def succeed(self, plan: BatchPlan) -> None:
        if not self.answer.done():
            self.answer.set_result(plan)


class _Group:
    """Messages that are added together, each with an id of its own: none could else tell what became of it.

    `context`: of the first one, so that what is logged does not name the caller that was served before.
    """

    def __init__(self) -> None:
        self.context = copy_context()
        self.weight = 0
        self._members: dict[tuple[str, str], _Member] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, message: Message) -> bool:
        return (message.room_id, message.id) in self._members

    def join(self, message: Message, weight: int) -> _Member:
        member = self._members[message.room_id, message.id] = _Member(message)
        self.weight += weight
        return member

    def concerns(self, room_ids: Container[str]) -> bool:
        """Return True if it has messages to one of these rooms."""
        return any(room_id in room_ids for room_id, _ in self._members)

    def waiting(self) -> list[_Member]:
        """Return the members that have no answer and were not cancelled."""
        return [member for member in self._members.values() if not member.answer.done()]


class Joint:
    """Joins messages that come while others are being added: those that wait for the end of an addition share the units
    of work and the linking of the next one.

    `add` adds batches once it is their turn; it raises no conflict. An error that may concern one message alone has
    each of the group added alone. `most`, `most_weight`: of a group. `across`: True if messages to several rooms make
    one group. A message to a room that others write to waits for these without holding up messages to other rooms.
    """

    def __init__(
        self,
        turns: Turns,
        tenant: str,
        add: Add,
        *,
        most: int,
        most_weight: int,
        across: bool,
    ) -> None:
        self._turns = turns
        self._tenant = tenant
        self._add = add
        self._most, self._most_weight = most, most_weight
        self._across = across
        self._adding: dict[str, int] = {}
        """How many groups are added at each place, and write to each room."""
        self._ours: dict[str, int] = {}
        self._open: dict[str, _Group] = {}
        self._crowded = False
        """True if others came during the last addition."""

    async def add(self, message: Message, weight: int) -> BatchPlan:
        """Add a message, alone if no other is being added."""
        place, room_ids = "" if self._across else message.room_id, (message.room_id,)
        if self._is_held_up(message.room_id):
            async with self.turn(room_ids):
                return await self._alone(message)
        if place not in self._adding:
            self._note(place, room_ids)
            try:
                async with self._turns.take(self._tenant, room_ids):
                    if self._crowded:
                        self._crowded = False
                        await sleep(0)  # an addition may wait for nothing, and then none could join
                    return await self._alone(message)
            finally:
                self._end(place, room_ids)
        group = self._open_group(place, message, weight)
        member = group.join(message, weight)
        try:
            return await member.answer
        except CancelledError:
            if member.task is not None and all(queued.task is not member.task for queued in group.waiting()):
                member.task.cancel()
                await wait([member.task])
            raise

    def turn(self, room_ids: Collection[str]) -> RoomTurn:
        """Take the next place among the writers to these rooms, behind the messages that wait to be added there."""
        for place in [place for place, group in self._open.items() if group.concerns(room_ids)]:
            self._begin(place)
        return self._turns.take(self._tenant, room_ids)

    def _open_group(self, place: str, message: Message, weight: int) -> _Group:
        """Return the group that takes in the message. One that is full begins at once."""
        self._crowded = True
        group = self._open.get(place)
        if group is not None and not self._fits(group, message, weight):
            self._begin(place)
            group = None
        if group is None:
            group = self._open[place] = _Group()
        return group

    def _fits(self, group: _Group, message: Message, weight: int) -> bool:
        return len(group) < self._most and group.weight + weight <= self._most_weight and message not in group

    def _begin(self, place: str) -> None:
        """Begin to add the open group, which takes in no more. What is held up makes a group for each room."""
        group = self._open.pop(place)
        free, held_up = list[_Member](), dict[str, list[_Member]]()
        for member in group.waiting():
            room_id = member.message.room_id
            (held_up.setdefault(room_id, []) if self._is_held_up(room_id) else free).append(member)
        for members in held_up.values():
            self._begin_part(members, group.context, lambda: None)
        if free:
            room_ids = {member.message.room_id for member in free}
            self._note(place, room_ids)
            self._begin_part(free, group.context, lambda: self._end(place, room_ids))

    def _begin_part(self, members: list[_Member], context: Context, end: Callable[[], None]) -> None:
        """Begin to add these, whose place among the writers is taken now. Call `end` at their end."""
        turn = self._turns.take(self._tenant, {member.message.room_id for member in members})
        task = create_task(self._add_all(members, turn), context=context)
        for member in members:
            member.task = task
        task.add_done_callback(lambda _: self._ended(members, turn, end))

    def _ended(self, members: list[_Member], turn: RoomTurn, end: Callable[[], None]) -> None:
        """Note the end of a group. It may have been cancelled, even before it began, by who ends all tasks."""
        turn.leave()
        for member in members:
            member.answer.cancel()
        end()

    def _is_held_up(self, room_id: str) -> bool:
        return self._turns.is_taken(self._tenant, room_id) and room_id not in self._ours

    def _note(self, place: str, room_ids: Iterable[str]) -> None:
        """Note that a group is being added."""
        self._adding[place] = self._adding.get(place, 0) + 1
        for room_id in room_ids:
            self._ours[room_id] = self._ours.get(room_id, 0) + 1

    def _end(self, place: str, room_ids: Iterable[str]) -> None:
        for counter, names in ((self._adding, (place,)), (self._ours, room_ids)):
            for name in names:
                counter[name] -= 1
                if not counter[name]:
                    del counter[name]
        if place not in self._adding and place in self._open:
            self._begin(place)

    async def _add_all(self, members: list[_Member], turn: RoomTurn) -> None:
        async with turn:
            if len(members) == 1:
                await self._answer(members[0])
            elif members:
                await self._answer_all(members)

    async def _answer(self, member: _Member) -> None:
        try:
            member.succeed(await self._alone(member.message))
        except Exception as error:  # noqa: BLE001 - its caller gets it
            member.fail(error)

    async def _answer_all(self, members: list[_Member]) -> None:
        try:
            plans = await self._add(by_room([member.message for member in members]))
        except StorageUnavailable as error:
            for member in members:
                member.fail(_copy_of(error))
        except Exception:  # noqa: BLE001 - it may concern one of them
            for member in members:
                if not member.answer.done():
                    await self._answer(member)
        else:
            for member, plan in zip(members, _shares(plans, members), strict=True):
                member.succeed(plan)

    async def _alone(self, message: Message) -> BatchPlan:
        return (await self._add({message.room_id: [message]}))[0]


def _copy_of(error: StorageUnavailable) -> StorageUnavailable:
    """Return the error for one of several callers: raising it adds to its traceback. `copy` leaves the cause out."""
    its = copy(error)
    its.__cause__ = error.__cause__
    return its.with_traceback(error.__traceback__)


def _shares(plans: list[BatchPlan], members: list[_Member]) -> list[BatchPlan]:
    """Return the part of each member. The first one that was added to a new room has made it."""
    rooms, made, shares = {plan.room.room_id: plan for plan in plans}, set[str](), list[BatchPlan]()
    for member in members:
        room_id = member.message.room_id
        share = rooms[room_id].share(member.message.id, made=room_id not in made)
        shares.append(share)
        if share.entries:
            made.add(room_id)
    return shares
