"""Trains the link model and writes it as one file.

usage: python -m training.train_links DATA_DIR OUT_FILE [--jobs 2]

DATA_DIR holds `*.messages.jsonl` and `*.gold.jsonl` of the training rooms. Every tenth room is held out for the report.
"""

import argparse
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from roomlore.core.linking import LinkModel
from training.net import Arrays, fit, report
from training.rooms import LabelledRoom, load_room, quiet, with_seconds, without_names
from training.scenes import Scenes, gather, join

HELD_OUT = 10


class Round(NamedTuple):
    """One round: links come from the net of the round before it. `every`: which share of the rooms it learns from."""

    every: int
    hidden: int
    inner: int
    epochs: int
    dropout: float


ROUNDS = (
    Round(4, 48, 24, 4, 0.0),
    Round(2, 64, 32, 4, 0.0),
    Round(1, 64, 32, 4, 0.1),
    Round(1, 64, 32, 9, 0.15),
)


class Learned(NamedTuple):
    """What one room gives: as it is and made quiet."""

    busy: Scenes
    quiet: Scenes


def variants(room: LabelledRoom, held_out: bool, rng: np.random.Generator) -> tuple[LabelledRoom, LabelledRoom]:
    busy = room if rng.random() < 0.5 else with_seconds(room, rng)
    if not held_out and rng.random() < 0.25:
        busy = without_names(busy, float(rng.choice([0.3, 0.7])), rng)
    return busy, without_names(quiet(room, rng), float(rng.choice([0.0, 0.3, 0.7, 1.0])), rng)


def learn_from(task: tuple[int, Path], net: Arrays | None) -> Learned:
    place, path = task
    rng = np.random.default_rng(place)
    model = LinkModel.of(net) if net else None
    busy, calm = variants(load_room(path), place % HELD_OUT == 0, rng)
    return Learned(gather(busy, model, rng), gather(calm, model, rng))


def one_round(number: int, paths: list[Path], net: Arrays | None, jobs: int) -> Arrays:
    plan = ROUNDS[number]
    tasks = [task for task in enumerate(paths) if task[0] % HELD_OUT == 0 or task[0] % plan.every == 0]
    with Pool(jobs) as pool:
        learned = pool.map(partial(learn_from, net=net), tasks, chunksize=1)
    held = [part for (place, _), part in zip(tasks, learned, strict=True) if place % HELD_OUT == 0]
    rest = [part for (place, _), part in zip(tasks, learned, strict=True) if place % HELD_OUT != 0]
    busy, calm = join([part.busy for part in held]), join([part.quiet for part in held])

    def tell(epoch: int, so_far: Arrays) -> None:
        print(f"round {number + 1}, epoch {epoch + 1}: held out", end="")
        for name, scenes in (("busy", busy), ("quiet", calm)):
            print("  {} loss {:.4f}, right {:.2%}".format(name, *report(so_far, scenes)), end="")
        print(flush=True)

    scenes = join([scenes for part in rest for scenes in part])
    return fit(
        scenes, hidden=plan.hidden, inner=plan.inner, epochs=plan.epochs, dropout=plan.dropout, seed=number, tell=tell
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    paths = sorted(options.data.glob("*.messages.jsonl"))
    net: Arrays | None = None
    for number in range(len(ROUNDS)):
        net = one_round(number, paths, net, options.jobs)
    assert net is not None
    arrays: dict[str, Any] = dict(net)
    np.savez(options.out, **arrays)


if __name__ == "__main__":
    main()
