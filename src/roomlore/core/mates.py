"""The earlier messages likely to share a thread with one message, and their compact form in the store."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ROW = np.dtype([("arrival", "<i8"), ("share", "<u2")])
_FULL = 65535


@dataclass(frozen=True, slots=True, eq=False)
class Mates:
    """Arrivals (int64, ascending) and, for each, P(same thread) in [0, 1] (float64, a multiple of 1/65535).

    Probabilities are rounded to what the store keeps when the value is made, so a room read back from the store goes on
    exactly as one that never left memory.
    """

    arrivals: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float64]

    @classmethod
    def none(cls) -> "Mates":
        return cls(np.empty(0, np.int64), np.empty(0, np.float64))

    @classmethod
    def of(cls, arrivals: npt.ArrayLike, probabilities: npt.ArrayLike) -> "Mates":
        """Sorts by arrival, clips to [0, 1] and rounds to the stored precision."""
        where = np.asarray(arrivals, np.int64)
        shares = np.rint(np.clip(np.asarray(probabilities, np.float64), 0.0, 1.0) * _FULL) / _FULL
        order = np.argsort(where, kind="stable")
        return cls(where[order], shares[order])

    def __len__(self) -> int:
        return len(self.arrivals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mates) and self.pack() == other.pack()

    def __hash__(self) -> int:
        return hash(self.pack())

    def pack(self) -> bytes:
        """Ten bytes a mate: little-endian int64 arrival, uint16 share of 65535."""
        rows = np.empty(len(self.arrivals), _ROW)
        rows["arrival"] = self.arrivals
        rows["share"] = np.rint(self.probabilities * _FULL)
        return rows.tobytes()

    @classmethod
    def unpack(cls, data: bytes) -> "Mates":
        rows = np.frombuffer(data, _ROW)
        return cls(rows["arrival"].astype(np.int64), rows["share"] / _FULL)
