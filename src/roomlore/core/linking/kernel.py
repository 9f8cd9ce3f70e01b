"""The compiled form of the link model, where the package `roomlore-kernel` is installed. The numpy form says what it must
do, and stands in for it.

It reads and writes the arrays of a window where they are. So a window keeps their addresses (`Arrays`), and everything
else goes over packed, as `csrc/interface.h` of that package has it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.linking.reading import MAX_NAMED, MessageReading
from roomlore.core.models import Entry, LinkKind

if TYPE_CHECKING:
    from roomlore.core.linking.calibration import Habits
    from roomlore.core.linking.window import RoomWindow

ARRAYS = (
    "facts", "kin", "arrival", "thread", "place", "at", "latest", "gaps", "began", "lean", "across", "people",
    "speakers", "counts",
)  # fmt: skip
_WINDOW = struct.Struct(f"2q{len(ARRAYS)}P")
_MESSAGE = struct.Struct(f"{4 + 3 + MAX_NAMED + 5}q6d")
_ENTRY = struct.Struct(f"{4 + 2 + MAX_NAMED + 4}q4d")
_GUESS = struct.Struct("2q2dq")
_COLUMN_BYTES = 400 // 8
_NO_PEOPLE = [(-2,) * (MAX_NAMED - count) for count in range(MAX_NAMED + 1)]
_ERRORS = {-1: "window", -2: "message", -3: "model", -4: "thread candidates"}


class KernelLibrary(Protocol):
    """The module `roomlore_kernel`."""

    def layout(self) -> str: ...

    def sizes(self) -> tuple[int, ...]: ...

    def form(self) -> str: ...

    def link(
        self,
        window: int,
        model: int,
        message: bytes,
        traits: bytes,
        uses: bytes,
        uses_size: int,
        among: bytes | None,
        guess: int,
        features: int | None,
        /,
    ) -> int: ...

    def write(
        self, window: int, entry: bytes, traits: bytes, candidates: bytes, candidates_size: int, partner: int, /
    ) -> int: ...


def fits(library: KernelLibrary, *names: Sequence[str]) -> bool:
    """Return True if the library knows these names of counts, traits and features, and the structures packed here."""
    packed = (_WINDOW.size, 16 + 8 * 10, _MESSAGE.size, _ENTRY.size)
    return library.layout() == ";".join(map(",".join, names)) and library.sizes()[: len(packed)] == packed


class Guess(NamedTuple):
    """What a message most likely answers; `chance`: how likely; `new`: that it starts something new."""

    parent: int
    thread: int
    chance: float
    new: float
    thread_candidates: ThreadCandidates


class Arrays:
    """The addresses of a window's arrays, and room for answers."""

    def __init__(self, window: RoomWindow, guess_bytes: int) -> None:
        self.kept = [getattr(window, name) for name in ARRAYS]
        addresses = [array.ctypes.data for array in self.kept]
        self._packed = np.frombuffer(_WINDOW.pack(len(window.at), len(window.counts) - 1, *addresses), np.uint8)
        self.guess = np.zeros(guess_bytes, np.uint8)
        self.partner = np.zeros(1, np.int64)
        self.address, self.guess_address, self.partner_address = (
            array.ctypes.data for array in (self._packed, self.guess, self.partner)
        )


class LinkKernel:
    """The compiled form of one model. `weights`: its arrays, in the order of `LinkModel`."""

    def __init__(self, library: KernelLibrary, weights: Sequence[npt.NDArray[np.float32]]) -> None:
        self._library, self._weights = library, weights
        hidden, inner = weights[3].shape[1], weights[3].shape[0]
        addresses = [array.ctypes.data for array in weights]
        self._model = np.frombuffer(struct.pack(f"2q{len(weights)}P", hidden, inner, *addresses), np.uint8)
        self._model_address = self._model.ctypes.data
        self._guess_bytes = library.sizes()[4]
        self.form = library.form()
        """For which processors the code was compiled."""

    def arrays(self, window: RoomWindow) -> Arrays:
        """Return the addresses of a window's arrays, found once."""
        if window.arrays is None:
            window.arrays = Arrays(window, self._guess_bytes)
        return window.arrays

    def guess(
        self,
        window: RoomWindow,
        reading: MessageReading,
        sender: str,
        at: float,
        habits: Habits,
        *,
        among: npt.NDArray[np.bool_] | None = None,
        never_new: bool = False,
        features: int | None = None,
    ) -> Guess | None:
        """Return what a message most likely answers, None if nothing can be answered.

        `among`: which of the newest rows may be answered; `never_new`: it certainly answers something; `features`: an
        address to which the features are written."""
        arrays, first, find = self.arrays(window), window.end - 8 * _COLUMN_BYTES, window.names.find
        words, named, addressed = reading.words, reading.named, reading.addressed
        uses = [(rows >> first).to_bytes(_COLUMN_BYTES, "little") for rows in window.uses_of(words)]
        count = len(named)
        message = _MESSAGE.pack(
            window.end, window.alive, window.within, window.pushed,
            find(sender), count, addressed, *map(find, named), *_NO_PEOPLE[count],
            len(words), len(uses), window.agents(named) > 0, window.spoke_agent(), never_new,
            at, reading.lean, *habits,
        )  # fmt: skip
        used = b"".join(uses)
        answer = self._library.link(
            arrays.address, self._model_address, message, reading.traits.tobytes(), used, len(used),
            None if among is None else among.tobytes(), arrays.guess_address, features,
        )  # fmt: skip
        if answer <= 0:
            return _nothing(answer)
        guess = arrays.guess
        parent, thread, chance, new, size = _GUESS.unpack_from(guess)
        packed = guess[_GUESS.size : _GUESS.size + size].tobytes()
        return Guess(parent, thread, chance, new, ThreadCandidates(packed))

    def write(self, window: RoomWindow, me: int, named: list[int], entry: Entry, reading: MessageReading) -> int:
        """Write an entry into the arrays of the window, in row `end`. Return the number of whom it answers, or -1."""
        arrays, link, count = self.arrays(window), entry.link, len(named)
        parent = -1 if link.parent is None or link.kind is LinkKind.NEW else link.parent
        candidates = link.thread_candidates.pack()
        packed = _ENTRY.pack(
            window.end, window.alive, window.within, window.pushed, me, count, *named, *_NO_PEOPLE[count],
            window.agents(reading.named, 100) > 0, entry.message.arrival, link.thread, parent,
            entry.message.at.timestamp(), reading.lean, link.parent_probability or 0.0, link.new_probability or 0.0,
        )  # fmt: skip
        answer = self._library.write(
            arrays.address, packed, reading.traits.tobytes(), candidates, len(candidates), arrays.partner_address
        )
        if answer <= 0:
            _nothing(answer)
        return int(arrays.partner[0])


def _nothing(answer: int) -> None:
    if answer < 0:
        raise ValueError(f"The linker's kernel refuses the {_ERRORS.get(answer, 'call')}.")
