"""A small feed-forward net with a listwise loss, trained by Adam: numpy, float32."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from training.scenes import NOT_THERE, Scenes

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Arrays = dict[str, Floats]
Lacking = dict[str, Flags]
"""Which columns of `pair`, `own` and `new_own` are new."""

BATCH = 256
WARM_UP = 200
DECAY = 1e-3
RATE = 2e-3
NEW_WARM_UP = 20
NEW_RATE = 1e-2


def initial(pairs: int, own: int, hidden: int, inner: int, rng: np.random.Generator) -> Arrays:
    def drawn(rows: int, columns: int, scale: float = 1.0) -> Floats:
        return rng.normal(0, scale * np.sqrt(2 / columns), (rows, columns)).astype(np.float32)

    zeros = {"first": hidden, "second": inner, "new_first": inner, "new_bias": 1}
    return {
        "pair": drawn(hidden, pairs),
        "own": drawn(hidden, own, 0.5),
        "inner": drawn(inner, hidden),
        "out": drawn(1, inner, 0.5)[0],
        "new_own": drawn(inner, own),
        "new_out": drawn(1, inner, 0.5)[0],
        **{name: np.zeros(size, np.float32) for name, size in zeros.items()},
    }


def forward(
    net: Arrays, pairs: Floats, own: Floats, offset: Floats, kept: Floats | float = 1.0
) -> tuple[Floats, Floats, Floats, Floats]:
    """P (n, k + 1), the last column for something new; the hidden layers after it. `kept` scales the first layer."""
    n, k, features = pairs.shape
    one: Floats = (pairs.reshape(n * k, features) @ net["pair"].T).reshape(n, k, -1)
    one += (own @ net["own"].T + net["first"])[:, None]
    np.maximum(one, 0, out=one)
    one *= kept
    two: Floats = one.reshape(n * k, -1) @ net["inner"].T
    two += net["second"]
    np.maximum(two, 0, out=two)
    new = np.maximum(own @ net["new_own"].T + net["new_first"], 0)
    logits = np.empty((n, k + 1), np.float32)
    logits[:, :-1] = (two @ net["out"]).reshape(n, k) + offset
    logits[:, -1] = new @ net["new_out"] + net["new_bias"][0]
    odds: Floats = np.exp(logits - logits.max(1, keepdims=True))
    odds /= odds.sum(1, keepdims=True)
    return odds, one, two, new


def slopes_of(net: Arrays, pairs: Floats, own: Floats, offset: Floats, gold: Floats, kept: Floats) -> Arrays:
    """The slopes of the mean of -log P(any right answer)."""
    n, k, features = pairs.shape
    chances, one, two, new = forward(net, pairs, own, offset, kept)
    right = chances * gold
    back = (chances - right / (right.sum(1, keepdims=True) + 1e-12)) / n
    flat, score, fresh = one.reshape(n * k, -1), back[:, :-1].reshape(-1), back[:, -1]
    d_two = (score[:, None] * net["out"]) * (two > 0)
    d_one = ((d_two @ net["inner"]).reshape(n, k, -1) * kept) * (one > 0)
    d_row = d_one.sum(1)
    d_new = fresh[:, None] * net["new_out"] * (new > 0)
    return {
        "pair": d_one.reshape(n * k, -1).T @ pairs.reshape(n * k, features),
        "own": d_row.T @ own,
        "first": d_row.sum(0),
        "inner": d_two.T @ flat,
        "second": d_two.sum(0),
        "out": score @ two,
        "new_own": d_new.T @ own,
        "new_first": d_new.sum(0),
        "new_out": fresh @ new,
        "new_bias": fresh.sum(keepdims=True),
    }


class Adam:
    def __init__(self, net: Arrays) -> None:
        self.net, self.steps = net, 0
        self.mean = {name: np.zeros_like(value) for name, value in net.items()}
        self.square = {name: np.zeros_like(value) for name, value in net.items()}

    def step(self, slopes: Arrays, rate: float) -> None:
        self.steps += 1
        size = rate * np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        for name, slope in slopes.items():
            mean, square, value = self.mean[name], self.square[name], self.net[name]
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope * slope - square)
            if value.ndim == 2:
                value *= 1 - rate * DECAY
            value -= (size * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)


class Scale:
    """Brings features to mean 0 and spread 1; those that never vary are left out."""

    def __init__(self, scenes: Scenes, rng: np.random.Generator) -> None:
        some = np.sort(rng.permutation(len(scenes))[:3000])
        pairs = scenes.pairs[some][scenes.offset[some] > NOT_THERE / 2].astype(np.float64)
        self.pair_mean, self.pair_spread = pairs.mean(0).astype(np.float32), _spread(pairs)
        self.own_mean, self.own_spread = scenes.own.mean(0), _spread(scenes.own.astype(np.float64))

    def pairs(self, pairs: npt.NDArray[np.float16]) -> Floats:
        scaled = pairs.astype(np.float32)
        scaled -= self.pair_mean
        scaled /= self.pair_spread
        return scaled

    def own(self, own: Floats) -> Floats:
        scaled: Floats = (own - self.own_mean) / self.own_spread
        return scaled

    def folded(self, net: Arrays) -> Arrays:
        """The net that takes features as they are."""
        net = {name: value.copy() for name, value in net.items()}
        net["pair"] /= self.pair_spread
        net["own"] /= self.own_spread
        net["new_own"] /= self.own_spread
        net["first"] -= net["pair"] @ self.pair_mean + net["own"] @ self.own_mean
        net["new_first"] -= net["new_own"] @ self.own_mean
        return net


def _spread(values: npt.NDArray[np.float64]) -> Floats:
    spread = values.std(0)
    return np.where(spread < 5e-3, 1e6, spread + 1e-3).astype(np.float32)


def fit(
    scenes: Scenes,
    *,
    hidden: int,
    inner: int,
    epochs: int,
    dropout: float,
    seed: int,
    tell: Callable[[int, Arrays], None],
) -> Arrays:
    """Trains a net; `tell(epoch, net)` is called after each epoch with the net so far."""
    rng = np.random.default_rng(seed)
    scale = Scale(scenes, rng)
    net = initial(scenes.pairs.shape[2], scenes.own.shape[1], hidden, inner, rng)
    adam, steps = Adam(net), epochs * (len(scenes) // BATCH)
    for epoch in range(epochs):
        order = rng.permutation(len(scenes))
        for start in range(0, len(scenes) - BATCH + 1, BATCH):
            some = np.sort(order[start : start + BATCH])
            kept = (rng.random((BATCH, 1, hidden), np.float32) >= dropout).astype(np.float32)
            kept /= np.float32(1 - dropout)
            pairs, own = scale.pairs(scenes.pairs[some]), scale.own(scenes.own[some])
            slopes = slopes_of(net, pairs, own, scenes.offset[some], scenes.gold[some], kept)
            part = 0.02 + 0.49 * (1 + np.cos(np.pi * adam.steps / steps))
            adam.step(slopes, RATE * min(1.0, (adam.steps + 1) / WARM_UP) * part)
        tell(epoch, scale.folded(net))
    return scale.folded(net)


def widen(net: Arrays, lacking: Lacking) -> Arrays:
    """Return a net that sees these features too, and makes nothing of them yet, whatever it made of them before."""

    def with_columns(weights: Floats, new: Flags) -> Floats:
        wide = np.zeros((len(weights), len(new)), np.float32)
        wide[:, ~new] = weights[:, ~new] if weights.shape[1] == len(new) else weights
        return wide

    return {name: with_columns(weights, lacking[name]) if name in lacking else weights for name, weights in net.items()}


def extend(
    net: Arrays, scenes: Scenes, lacking: Lacking, *, epochs: int, seed: int, tell: Callable[[int, Arrays], None]
) -> Arrays:
    """Trains what a net makes of the features that it lacked, and nothing else: where these are 0 its answers stay."""
    rng = np.random.default_rng(seed)
    scale = Scale(scenes, rng)
    spreads = {"pair": scale.pair_spread, "own": scale.own_spread, "new_own": scale.own_spread}
    net = {name: value.copy() for name, value in net.items()}
    learned = {name: net[name][:, new] * spreads[name][new] for name, new in lacking.items()}
    adam, steps = Adam(learned), epochs * (len(scenes) // BATCH)
    kept = np.ones((BATCH, 1, len(net["first"])), np.float32)
    for epoch in range(epochs):
        order = rng.permutation(len(scenes))
        for start in range(0, len(scenes) - BATCH + 1, BATCH):
            some = np.sort(order[start : start + BATCH])
            pairs = scenes.pairs[some].astype(np.float32)
            slopes = slopes_of(net, pairs, scenes.own[some], scenes.offset[some], scenes.gold[some], kept)
            part = 0.02 + 0.49 * (1 + np.cos(np.pi * adam.steps / steps))
            found = {name: slopes[name][:, new] / spreads[name][new] for name, new in lacking.items()}
            adam.step(found, NEW_RATE * min(1.0, (adam.steps + 1) / NEW_WARM_UP) * part)
            for name, new in lacking.items():
                net[name][:, new] = learned[name] / spreads[name][new]
        tell(epoch, net)
    return net


def report(net: Arrays, scenes: Scenes) -> tuple[float, float]:
    """Mean of -log P(right), and the share of messages whose likeliest answer is right."""
    lost, right = 0.0, 0
    for start in range(0, len(scenes), BATCH):
        part = slice(start, start + BATCH)
        gold = scenes.gold[part]
        chances, *_ = forward(net, scenes.pairs[part].astype(np.float32), scenes.own[part], scenes.offset[part])
        lost -= float(np.log((chances * gold).sum(1) + 1e-12).sum())
        right += int((gold[np.arange(len(gold)), chances.argmax(1)] > 0).sum())
    return lost / len(scenes), right / len(scenes)
