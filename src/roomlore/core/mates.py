"""The earlier messages likely to share a thread with one message, and their compact form in the store."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

_ROW = np.dtype([("arrival", "<i8"), ("share", "<u2")])
_FULL = np.array(65535.0)


class Mates:
    """Arrivals (int64, ascending) and, for each, P(same thread) in [0, 1] (float64, a multiple of 1/65535).

    What the store keeps, ten bytes a mate, is the value itself; the arrays are read from it when asked for. So a room
    read back goes on exactly as one that never left memory, and mates that nobody looks at cost nothing.
    """

    def __init__(self, packed: bytes = b"") -> None:
        self._packed = packed

    @classmethod
    def of(cls, arrivals: npt.ArrayLike, probabilities: npt.ArrayLike) -> "Mates":
        """Sorts by arrival, clips to [0, 1] and rounds to the stored precision."""
        where = np.asarray(arrivals, np.int64)
        order = np.argsort(where, kind="stable")
        return cls.ascending(where[order], np.clip(np.asarray(probabilities, np.float64)[order], 0.0, 1.0))

    @classmethod
    def ascending(cls, arrivals: npt.NDArray[np.int64], probabilities: npt.NDArray[np.floating]) -> "Mates":
        """Of arrivals already in order and probabilities in [0, 1]; keeps the arrivals given."""
        shares = probabilities * _FULL
        np.rint(shares, shares)
        rows = np.empty(len(arrivals), _ROW)
        rows["arrival"], rows["share"] = arrivals, shares
        mates = cls(rows.tobytes())
        mates.arrivals, mates.probabilities = arrivals, np.divide(shares, _FULL, shares)
        return mates

    def pack(self) -> bytes:
        """Ten bytes a mate: little-endian int64 arrival, uint16 share of 65535."""
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
        """Return arrival to probability, ascending."""
        return dict(zip(self.arrivals.tolist(), self.probabilities.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self._packed) // _ROW.itemsize

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mates) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)

    def __repr__(self) -> str:
        pairs = zip(self.arrivals.tolist(), self.probabilities.tolist(), strict=True)
        return f"Mates({', '.join(f'{arrival}: {share:.2f}' for arrival, share in pairs)})"


NO_MATES = Mates()
