"""The earlier messages likely to share a thread with one message, and their compact form in the store."""

import struct
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_HEAD = struct.Struct("<qB")
_AS_BITS = 0
_MOST_BYTES = 255
_SHARE = np.dtype("<u2")
_WIDTH_OF = (1,) * 9 + (2,) * 8 + (4,) * 16 + (8,) * 32
"""The bytes for a number of so many bits."""
WHOLE = np.array(65535.0)


class ThreadCandidates:
    """Arrivals (int64, ascending) and, for each, P(same thread) in [0, 1] (float64, a multiple of 1/65535).

    The arrivals are distinct, except that two processes of an earlier version could name one twice.

    The value is the stored form; the arrays are decoded each time they are asked for, since they take several times the
    memory. So a room read from the store behaves exactly like one kept in memory. All numbers in it are little-endian.
    It is empty for no candidate, else it has three parts:

    - the first arrival (int64), and the bytes of a distance from it (1, 2, 4 or 8; 0 if the distances are bits);
    - each distance; or, if that is shorter, no distance is above 2,039 and all differ, the number of bytes that follow
      (uint8) and in these a bit for each arrival from the first one on, 1 for a candidate;
    - each share of 65535 (uint16).

    That is mostly a little more than two bytes a candidate.
    """

    __slots__ = ("_packed",)

    def __init__(self, packed: bytes = b"") -> None:
        self._packed = packed

    @classmethod
    def of(cls, arrivals: npt.ArrayLike, probabilities: npt.ArrayLike) -> "ThreadCandidates":
        """Sort by arrival, clip to [0, 1] and round to the stored precision."""
        where = np.asarray(arrivals, np.int64)
        order = np.argsort(where, kind="stable")
        return cls.ascending(where[order], np.clip(np.asarray(probabilities, np.float64)[order], 0.0, 1.0))

    @classmethod
    def ascending(cls, arrivals: npt.NDArray[np.int64], probabilities: npt.NDArray[np.floating]) -> "ThreadCandidates":
        """Build from arrivals already in order and probabilities in [0, 1]."""
        return cls(_packed(arrivals, in_parts(probabilities)))

    @classmethod
    def counted(cls, arrivals: npt.NDArray[np.int64], parts: npt.NDArray[np.float64]) -> "ThreadCandidates":
        """Build from arrivals already in order and the probabilities `in_parts`."""
        return cls(_packed(arrivals, parts))

    def pack(self) -> bytes:
        """Return the stored form."""
        return self._packed

    @property
    def arrivals(self) -> npt.NDArray[np.int64]:
        if not self._packed:
            return np.empty(0, np.int64)
        first, width = _HEAD.unpack_from(self._packed)
        if width == _AS_BITS:
            bits = np.frombuffer(self._packed, np.uint8, self._packed[_HEAD.size], _HEAD.size + 1)
            distances = np.unpackbits(bits, bitorder="little").nonzero()[0]
        else:
            distances = np.frombuffer(self._packed, f"<u{width}", len(self), _HEAD.size)
        arrivals: npt.NDArray[np.int64] = distances.astype(np.int64) + first
        return arrivals

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        probabilities: npt.NDArray[np.float64] = np.frombuffer(self._shares(), _SHARE) / WHOLE
        return probabilities

    def by_arrival(self) -> Mapping[int, float]:
        """Return arrival to probability, ascending."""
        return _by_arrival(self._packed)

    def __len__(self) -> int:
        if not self._packed:
            return 0
        width = self._packed[_HEAD.size - 1]
        if width == _AS_BITS:
            return (len(self._packed) - _HEAD.size - 1 - self._packed[_HEAD.size]) // _SHARE.itemsize
        return (len(self._packed) - _HEAD.size) // (width + _SHARE.itemsize)

    def _shares(self) -> bytes:
        return self._packed[len(self._packed) - _SHARE.itemsize * len(self) :]

    def __eq__(self, other: object) -> bool:
        """Return True if both have the same candidates, of which older stores may hold a longer form."""
        if not isinstance(other, ThreadCandidates):
            return False
        return self._packed == other._packed or (
            self._shares() == other._shares() and np.array_equal(self.arrivals, other.arrivals)
        )

    def __hash__(self) -> int:
        return hash(self._shares())

    def __repr__(self) -> str:
        return (
            f"ThreadCandidates({', '.join(f'{arrival}: {share:.2f}' for arrival, share in self.by_arrival().items())})"
        )


@lru_cache(maxsize=16)
def _by_arrival(packed: bytes) -> Mapping[int, float]:
    """Read the candidates of a message once for its context, which asks for them several times."""
    candidates = ThreadCandidates(packed)
    return dict(zip(candidates.arrivals.tolist(), candidates.probabilities.tolist(), strict=True))


def in_parts(probabilities: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return probabilities in [0, 1] as the store has them, in whole parts of `WHOLE`."""
    parts: npt.NDArray[np.float64] = probabilities * WHOLE
    np.rint(parts, parts)
    return parts


def _packed(arrivals: npt.NDArray[np.int64], shares: npt.NDArray[np.floating]) -> bytes:
    if not len(arrivals):
        return b""
    first, distances = int(arrivals[0]), arrivals - arrivals[0]
    last = int(arrivals[-1]) - first
    width = _WIDTH_OF[last.bit_length()]
    head = _as_bits(first, distances, min(_MOST_BYTES, width * len(arrivals) - 2))
    head = head or _HEAD.pack(first, width) + distances.astype(f"<u{width}").tobytes()
    return head + shares.astype(_SHARE).tobytes()


def _as_bits(first: int, distances: npt.NDArray[np.int64], most: int) -> bytes:
    """Return the parts before the shares, with bits; b"" if there are more than `most` bytes of them, or if an arrival
    is there twice."""
    size = int(distances[-1]) // 8 + 1
    if size > most:
        return b""
    bits = np.zeros(8 * size, np.uint8)
    bits[distances] = 1
    if np.count_nonzero(bits) < len(distances):
        return b""
    return _HEAD.pack(first, _AS_BITS) + bytes((size,)) + np.packbits(bits, None, "little").tobytes()


NO_THREAD_CANDIDATES = ThreadCandidates()
