"""The synchronous client: its threads and types, its end while calls are busy; and the end of both clients."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import mypy.api
import pytest

import roomlore
from roomlore import InvalidInput, Message, StorageUnavailable, Unavailable
from roomlore.core.chat import ChatRequest, ToolCall
from roomlore.wiring.resources import Closing
from roomlore.wiring.sync import _Loop
from roomlore_testkit.embedding import HashEmbedder
from roomlore_testkit.model_server import Hangs, Says, serve_models

BATCH = [Message(id=str(number), room_id="r", sender_id="ann", text="hello there " * 9) for number in range(2000)]


async def test_a_path_names_a_database_as_its_text_does(tmp_path):
    path = tmp_path / "a.db"
    async with roomlore.open(path) as lore:
        await lore.messages.add(BATCH[:1])
    for named in (path, str(path)):
        with roomlore.open_sync(named) as lore:
            assert [message.id for message in lore.messages.page("r")] == ["0"]
    for wrong in (tmp_path / "a.txt", 5):
        with pytest.raises(InvalidInput, match="database"):
            await roomlore.connect(wrong)


def test_many_threads_share_one_client(tmp_path):
    with roomlore.open_sync(f"sqlite:///{tmp_path / 'a.db'}") as lore:

        def write(name: str) -> None:
            for number in range(5):
                lore.messages.add(Message(id=f"{name}{number}", room_id="r", sender_id=name, text="hi"))

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [message.arrival for message in lore.messages.page("r")] == list(range(1, 21))


def test_closing_ends_the_calls_of_other_threads(tmp_path):
    ends: list[Exception] = []
    under_way = threading.Event()
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with roomlore.open_sync(url) as lore:

        def write() -> None:
            under_way.set()
            try:
                lore.messages.add(BATCH)
            except Unavailable as error:
                ends.append(error)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        under_way.wait()
        lore.ping()
    thread.join(60)
    assert not thread.is_alive()
    with roomlore.open_sync(url) as again:
        assert sum(room.messages for room in again.rooms.page()) == (0 if ends else len(BATCH))


def test_a_closed_client_says_so(tmp_path):
    with roomlore.open_sync(f"sqlite:///{tmp_path / 'a.db'}") as lore:
        lore.ping()
    with pytest.raises(Unavailable, match="closed"):
        lore.rooms.page()


async def test_a_closed_library_opens_nothing_again(tmp_path):
    async with roomlore.open(f"sqlite:///{tmp_path / 'a.db'}") as lore:
        await lore.ping()
    with pytest.raises(Unavailable, match="closed"):
        await lore.rooms.page()


async def test_connect_opens_without_a_block_and_any_view_closes(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    lore = await roomlore.connect(url)
    view = lore.for_tenant("other")
    await lore.messages.add(BATCH[0])
    await asyncio.gather(view.close(), lore.close())
    await lore.close()
    with pytest.raises(StorageUnavailable, match="closed"):
        await lore.rooms.page()
    async with roomlore.open(url) as again:
        assert [room.messages for room in await again.rooms.page()] == [1]
        await again.close()


async def test_who_closes_at_the_same_time_keeps_the_order():
    ended, closing = [], Closing()

    async def end_work() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        ended.append("work")

    async def close_database() -> None:
        ended.append("database")

    closing.push_async_callback(close_database)
    closing.push_async_callback(end_work)
    await asyncio.gather(closing.aclose(), closing.aclose())
    assert ended == ["work", "database"]


def test_connect_sync_opens_without_a_block_and_any_view_closes(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    lore = roomlore.connect_sync(url)
    view = lore.for_tenant("other")
    lore.messages.add(BATCH[0])
    view.close()
    lore.close()
    with pytest.raises(Unavailable, match="closed"):
        lore.rooms.page()
    with roomlore.open_sync(url) as again:
        assert [room.messages for room in again.rooms.page()] == [1]
        again.close()


async def test_what_cannot_be_opened_leaves_nothing_open():
    with pytest.raises(InvalidInput, match="tenant"):
        await roomlore.connect("sqlite://", tenant="")
    with pytest.raises(InvalidInput, match="tenant"):
        roomlore.connect_sync("sqlite://", tenant="")
    assert "roomlore" not in {thread.name for thread in threading.enumerate()}


NEVER_CLOSED = """import asyncio
import roomlore

one = roomlore.connect_sync('sqlite://')
other = asyncio.run(roomlore.connect('sqlite://'))
"""


@pytest.mark.parametrize("asked", [True, False])
def test_a_client_that_nobody_closed_warns_of_the_line_that_opened_it(asked, tmp_path):
    program = tmp_path / "bot.py"
    program.write_text(NEVER_CLOSED, encoding="utf-8")
    options = ["-W", "always::ResourceWarning"] if asked else []
    ended = subprocess.run([sys.executable, *options, program], capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0
    for line, block in ((4, "with roomlore.open_sync(...)"), (5, "async with roomlore.open(...)")):
        said = f"roomlore was not closed: call `close()`, or open it in `{block}`."
        assert f"{said} Opened at {program}:{line}." in ended.stderr
        assert (f"{program}:{line}: ResourceWarning: {said}" in ended.stderr) == asked


RIGHT = """
import roomlore

with roomlore.open_sync("sqlite://") as lore:
    reveal_type(lore.messages.page("r", limit=5))
    reveal_type(lore.messages.export("r"))
    reveal_type(lore.for_tenant("t").rooms)
lore = roomlore.connect_sync("sqlite://")
lore.close()
"""
WRONG = """
import roomlore

with roomlore.open_sync("sqlite://") as lore:
    lore.messages.ad()
    lore.messages.page("r", limit="five")
    number: int = lore.messages.page("r")
"""


def test_a_type_checker_knows_the_verbs_and_what_they_answer(tmp_path):
    told, status = _checked(RIGHT, tmp_path)
    assert status == 0
    assert [line.partition("Revealed type is ")[2] for line in told[:3]] == [
        '"list[roomlore.core.models.StoredMessage]"',
        '"typing.Iterator[roomlore.core.models.StoredMessage]"',
        '"roomlore.sync.SyncRoomService"',
    ]


def test_a_type_checker_refuses_a_misspelt_verb_and_a_wrong_argument(tmp_path):
    told, status = _checked(WRONG, tmp_path)
    assert status == 1
    assert [line.split("error: ")[1] for line in told[:3]] == [
        '"SyncMessageService" has no attribute "ad"; maybe "add"?  [attr-defined]',
        'Argument "limit" to "page" of "SyncMessageService" has incompatible type "str"; expected "int"  [arg-type]',
        'Incompatible types in assignment (expression has type "list[StoredMessage]", variable has type "int")'
        "  [assignment]",
    ]


def _checked(program: str, folder: Path) -> tuple[list[str], int]:
    """Return mypy's lines and its exit status. It reads three modules of roomlore: all of them take half a minute."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    package = Path(roomlore.__file__).parent
    read = [folder / "program.py", package / "__init__.py", package / "sync.pyi", package / "core" / "models.py"]
    options = ["--strict", "--config-file=", "--follow-imports=skip", f"--cache-dir={folder / 'cache'}"]
    thresholds = gc.get_threshold()
    try:
        told, wrong, status = mypy.api.run([*options, *map(str, read)])
    finally:
        gc.set_threshold(*thresholds)  # which mypy leaves so high that the tests after it would collect nothing
    assert wrong == ""
    return told.splitlines(), status


def test_the_index_can_be_drained_and_rebuilt_in_steps(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with roomlore.open_sync(url, embedder=HashEmbedder(), background=False) as lore:
        lore.messages.add(BATCH[:300])
        first = next(iter(lore.index.drain()))
        assert (first.part, 0 < first.done < first.total) == ("vectors", True)
        assert [step.done for step in lore.index.drain()][-1] == 300 - first.done
        assert lore.index.status().vectors == "whole"
        assert {step.part for step in lore.index.rebuild()} == {"words", "vectors"}
        assert lore.messages.search("r", "hello", limit=1).mode == "hybrid"


def test_an_iterator_broken_off_is_closed_at_once(tmp_path):
    with roomlore.open_sync(f"sqlite:///{tmp_path / 'a.db'}") as lore:
        lore.messages.add(BATCH)
        exported = lore.messages.export("r")
        assert next(exported).id == "0"
        exported.close()
        assert list(exported) == []
        left = lore.messages.export("r")
        next(left)


@pytest.mark.parametrize("form", ["plain", "async", "object"])
def test_tools_are_plain_functions_or_async_ones(tmp_path, form):
    together = threading.Barrier(2)

    def plain(call):
        together.wait(60)
        return f"{call.name}: 晴"

    async def awaited(call):
        return f"{call.name}: 晴"

    class Tools:
        async def __call__(self, call):
            return f"{call.name}: 晴"

    calls = [ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")]
    with serve_models([Says(tool_calls=calls), "好天气。"]) as server:
        settings = roomlore.Settings(
            database_url=f"sqlite:///{tmp_path / 'a.db'}",
            providers={"here": {"base_url": server.url}},
            models={"chat": {"providers": [{"name": "here", "model_id": "m"}]}},
        )
        with roomlore.open_sync(settings=settings) as lore:
            tool = {"plain": plain, "async": awaited, "object": Tools()}[form]
            asked = Message(id="1", room_id="r", sender_id="ann", text="天气怎么样？")
            reply = lore.replies.reply(asked, tools=[roomlore.Tool("look")], call_tool=tool)
            assert reply.text == "好天气。"
        assert server.requests[1].prompt.count("look: 晴") == 2


def test_ctrl_c_ends_the_call_it_interrupts_and_no_other(tmp_path):
    with serve_models([Hangs()], default="ready") as server:
        named = {"chat": {"providers": [{"name": "here", "model_id": "m"}]}}
        settings = roomlore.Settings(models=named, providers={"here": {"base_url": server.url}})
        request = ChatRequest(messages=[{"role": "user", "content": "?"}])
        with roomlore.open_sync(f"sqlite:///{tmp_path / 'a.db'}", settings=settings) as lore:
            pressing = threading.Thread(target=_press_once, args=(server,))
            pressing.start()
            with pytest.raises(KeyboardInterrupt):
                list(lore.models.stream("chat", request))
            pressing.join()
            ends = time.monotonic() + 60
            while server.requests[0].left_at is None and time.monotonic() < ends:
                time.sleep(0.01)  # the server looks for it now and then, and so not at once
            assert server.requests[0].left_at is not None, "before anything closes the client"
            assert "".join(piece.text for piece in lore.models.stream("chat", request)) == "ready"
            lore.ping()


def _press_once(server) -> None:
    ends = time.monotonic() + 60
    while not server.requests and time.monotonic() < ends:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_pressed_twice_still_waits_until_things_are_in_order():
    asked, ending, twice = (threading.Event() for _ in range(3))
    pressed, ended = [], []

    async def items():
        try:
            yield 1
            asked.set()
            await asyncio.sleep(60)
        finally:
            ending.set()
            await asyncio.to_thread(twice.wait, 60)
            ended.append(True)

    def press_twice() -> None:
        for moment in (asked, ending):
            moment.wait(60)
            time.sleep(0.1)  # by now it is surely waited for
            os.kill(os.getpid(), signal.SIGINT)

    def hear(number, frame):
        pressed.append(number)
        if len(pressed) == 2:
            twice.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)

    loop = _Loop()
    pressing = threading.Thread(target=press_twice)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        list(loop.iterate(items()))
    pressing.join()
    signal.signal(signal.SIGINT, before)
    assert (len(pressed), ended) == (2, [True])
    loop.close()


def test_ctrl_c_while_a_call_is_handed_in_ends_it_too(monkeypatch):
    ended = []

    async def items():
        try:
            yield 1
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    hand_in, handed_in = asyncio.run_coroutine_threadsafe, []

    def pressed(work, loop):
        handed_in.append(hand_in(work, loop))
        if len(handed_in) == 2:
            raise KeyboardInterrupt
        return handed_in[-1]

    loop = _Loop()
    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", pressed)
    with pytest.raises(KeyboardInterrupt):
        list(loop.iterate(items()))
    assert ended == [True]
    loop.close()


def test_a_call_that_comes_while_it_closes_is_refused():
    """It would be handed to a loop that stops before it is answered, or that is closed."""
    loop, closing, refused = _Loop(), threading.Event(), threading.Event()

    async def last():
        closing.set()
        await asyncio.to_thread(refused.wait, 60)

    ending = threading.Thread(target=loop.close, args=(last,))
    ending.start()
    assert closing.wait(60)
    with pytest.raises(roomlore.Unavailable, match="closed"):
        loop.run(asyncio.sleep(0, result="answered"))
    refused.set()
    ending.join()
