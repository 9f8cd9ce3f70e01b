"""One run of a piece of work: it goes on its owner's event loop, while a thread of DBOS's waits on it and writes its
steps.

DBOS numbers steps and, when work is begun again, gives each number what it gave before. Here every step has one name
to DBOS and its own name lies in what is written, so a step is known by its name: what earlier attempts finished is
read, in whatever order, before anything is done anew. A failed step is written too, but only that it failed: it used
up a number.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from dbos import DBOS
from structlog.contextvars import bound_contextvars

from roomlore.adapters.dbos.troubles import Failed, Stopped
from roomlore.core.errors import describe
from roomlore.core.plain import plain
from roomlore.ports.durable import Json, Work

T = TypeVar("T")

_STEP = "step"
_LOOK_SECONDS = 1.0
"""How often a waiting thread looks whether the event loop it waits on is there still."""


class Notes(Protocol):
    """What is kept beside the work. Called on threads."""

    def report(self, work_id: str, progress: str) -> None: ...

    def fail(self, work_id: str, error: str, *, most: int) -> int:
        """Writes that an attempt failed; how many have, `most` of which end it."""


class Run:
    """The port `Steps`."""

    def __init__(
        self, work: Work, *, work_id: str, arguments: Json, loop: asyncio.AbstractEventLoop, notes: Notes,
        pauses: Sequence[float],
    ) -> None:  # fmt: skip
        self._work, self._work_id, self._arguments = work, work_id, arguments
        self._loop, self._notes, self._pauses = loop, notes, pauses
        self._requests: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._finished: dict[str, Json] = {}
        self._task: asyncio.Task[Any] | None = None
        self._step: Future[Json] | None = None
        self._in_step = False
        self._stopping = False
        self._lost = False

    def serve(self) -> None:
        """On a thread of DBOS's. Raises `Failed` where the work did, `Stopped` where it was broken off."""
        ended = self._submit(self._go())
        while (request := self._request()) is not None:
            request()
        try:
            failure = self._result(ended)
        except Exception as exc:
            raise Stopped from exc
        if self._lost:
            raise Stopped
        if failure:
            raise Failed(failure)

    def stop(self, *, at_once: bool = False) -> None:
        """On the loop: ends at the next pause between steps, or now, losing the step that runs."""
        self._stopping = True
        if self._task and (at_once or not self._in_step):
            self._task.cancel()

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        while name not in self._finished:
            self._go_on_or_stop()
            await self._ask(name, step)
        self._go_on_or_stop()
        return self._finished[name]

    async def report(self, progress: str) -> None:
        await asyncio.to_thread(self._notes.report, self._work_id, progress)

    async def _go(self) -> str:
        self._task = asyncio.current_task()
        try:
            return await self._attempts()
        finally:
            self._requests.put(None)

    async def _attempts(self) -> str:
        """Why the work failed for good, '' where it did not."""
        while True:
            self._go_on_or_stop()
            try:
                await self._work(self, self._arguments)
            except Exception as error:  # noqa: BLE001 - a worker: whatever went wrong, the work is tried again
                why = describe(error)
            else:
                return ""
            failures = await asyncio.to_thread(self._notes.fail, self._work_id, why, most=len(self._pauses) + 1)
            if failures > len(self._pauses):
                return why
            await asyncio.sleep(self._pauses[failures - 1])

    def _go_on_or_stop(self) -> None:
        if self._stopping or self._lost:
            raise asyncio.CancelledError

    async def _ask(self, name: str, step: Callable[[], Awaitable[Json]]) -> None:
        """Has the next step written, or read where it was written before; the step's own error is raised."""
        answer: asyncio.Future[None] = self._loop.create_future()
        self._requests.put(partial(self._write, name, step, answer))
        self._in_step = True
        try:
            await answer
        except asyncio.CancelledError:
            if self._step:
                self._step.cancel()
            raise
        finally:
            self._in_step = False

    def _write(self, name: str, step: Callable[[], Awaitable[Json]], answer: asyncio.Future[None]) -> None:
        """On the thread. Where DBOS cannot write, or says that the work is another's by now, this run is over: a number
        that stands for nothing would set all later ones wrong."""
        errors: list[Exception] = []
        try:
            written = DBOS.run_step({"name": _STEP}, partial(self._do, name, step, errors))
        except BaseException:  # noqa: BLE001 - whatever it is, nothing was written; the work is begun again later
            self._lost = True
            self._tell(self._cancel)
        else:
            self._tell(partial(self._settle, answer, written, errors))

    def _do(self, name: str, step: Callable[[], Awaitable[Json]], errors: list[Exception]) -> Json:
        if self._lost:
            raise Stopped
        try:
            self._step = self._submit(_plain(step))
            return {"name": name, "gave": self._result(self._step)}
        except CancelledError:
            if self._stopping:
                raise Stopped from None
        except Exception as error:  # noqa: BLE001 - the step's own; raised where the work waits for it
            errors.append(error)
        return {"name": name, "failed": True}

    def _settle(self, answer: asyncio.Future[None], written: Json, errors: Sequence[Exception]) -> None:
        if "gave" in written:
            self._finished[written["name"]] = written["gave"]
        if answer.done():
            return
        if errors:
            answer.set_exception(errors[0])
        else:
            answer.set_result(None)

    def _cancel(self) -> None:
        if self._task:
            self._task.cancel()

    def _tell(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: `_request` sees it too
            self._loop.call_soon_threadsafe(what)

    def _submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        try:
            return asyncio.run_coroutine_threadsafe(self._named(coroutine), self._loop)
        except RuntimeError:
            coroutine.close()
            raise Stopped from None

    async def _named(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Whatever is logged meanwhile has the work's id."""
        with bound_contextvars(work_id=self._work_id):
            return await coroutine

    def _request(self) -> Callable[[], None] | None:
        while True:
            try:
                return self._requests.get(timeout=_LOOK_SECONDS)
            except Empty:
                self._look()

    def _result(self, future: Future[Any]) -> Any:
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except TimeoutError:
                if future.done():
                    return future.result()
                self._look()

    def _look(self) -> None:
        if self._loop.is_closed():
            raise Stopped


async def _plain(step: Callable[[], Awaitable[Json]]) -> Json:
    return plain(await step(), what="What a step gives")
