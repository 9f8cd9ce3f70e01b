"""The earlier messages likely to share a thread with one message, and their compact form in the store."""

import struct

import numpy as np
import numpy.typing as npt

_HEAD = struct.Struct("<qB")
_SHARE = np.dtype("<u2")
_WIDTHS = tuple((np.iinfo(f"<u{width}").max, width) for width in (1, 2, 4, 8))
_WHOLE = 65535.0
_FULL = np.array(_WHOLE)


class ThreadCandidates:
    """Arrivals (int64, ascending) and, for each, P(same thread) in [0, 1] (float64, a multiple of 1/65535).

    The value is the stored form; the arrays are decoded each time they are asked for, since they take four times the
    memory. So a room read from the store behaves exactly like one kept in memory. The form is empty for no candidate,
    else: the first arrival (int64), the bytes of a distance from it (1, 2, 4 or 8), each distance, each share of 65535
    (uint16); all little-endian. That is mostly three bytes a candidate.
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
        shares = probabilities * _FULL
        return cls(_packed(arrivals, np.rint(shares, shares)))

    def pack(self) -> bytes:
        """Return the stored form."""
        return self._packed

    @property
    def arrivals(self) -> npt.NDArray[np.int64]:
        if not self._packed:
            return np.empty(0, np.int64)
        first, width = _HEAD.unpack_from(self._packed)
        distances = np.frombuffer(self._packed, f"<u{width}", len(self), _HEAD.size)
        arrivals: npt.NDArray[np.int64] = distances.astype(np.int64) + first
        return arrivals

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        shares = np.frombuffer(self._packed, _SHARE, offset=len(self._packed) - _SHARE.itemsize * len(self))
        probabilities: npt.NDArray[np.float64] = shares / _FULL
        return probabilities

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
