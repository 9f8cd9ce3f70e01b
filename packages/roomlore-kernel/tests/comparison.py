"""Follows a room with both forms of the linker, and compares all that they make of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

import roomlore_kernel
from roomlore.adapters.weights import load_link_model
from roomlore.core.analysis import Participants, analyse
from roomlore.core.linking.calibration import USUAL, Habits
from roomlore.core.linking.features import PAIR, SELF, view
from roomlore.core.linking.kernel import ARRAYS
from roomlore.core.linking.model import MAX_THREAD_CANDIDATES, MIN_SHARE, link
from roomlore.core.linking.window import CANDIDATES, UNANSWERED, RoomWindow
from roomlore.core.models import Entry, Link, MessageFeatures, StoredMessage

NUMPY, COMPILED = load_link_model(), load_link_model(compiled=True)
FEATURES = np.dtype(
    [
        ("pairs", "f4", (len(PAIR), CANDIDATES)),
        ("own", "f4", len(SELF)),
        ("chances", "f8", CANDIDATES + 1),
        ("open", "i8", CANDIDATES),
        ("row", "i8", CANDIDATES),
    ]
)
assert FEATURES.itemsize == roomlore_kernel.sizes()[5]
SETS = ("said", "called", "to", "answered", "addressing", "answering", "last")


def features_of(window: RoomWindow, message: StoredMessage, features: MessageFeatures) -> np.void:
    """Return the features as the kernel reads them."""
    assert COMPILED.kernel is not None
    seen = np.zeros(1, FEATURES)
    reading, at = window.read_to_link(message, features), message.at.timestamp()
    COMPILED.kernel.guess(window, reading, message.sender_id, at, USUAL, features=seen.ctypes.data)
    return seen[0]


def _most_left_out(shares: dict[int, float]) -> float:
    """Return the greatest share that one that is not kept may have."""
    return min(shares.values()) if len(shares) == MAX_THREAD_CANDIDATES else MIN_SHARE


@dataclass
class Differences:
    """`links`: of the messages that were linked otherwise; `shares`: the greatest of any probability; `features`: the
    greatest of each feature, and of each array of the window."""

    messages: int = 0
    links: list[tuple[Link, Link]] = field(default_factory=list)
    shares: float = 0.0
    features: dict[str, float] = field(default_factory=dict)

    def of_links(self, one: Link, other: Link) -> None:
        self.messages += 1
        if (one.kind, one.thread, one.parent) != (other.kind, other.thread, other.parent):
            self.links.append((one, other))
        ours, theirs = one.thread_candidates.by_arrival(), other.thread_candidates.by_arrival()
        left = _most_left_out(ours), _most_left_out(theirs)
        apart = [
            abs(ours.get(arrival, left[0]) - theirs.get(arrival, left[1])) for arrival in ours.keys() | theirs.keys()
        ]
        apart += [
            abs(one.parent_probability - other.parent_probability),
            abs(one.new_probability - other.new_probability),
        ]
        self.shares = max(self.shares, *apart)

    def of_numbers(self, name: str, one: object, other: object) -> None:
        one, other = (np.nan_to_num(np.asarray(numbers, float), posinf=-1.0) for numbers in (one, other))
        apart = np.abs(one - other) / np.maximum(np.abs(one), 1.0)
        self.features[name] = max(self.features.get(name, 0.0), float(apart.max(initial=0.0)))

    def of_features(self, window: RoomWindow, other: RoomWindow, message: StoredMessage, cues: MessageFeatures) -> None:
        ours, theirs = view(window, message, cues), features_of(other, message, cues)
        self.of_numbers("rows", ours.rows, theirs["row"])
        self.of_numbers("open", ours.open, theirs["open"])
        for line, name in enumerate(PAIR):
            self.of_numbers(name, ours.pairs[line][ours.open], theirs["pairs"][line][ours.open])
        for line, name in enumerate(SELF):
            self.of_numbers(f"own {name}", ours.own[line], theirs["own"][line])

    def of_windows(self, one: RoomWindow, other: RoomWindow) -> None:
        for name in ("end", "alive", "within", "pushed", *ARRAYS):
            self.of_numbers(f"window {name}", getattr(one, name), getattr(other, name))
        for name in SETS:
            assert getattr(one, name) == getattr(other, name), name


def compare(
    messages: Iterable[StoredMessage],
    *,
    habits: Habits = USUAL,
    every: int = 1,
    watched: Callable[..., None] | None = None,
) -> Differences:
    """Follow a room with both forms. `every`: how often features and windows are compared too; `watched` is called with
    both windows and each entry, and may change them."""
    found, people = Differences(), Participants()
    window, other = RoomWindow(), RoomWindow(COMPILED.kernel)
    for place, message in enumerate(messages):
        cues = analyse(message, people)
        deep = place % every == 0
        if deep and message.role not in UNANSWERED:
            found.of_features(window, other, message, cues)
        made = link(NUMPY, window, message, cues, habits=habits)
        found.of_links(made, link(COMPILED, other, message, cues, habits=habits))
        entry = Entry(message=message, features=cues, link=made)
        window.push(entry)
        other.push(entry)
        if watched is not None:
            watched(window, other, entry)
        if deep:
            found.of_windows(window, other)
        people.see(message.sender_id, message.sender_name)
    return found
