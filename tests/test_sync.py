"""The synchronous client: threads beside it, and its end while they are busy."""

import threading

import pytest

import roomlore
from roomlore import Message, Unavailable

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
    thread.join(10)
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
