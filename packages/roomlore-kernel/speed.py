"""Prints the processor time, in microseconds, of reading a message, linking it and taking it into the window, with
numpy and with the kernel: `python speed.py`, in an environment that has the repository's root on its path."""

import time
from datetime import UTC, datetime
from statistics import median

from bench.chatter import chat

from roomlore.adapters.weights import load_link_model
from roomlore.core.analysis import Participants, analyse
from roomlore.core.intake import as_stored
from roomlore.core.linking.model import LinkModel, link
from roomlore.core.linking.window import RoomWindow
from roomlore.core.models import Entry, StoredMessage

WARM = 400


def main(messages: int = 1500, rounds: int = 5) -> None:
    forms = {"numpy": load_link_model(), "kernel": load_link_model(compiled=True)}
    told, taken = room(messages), {name: [] for name in forms}
    for _ in range(rounds):
        for name, model in forms.items():
            taken[name].append(followed(model, told))
    for name, times in taken.items():
        read, linked, pushed = (median(one) for one in zip(*times, strict=True))
        print(f"{name}: read {read:.1f}, link {linked:.1f}, push {pushed:.1f}")


def room(count: int) -> list[StoredMessage]:
    told: list[StoredMessage] = []
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for arrival, message in enumerate(chat("room", count, seed=1), 1):
        previous = told[-1] if told else None
        told.append(as_stored(message, arrival=arrival, tokens=8, previous=previous, now=now))
    return told


def followed(model: LinkModel, told: list[StoredMessage]) -> list[float]:
    window, people = RoomWindow(model.kernel), Participants()
    times = [0.0, 0.0, 0.0]
    for place, message in enumerate(told):
        features = analyse(message, people)
        begun = time.thread_time_ns()
        window.read(message, features)
        read = time.thread_time_ns()
        made = link(model, window, message, features)
        linked = time.thread_time_ns()
        entry = Entry(message=message, features=features, link=made)
        before = time.thread_time_ns()
        window.push(entry)
        after = time.thread_time_ns()
        people.see(message.sender_id, message.sender_name)
        if place >= WARM:
            times = [sum(two) for two in zip(times, (read - begun, linked - read, after - before), strict=True)]
    return [one / 1000 / (len(told) - WARM) for one in times]


if __name__ == "__main__":
    main()
