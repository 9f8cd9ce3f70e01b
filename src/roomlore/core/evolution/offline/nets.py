"""The trained numbers by which rules judge, made by `python -m training.train_rules`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Net:
    """A net with one hidden layer of tanh beside a direct sum. `hidden`: (units, signs + 1), the bias of each last;
    `out`: (units,); `direct`: (signs,)."""

    hidden: Floats
    out: Floats
    direct: Floats

    def scores(self, signs: ArrayLike) -> Floats:
        """Return the log-odds of what each row of signs stands for, rounded, so that equal signs give equal ones."""
        rows = np.atleast_2d(np.asarray(signs, np.float64))
        raised = np.tanh(rows @ self.hidden[:, :-1].T + self.hidden[:, -1]) @ self.out if self.out.size else 0.0
        scores: Floats = np.round(rows @ self.direct + raised, 9)
        return scores


@cache
def net(name: str) -> Net:
    """Return the net of a judgement."""
    parts: dict[str, Sequence[float]] = json.loads((files(__package__) / "nets.json").read_text("utf-8"))[name]
    return Net(**{part: np.array(numbers, np.float64) for part, numbers in parts.items()})
