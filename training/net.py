"""A small feed-forward net with a listwise loss, trained by Adam: numpy, float32."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from training.scenes import Scenes

Floats = npt.NDArray[np.float32]
Arrays = dict[str, Floats]

BATCH = 128


def initial(pairs: int, own: int, hidden: int, inner: int, rng: np.random.Generator) -> Arrays:
    def drawn(rows: int, columns: int) -> Floats:
        return rng.normal(0, np.sqrt(2 / columns), (rows, columns)).astype(np.float32)

    zeros = {"first": hidden, "second": inner, "new_first": inner, "new_bias": 1}
    return {
        "pair": drawn(hidden, pairs),
        "own": drawn(hidden, own) * 0.5,
        "inner": drawn(inner, hidden),
        "out": drawn(1, inner)[0] * 0.5,
        "new_own": drawn(inner, own),
        "new_out": drawn(1, inner)[0] * 0.5,
        **{name: np.zeros(size, np.float32) for name, size in zeros.items()},
    }


def forward(net: Arrays, pairs: Floats, own: Floats, open_: npt.NDArray[np.bool_]) -> tuple[Floats, tuple[Floats, ...]]:
    """Log-odds (n, candidates + 1), the last column for something new; and what the way back needs."""
    n, c, f = pairs.shape
    one = (pairs.reshape(n * c, f) @ net["pair"].T).reshape(n, c, -1)
    one += (own @ net["own"].T + net["first"])[:, None]
    np.maximum(one, 0, out=one)
    flat = one.reshape(n * c, -1)
    two = flat @ net["inner"].T
    two += net["second"]
    np.maximum(two, 0, out=two)
    fresh = np.maximum(own @ net["new_own"].T + net["new_first"], 0)
    logits = np.empty((n, c + 1), np.float32)
    logits[:, :-1] = np.where(open_, (two @ net["out"]).reshape(n, c), -1e9)
    logits[:, -1] = fresh @ net["new_out"] + net["new_bias"][0]
    return logits, (flat, two, fresh)


def chances(logits: Floats) -> Floats:
    odds = np.exp(logits - logits.max(1, keepdims=True))
    odds /= odds.sum(1, keepdims=True)
    return odds


def loss_and_slopes(net: Arrays, pairs: Floats, own: Floats, open_: Floats, gold: Floats) -> tuple[float, Arrays]:
    """Mean of -log P(any gold answer), and its slopes."""
    n, c, f = pairs.shape
    logits, (flat, two, fresh) = forward(net, pairs, own, open_)
    odds = chances(logits)
    right = odds * gold
    total = right.sum(1, keepdims=True) + 1e-12
    back = (odds - right / total) / n
    up = back[:, :-1].reshape(-1)
    slopes = {"out": up @ two}
    d_two = (up[:, None] * net["out"]) * (two > 0)
    slopes["inner"], slopes["second"] = d_two.T @ flat, d_two.sum(0)
    d_one = (d_two @ net["inner"]) * (flat > 0)
    slopes["pair"] = d_one.T @ pairs.reshape(n * c, f)
    d_row = d_one.reshape(n, c, -1).sum(1)
    slopes["own"], slopes["first"] = d_row.T @ own, d_row.sum(0)
    new = back[:, -1]
    d_new = new[:, None] * net["new_out"] * (fresh > 0)
    slopes |= {"new_out": new @ fresh, "new_bias": new.sum(keepdims=True)}
    slopes |= {"new_own": d_new.T @ own, "new_first": d_new.sum(0)}
    return float(-np.log(total).mean()), slopes


class Adam:
    def __init__(self, net: Arrays, decay: float) -> None:
        self.net, self.decay, self.steps = net, decay, 0
        self.mean = {name: np.zeros_like(value) for name, value in net.items()}
        self.square = {name: np.zeros_like(value) for name, value in net.items()}

    def step(self, slopes: Arrays, rate: float) -> None:
        self.steps += 1
        size = rate * np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        for name, slope in slopes.items():
            mean, square = self.mean[name], self.square[name]
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope * slope - square)
            if self.net[name].ndim == 2:
                self.net[name] *= 1 - rate * self.decay
            self.net[name] -= (size * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
