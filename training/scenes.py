"""From labelled rooms to what the net learns from."""

from typing import NamedTuple

import numpy as np

from roomlore.core.analysis import Participants, analyse
from roomlore.core.link_features import View, view
from roomlore.core.link_window import SIZE
from roomlore.core.linking import LinkModel, RoomWindow, link
from roomlore.core.models import Entry, Link, LinkKind, Role
from training.rooms import LabelledRoom


class Scenes(NamedTuple):
    """Of n messages: `pairs` float16 (n, CANDIDATES, pair features), `own` float32 (n, self features), `open` and `gold`
    bool (n, CANDIDATES), `starts` bool (n,)."""

    pairs: np.ndarray  # type: ignore[type-arg]
    own: np.ndarray  # type: ignore[type-arg]
    open: np.ndarray  # type: ignore[type-arg]
    gold: np.ndarray  # type: ignore[type-arg]
    starts: np.ndarray  # type: ignore[type-arg]


def gather(room: LabelledRoom, model: LinkModel | None) -> Scenes:
    """Walks a room as ingest does, linking with `model` (nothing is linked without one)."""
    window, people = RoomWindow(), Participants()
    seen: list[tuple[View, np.ndarray, bool]] = []  # type: ignore[type-arg]
    first = next(place for place, label in enumerate(room.labels) if label.annotated) - SIZE
    for place, (message, label) in enumerate(zip(room.messages, room.labels, strict=True)):
        if place < first:
            people.see(message.sender_id, message.sender_name)
            continue
        features = analyse(message, people)
        if message.role is Role.USER and label.annotated:
            look = view(window, message, features)
            gold = np.isin(window.arrival[look.rows], [p + 1 for p in label.parents]) & look.open
            seen.append((look, gold, not gold.any()))
        found = link(model, window, message, features) if model else Link(kind=LinkKind.NEW, thread=place + 1)
        window.push(Entry(message=message, features=features, link=found))
        people.see(message.sender_id, message.sender_name)
    return _stack(seen)


def _stack(seen: list[tuple[View, np.ndarray, bool]]) -> Scenes:  # type: ignore[type-arg]
    return Scenes(
        np.stack([look.pairs.T for look, *_ in seen]).astype(np.float16),
        np.stack([look.own for look, *_ in seen]),
        np.stack([look.open for look, *_ in seen]),
        np.stack([gold for _, gold, _ in seen]),
        np.array([start for *_, start in seen]),
    )


def join(parts: list[Scenes]) -> Scenes:
    return Scenes(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
