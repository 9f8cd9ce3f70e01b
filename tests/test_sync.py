"""The synchronous client: threads beside it, and its end while they are busy."""

import asyncio
import os
import signal
import threading
import time

import pytest

import roomlore
from roomlore import Message, Unavailable
from roomlore.core.chat.models import ChatRequest, ToolCall
from roomlore.sync import _Loop
from roomlore.testing.embedding import HashEmbedder
from roomlore.testing.model_answers import Hangs, Says
from roomlore.testing.model_server import serve_models

BATCH = [Message(id=str(number), room_id="r", sender_id="ann", text="hello there " * 9) for number in range(2000)]


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
            assert "".join(piece.text for piece in lore.models.stream("chat", request)) == "ready"
            lore.ping()
        assert server.requests[0].left_at is not None


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
