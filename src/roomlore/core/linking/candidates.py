"""The earlier messages likely to share a thread with one message, and their compact form in the store."""

import struct
from functools import cached_property

import numpy as np
import numpy.typing as npt

_HEAD = struct.Struct("<qB")
_SHARE = np.dtype("<u2")
_WIDTHS = tuple((np.iinfo(f"<u{width}").max, width) for width in (1, 2, 4, 8))
_WHOLE = 65535.0
_FULL = np.array(_WHOLE)


class ThreadCandidates:
    """Arrivals (int64, ascending) and, for each, P(same thread) in [0, 1] (float64, a multiple of 1/65535).

    The value is the stored form; the arrays are decoded on first use. So a room read from the store behaves exactly
    like one kept in memory, and unused ones cost nothing. The form is empty for no candidate, else: the first arrival
    (int64), the bytes of a distance from it (1, 2, 4 or 8), each distance, each share of 65535 (uint16); all
    little-endian. That is mostly three bytes a candidate.
    """

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
        """Build from arrivals already in order and probabilities in [0, 1]; the given arrivals are kept."""
        shares = probabilities * _FULL
        np.rint(shares, shares)
        thread_candidates = cls(_packed(arrivals, shares))
        thread_candidates.arrivals, thread_candidates.probabilities = arrivals, np.divide(shares, _FULL, shares)
        return thread_candidates

    def pack(self) -> bytes:
        """Return the stored form."""
        return self._packed

    @cached_property
    def arrivals(self) -> npt.NDArray[np.int64]:
        if not self._packed:
            return np.empty(0, np.int64)
        first, width = _HEAD.unpack_from(self._packed)
        distances = np.frombuffer(self._packed, f"<u{width}", len(self), _HEAD.size)
        arrivals: npt.NDArray[np.int64] = distances.astype(np.int64) + first
        return arrivals

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float64]:
        probabilities: npt.NDArray[np.float64] = self._shares / _FULL
        return probabilities

    @property
    def _shares(self) -> npt.NDArray[np.uint16]:
        return np.frombuffer(self._packed[len(self._packed) - _SHARE.itemsize * len(self) :], _SHARE)

    def by_arrival(self) -> dict[int, float]:
        """Return arrival to probability, ascending."""
        return dict(zip(self.arrivals.tolist(), self.probabilities.tolist(), strict=True))

    def __len__(self) -> int:
        if not self._packed:
            return 0
        return (len(self._packed) - _HEAD.size) // (self._packed[_HEAD.size - 1] + _SHARE.itemsize)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ThreadCandidates) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)

    def __repr__(self) -> str:
        return (
            f"ThreadCandidates({', '.join(f'{arrival}: {share:.2f}' for arrival, share in self.by_arrival().items())})"
        )


def _packed(arrivals: npt.NDArray[np.int64], shares: npt.NDArray[np.floating]) -> bytes:
    if not len(arrivals):
        return b""
    first, last = int(arrivals[0]), int(arrivals[-1])
    width = next(width for most, width in _WIDTHS if last - first <= most)
    return (
        _HEAD.pack(first, width) + (arrivals - first).astype(f"<u{width}").tobytes() + shares.astype(_SHARE).tobytes()
    )


NO_THREAD_CANDIDATES = ThreadCandidates()
