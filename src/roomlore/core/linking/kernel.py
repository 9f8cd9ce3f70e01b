"""The compiled form of the link model, where the package `roomlore-kernel` is installed. The numpy form says what it
does, and stands in for it.

It reads and writes the arrays of a window where they are: a window keeps their addresses (`Arrays`). Everything else
goes over packed, as `csrc/interface.h` of that package has it.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from roomlore.core.linking.calibration import Habits
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.linking.reading import MAX_NAMED, MessageReading
from roomlore.core.linking.window import SIZE, Flags, Floats, RoomWindow
from roomlore.core.models import Entry, LinkKind

ARRAYS = (
    "facts", "kin", "arrival", "thread", "place", "at", "latest", "gaps", "began", "lean", "across", "people",
    "speakers", "counts",
)  # fmt: skip
_WINDOW = struct.Struct(f"2q{len(ARRAYS)}P")
_MODEL = struct.Struct("2q10P")
_MESSAGE = struct.Struct(f"4Pq4q3q{MAX_NAMED}q6q6d")
_ENTRY = struct.Struct(f"2Pq4q2q{MAX_NAMED}q4q4d")
_GUESS = struct.Struct("2q2dq")
_PACKED = (_WINDOW, _MODEL, _MESSAGE, _ENTRY)
_NOBODY = [(-2,) * (MAX_NAMED - count) for count in range(MAX_NAMED + 1)]
_REFUSED = {-1: "window", -2: "message", -3: "model", -4: "thread candidates"}


class KernelLibrary(Protocol):
    """The module `roomlore_kernel`. Addresses are numbers; what is negative among the answers is an error."""

    def layout(self) -> str: ...

    def sizes(self) -> tuple[int, ...]: ...

    def form(self) -> str: ...

    def link(self, message: bytes, /) -> int: ...

    def write(self, entry: bytes, /) -> int: ...


def fits(library: KernelLibrary, *names: Sequence[str]) -> bool:
    """Return True if the library knows these names of counts, traits and features, and the structures packed here."""
    sizes = tuple(packed.size for packed in _PACKED)
    return library.layout() == ";".join(map(",".join, names)) and library.sizes()[: len(sizes)] == sizes


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
        self._arrays = [getattr(window, name) for name in ARRAYS]
        addresses = [array.ctypes.data for array in self._arrays]
        packed = np.frombuffer(_WINDOW.pack(len(window.at), len(window.counts) - 1, *addresses), np.uint8)
        self.guess, self.partner = bytearray(guess_bytes), np.zeros(1, np.int64)
        self._kept = (packed, np.frombuffer(self.guess, np.uint8), self.partner)
        self.address, self.guess_address, self.partner_address = (array.ctypes.data for array in self._kept)


class LinkKernel:
    """The compiled form of one model. `weights`: its arrays, in the order of `LinkModel`."""

    def __init__(self, library: KernelLibrary, weights: Sequence[Floats]) -> None:
        self._library, self._weights = library, weights
        inner, hidden = weights[3].shape
        addresses = (array.ctypes.data for array in weights)
        self._model = np.frombuffer(_MODEL.pack(hidden, inner, *addresses), np.uint8)
        self._model_address = self._model.ctypes.data
        self._guess_bytes = library.sizes()[len(_PACKED)]
        self.form = library.form()
        """For which processors the code was compiled."""

    def _arrays(self, window: RoomWindow) -> Arrays:
        if window.addresses is None:
            window.addresses = Arrays(window, self._guess_bytes)
        arrays: Arrays = window.addresses
        return arrays

    def guess(
        self,
        window: RoomWindow,
        reading: MessageReading,
        sender: str,
        at: float,
        habits: Habits,
        *,
        among: Flags | None = None,
        never_new: bool = False,
        features: int = 0,
    ) -> Guess | None:
        """Return what a message most likely answers, None if nothing can be answered.

        `among`: which of the newest `SIZE` rows may be answered; `never_new`: it certainly answers something;
        `features`: an address to which the features are written.
        """
        arrays, first, find = self._arrays(window), window.end - SIZE, window.names.find
        words, named, count = reading.words, reading.named, len(reading.named)
        uses = [(rows >> first).to_bytes(SIZE // 8, "little") for rows in window.uses_of(words)]
        traits, marks = reading.traits.tobytes(), b"" if among is None else among.tobytes()
        message = _MESSAGE.pack(
            arrays.address, self._model_address, arrays.guess_address, features,
            _MESSAGE.size + len(traits) + len(uses) * (SIZE // 8) + len(marks),
            window.end, window.alive, window.within, window.pushed,
            find(sender), count, reading.addressed, *map(find, named), *_NOBODY[count],
            len(words), len(uses), window.agents(named) > 0, window.spoke_agent(), never_new, among is not None,
            at, reading.lean, *habits,
        )  # fmt: skip
        answer = self._library.link(b"".join((message, traits, *uses, marks)))
        _check(answer)
        if not answer:
            return None
        parent, thread, chance, new, size = _GUESS.unpack_from(arrays.guess)
        packed = bytes(arrays.guess[_GUESS.size : _GUESS.size + size])
        return Guess(parent, thread, chance, new, ThreadCandidates(packed))

    def write(
        self, window: RoomWindow, me: int, named: list[int], entry: Entry, reading: MessageReading, *, calls_agent: bool
    ) -> int:
        """Write an entry into the arrays of the window, in row `end`. Return the number of whom it answers, or -1."""
        arrays, link, count = self._arrays(window), entry.link, len(named)
        traits, candidates = reading.traits.tobytes(), link.thread_candidates.pack()
        packed = _ENTRY.pack(
            arrays.address, arrays.partner_address, _ENTRY.size + len(traits) + len(candidates),
            window.end, window.alive, window.within, window.pushed,
            me, count, *named, *_NOBODY[count],
            calls_agent, entry.message.arrival, link.thread,
            -1 if link.parent is None or link.kind is LinkKind.NEW else link.parent,
            entry.message.at.timestamp(), reading.lean, link.parent_probability, link.new_probability,
        )  # fmt: skip
        _check(self._library.write(packed + traits + candidates))
        return int(arrays.partner[0])


def _check(answer: int) -> None:
    if answer < 0:
        raise ValueError(f"The linker's kernel refuses the {_REFUSED.get(answer, 'call')}.")
