"""Trains the link model and writes it as one file.

usage: python -m training.train_links DATA_DIR OUT_FILE [--jobs 2]

DATA_DIR holds `*.messages.jsonl` and `*.gold.jsonl` of the training rooms. Every tenth room is held out for the report.
The last rounds train what the net makes of the features of scripts, and nothing else, on rooms of two languages.
"""

import argparse
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from roomlore.core.linking.features import PAIR, SELF
from roomlore.core.linking.model import LinkModel
from training.net import Arrays, Flags, Lacking, extend, fit, report, widen
from training.rooms import LabelledRoom, begun_anew, load_room, quiet, team, with_agent, with_seconds, without_names
from training.scenes import Scenes, gather, join
from training.second_script import bilingual

HELD_OUT = 10


class Round(NamedTuple):
    """One round: links come from the net of the round before it. `every`: which share of the rooms it learns from."""

    every: int
    hidden: int
    inner: int
    epochs: int
    dropout: float


ROUNDS = (
    Round(5, 48, 24, 4, 0.0),
    Round(2, 64, 32, 4, 0.0),
    Round(1, 80, 40, 9, 0.15),
)
SCRIPTS = ("foreign", "kin_foreign", "habit_foreign")
"""The prefix of the names of script features: all are 0 in a room of one script."""
SCRIPT_ROUNDS = (Round(2, 80, 40, 6, 0.0), Round(2, 80, 40, 8, 0.0))
QUICK = (Round(8, 48, 24, 3, 0.0), Round(4, 64, 32, 3, 0.0), Round(1, 80, 40, 6, 0.12))
"""To try an idea in two minutes."""


def variants(room: LabelledRoom, held_out: bool, rng: np.random.Generator) -> dict[str, LabelledRoom]:
    """Return the room as it is, and its conversations told anew in rooms of other kinds."""
    busy = room if rng.random() < 0.5 else with_seconds(room, rng)
    if not held_out and rng.random() < 0.25:
        busy = without_names(busy, float(rng.choice([0.3, 0.7])), rng)
    return {
        "busy": busy,
        "quiet": without_names(quiet(room, rng), float(rng.choice([0.0, 0.3, 0.7, 1.0])), rng),
        "team": team(room, rng),
        "agent": with_agent(room, rng),
        "team again": team(room, rng),
        "agent again": with_agent(room, rng),
        "agent once more": with_agent(room, rng),
    }


def _bilingual(room: LabelledRoom, rng: np.random.Generator) -> dict[str, list[LabelledRoom]]:
    """Return the room told anew in a room of two scripts, and in many that are as young as a few messages."""
    first, second = rng.permutation([0, 0, 1, 2])[:2]
    kinds = (team, quiet, with_agent)
    whole, cut = (bilingual(kinds[kind](room, rng), rng) for kind in (first, second))
    return {"long": [whole] if whole.messages else [], "young": begun_anew(cut, rng)}


class Ablation(NamedTuple):
    """Kinds of rooms, and features by the beginnings of their names, that a net does without: what are they worth?"""

    kinds: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    def blinded(self, scenes: Scenes) -> Scenes:
        if self.features:
            scenes.pairs[:, :, [name.startswith(self.features) for name in PAIR]] = 0
            scenes.own[:, [name.startswith(self.features) for name in SELF]] = 0
        return scenes


def learn_from(task: tuple[int, Path], net: Arrays | None, ablation: Ablation, scripts: bool) -> dict[str, Scenes]:
    place, path = task
    rng = np.random.default_rng(place)
    model = LinkModel.of(net) if net else None
    room = load_room(path)
    if scripts:
        return {kind: join([gather(r, model, rng) for r in rooms]) for kind, rooms in _bilingual(room, rng).items()}
    told = variants(room, place % HELD_OUT == 0, rng)
    rooms = {kind: room for kind, room in told.items() if room.messages and not kind.startswith(ablation.kinds or "-")}
    return {kind: ablation.blinded(gather(room, model, rng)) for kind, room in rooms.items()}


def one_round(
    plan: Round,
    number: int,
    paths: list[Path],
    net: Arrays | None,
    jobs: int,
    ablation: Ablation,
    lacking: Lacking | None = None,
) -> Arrays:
    """Return the net of this round; of `lacking` features only, if some are given."""
    tasks = [task for task in enumerate(paths) if task[0] % HELD_OUT == 0 or task[0] % plan.every == 0]
    with Pool(jobs) as pool:
        learned = pool.map(
            partial(learn_from, net=net, ablation=ablation, scripts=lacking is not None), tasks, chunksize=1
        )
    held = [part for (place, _), part in zip(tasks, learned, strict=True) if place % HELD_OUT == 0]
    rest = [part for (place, _), part in zip(tasks, learned, strict=True) if place % HELD_OUT != 0]
    held_out = {kind: join([part[kind] for part in held if kind in part]) for kind in held[0]}

    def tell(epoch: int, so_far: Arrays) -> None:
        found = ((kind, *report(so_far, scenes)) for kind, scenes in held_out.items())
        figures = "  ".join(f"{kind} loss {loss:.4f}, right {right:.2%}" for kind, loss, right in found)
        print(f"round {number + 1}, epoch {epoch + 1}, held out: {figures}", flush=True)

    scenes = join([scenes for part in rest for scenes in part.values()])
    if net and lacking:
        return extend(net, scenes, lacking, epochs=plan.epochs, seed=number, tell=tell)
    return fit(
        scenes, hidden=plan.hidden, inner=plan.inner, epochs=plan.epochs, dropout=plan.dropout, seed=number, tell=tell
    )


def _of_scripts(features: tuple[str, ...]) -> Flags:
    return np.array([name.startswith(SCRIPTS) for name in features])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--linked-by", type=Path, help="weights of the same features, to spare all but the last round")
    parser.add_argument("--onto", type=Path, help="weights to leave as they are but for the features of scripts")
    parser.add_argument("--quick", action="store_true", help="fewer rooms and rounds, to try an idea")
    parser.add_argument("--without", nargs="*", default=[], help="features, by the beginnings of their names")
    parser.add_argument("--without-rooms", nargs="*", default=[], help="kinds of rooms: quiet, team, agent")
    options = parser.parse_args()
    ablation = Ablation(tuple(options.without_rooms), tuple(options.without))
    paths = sorted(options.data.glob("*.messages.jsonl"))
    net = dict(np.load(options.linked_by)) if options.linked_by else None
    plans = [] if options.onto else list(enumerate(QUICK if options.quick else ROUNDS))
    for number, plan in plans[len(plans) - 1 if options.linked_by else 0 :]:
        net = one_round(plan, number, paths, net, options.jobs, ablation)
    lacking = {"pair": _of_scripts(PAIR), "own": _of_scripts(SELF), "new_own": _of_scripts(SELF)}
    net = widen(dict(np.load(options.onto)) if options.onto else net or {}, lacking)
    for number, plan in enumerate(SCRIPT_ROUNDS):
        net = one_round(plan, number, paths, net, options.jobs, ablation, lacking)
    arrays: dict[str, Any] = dict(net)
    np.savez(options.out, **arrays)


if __name__ == "__main__":
    main()
