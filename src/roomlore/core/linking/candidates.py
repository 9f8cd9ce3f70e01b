"""The earlier messages likely to share a thread with one message, and their compact form in the store."""

import struct
from functools import cached_property

import numpy as np
import numpy.typing as npt

_ROW = np.dtype([("arrival", "<i8"), ("share", "<u2")])
_PAIR = struct.Struct("<qH")
_WHOLE = 65535.0
_FULL = np.array(_WHOLE)


class ThreadCandidates:
    """Arrivals (int64, ascending) and, for each, P(same thread) in [0, 1] (float64, a multiple of 1/65535).

    The value is the stored form, ten bytes a mate; the arrays are decoded on first use. So a room read from the store
    behaves exactly like one kept in memory, and unused ones cost nothing.
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
        rows = np.empty(len(arrivals), _ROW)
        rows["arrival"], rows["share"] = arrivals, shares
        thread_candidates = cls(rows.tobytes())
        thread_candidates.arrivals, thread_candidates.probabilities = arrivals, np.divide(shares, _FULL, shares)
        return thread_candidates

    def pack(self) -> bytes:
        """Return ten bytes a mate: little-endian int64 arrival, uint16 share of 65535."""
        return self._packed

    @cached_property
    def _rows(self) -> npt.NDArray[np.void]:
        return np.frombuffer(self._packed, _ROW)

    @cached_property
    def arrivals(self) -> npt.NDArray[np.int64]:
        return self._rows["arrival"].astype(np.int64)

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float64]:
        shares: npt.NDArray[np.float64] = self._rows["share"] / _FULL
        return shares

    def by_arrival(self) -> dict[int, float]:
        """Return arrival to probability, ascending. For a few dozen rows iteration is faster than an array."""
        return {arrival: share / _WHOLE for arrival, share in _PAIR.iter_unpack(self._packed)}

    def __len__(self) -> int:
        return len(self._packed) // _ROW.itemsize

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ThreadCandidates) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)

    def __repr__(self) -> str:
        return (
            f"ThreadCandidates({', '.join(f'{arrival}: {share:.2f}' for arrival, share in self.by_arrival().items())})"
        )


NO_THREAD_CANDIDATES = ThreadCandidates()
