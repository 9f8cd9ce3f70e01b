"""Calibrate the link model by a room's own platform replies.

A platform reply tells for certain what the model otherwise guesses. So the model is asked as if it had not been told,
and the error of what it states is added up for several values of each number of `Habits`: the squared error of
P(same thread) for the temperature, the log loss of the answered message for the others. The value with the least error
is the room's. What a person says that a message answers counts as a reply does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Habits(NamedTuple):
    """The ways of a room, as its replies show them.

    `temperature`: what the logits of candidates are divided by. The others weigh the candidates where one of them is
    stated as answered: `distance`, the power of the distance in messages; `own`, the factor of the sender's own newest
    messages; `own_aside`, that of the sender's own since which somebody else has spoken.
    """

    temperature: float = 1.0
    distance: float = 0.0
    own: float = 1.0
    own_aside: float = 0.5


class _Scale(NamedTuple):
    """The values at which errors are counted: `start` and so many steps of this width, as powers of two if `octaves`.
    `usual`: the place of the value that holds without replies."""

    places: slice
    start: float
    step: float
    usual: int
    octaves: bool = True

    def value(self, place: float) -> float:
        point = self.start + self.step * place
        return 2.0**point if self.octaves else point

    def values(self) -> tuple[float, ...]:
        return tuple(self.value(place) for place in range(self.places.stop - self.places.start))


_TEMPERATURE = _Scale(slice(0, 6), -1.0, 0.5, 2)
_DISTANCE = _Scale(slice(6, 13), -1.0, 0.25, 4, octaves=False)
_OWN = _Scale(slice(13, 19), -3.0, 1.0, 3)
_OWN_ASIDE = _Scale(slice(19, 25), -4.0, 1.0, 3)
_SCALES = (_TEMPERATURE, _DISTANCE, _OWN, _OWN_ASIDE)
COUNTED = _OWN_ASIDE.places.stop
"""The number of errors that are counted."""
TEMPERATURES = _TEMPERATURE.values()
"""Half an octave apart, from 0.5 to 2.83."""
UNIT = 1 << 16
"""Errors are counted in parts of this, as whole numbers: their sum is the same in any order."""
ALWAYS = 200
SELDOM = 8
PRIOR = 20
"""So many replies that speak for the usual values."""
_MOST_LOSS = 8.0
_HARDLY = 1e-300

Chances = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The errors of the model on the platform replies of a room.

    `replies`: platform replies whose target was known when they came; `asked`: of how many the model was asked;
    `errors`: its `COUNTED` errors, in parts of `UNIT`.
    """

    replies: int = 0
    asked: int = 0
    errors: tuple[int, ...] = (0,) * COUNTED

    @property
    def due(self) -> bool:
        """Tell whether the model is asked of the next reply: of the first `ALWAYS`, then of one in `SELDOM`."""
        return self.replies < ALWAYS or self.replies % SELDOM == 0

    def passed(self) -> "Calibration":
        """Count a reply of which the model was not asked."""
        return Calibration(self.replies + 1, self.asked, self.errors)

    def heard(self, errors: npt.ArrayLike) -> "Calibration":
        """Count a reply with the errors of `errors_of`."""
        return self.with_errors(in_units(errors))

    def with_errors(self, errors: Sequence[int]) -> "Calibration":
        """Count a reply with errors in parts of `UNIT`."""
        added = tuple(old + new for old, new in zip(self.errors, errors, strict=True))
        return Calibration(self.replies + 1, self.asked + 1, added)

    def unheard(self, errors: Sequence[int]) -> "Calibration":
        """Take back what `with_errors` added."""
        left = tuple(max(0, old - gone) for old, gone in zip(self.errors, errors, strict=True))
        return Calibration(max(0, self.replies - 1), max(0, self.asked - 1), left)

    def habits(self) -> Habits:
        """Return the ways of the room, between the usual ones and those with the least error."""
        return Habits(*(self._fitting(scale) for scale in _SCALES)) if self.asked else USUAL

    def _fitting(self, scale: _Scale) -> float:
        moved = _lowest(self.errors[scale.places], scale.usual) - scale.usual
        return scale.value(scale.usual + moved * self.asked / (self.asked + PRIOR))


USUAL = Habits()
UNCALIBRATED = Calibration()


def in_units(errors: npt.ArrayLike) -> tuple[int, ...]:
    """Return errors in parts of `UNIT`."""
    return tuple(np.rint(np.asarray(errors, np.float64) * UNIT).astype(np.int64).tolist())


def _lowest(errors: tuple[int, ...], usual: int) -> float:
    """Return the place with the least error, the one nearest to `usual` among equals, between the places where a
    parabola through three of them has it."""
    place = min(range(len(errors)), key=lambda here: (errors[here], abs(here - usual)))
    if not 0 < place < len(errors) - 1:
        return float(place)
    before, here, after = errors[place - 1 : place + 2]
    bend = before - 2 * here + after
    return place + 0.5 * (before - after) / bend if bend else float(place)


def tempered(chances: Chances, temperature: float) -> Chances:
    """Return the chances evened out (temperature above 1) or sharpened (below 1), in the same order and with the same
    sum: as if their logits were divided by it. The chance of something new, which replies say nothing of, is not among
    them and stays as it is."""
    if temperature == 1.0:
        return chances
    most = chances.max(initial=0.0)
    if not most > 0.0:
        return chances
    drawn = (chances / most) ** (1.0 / temperature)
    result: Chances = drawn * (chances.sum() / drawn.sum())
    return result


def weighted(chances: Chances, away: Floats, own: Floats, aside: Floats, habits: Habits) -> Chances:
    """Return the candidates' weights where one of them is stated as answered.

    `away`: the logs of their distances in messages. `own`, `aside`: 1 for the sender's own messages, and for those of
    them since which somebody else has spoken, else 0.
    """
    factors = (own - aside) * math.log(habits.own) + aside * math.log(habits.own_aside) + away * habits.distance
    weights: Chances = chances * np.exp(factors)
    return weights


def errors_of(chances: Chances, kin: Floats, truth: Floats) -> Chances:
    """Return the squared error at each of `TEMPERATURES`.

    `chances`: of the candidates, together 1. `kin`: P(same thread) of any two candidates. `truth`: P(same thread) of
    each with what the message really answers.
    """
    tempered_chances = np.array([tempered(chances, temperature) for temperature in TEMPERATURES])
    wrong: Chances = tempered_chances @ kin - truth
    errors: Chances = np.add.reduce(wrong * wrong, axis=1)
    return errors


def losses_of(chances: Chances, away: Floats, own: Floats, aside: Floats, answered: int) -> Chances:
    """Return the log loss of the candidate that is answered, at each value of the scales beside `TEMPERATURES`, with
    the usual values of the others. The arguments are those of `weighted`."""
    logs = np.log(np.maximum(chances, _HARDLY))
    usual = logs + aside * math.log(USUAL.own_aside)
    rows = np.concatenate(
        (
            usual + np.outer(_DISTANCE.values(), away),
            usual + np.outer(np.log(_OWN.values()), own - aside),
            logs + np.outer(np.log(_OWN_ASIDE.values()), aside),
        )
    )
    rows -= rows[:, answered, None]
    losses: Chances = np.minimum(np.log(np.add.reduce(np.exp(np.minimum(rows, 700.0)), axis=1)), _MOST_LOSS)
    return losses


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """The origin of a room's links. Models are named by `linking.version_of`.

    `by`: the model that made all of them; '' if unknown or if there were several. `walk`: the model that relinks the
    room, message by message from the first one; '' if none does. `walked`: the arrival up to which it has come.
    `calibration`: the calibration from the room's replies of the model `by` or else `walk`.
    """

    by: str = ""
    walk: str = ""
    walked: int = 0
    calibration: Calibration = UNCALIBRATED

    def calibrated(self, model: str) -> Calibration:
        """Return this model's calibration from the room's replies."""
        return self.calibration if model == (self.by or self.walk) else UNCALIBRATED

    def whole(self, model: str, *, newest: int) -> bool:
        """Return True if this model made the links of all messages up to the arrival `newest`."""
        return not newest or self.by == model

    def grown(self, model: str, *, newest: int, calibration: Calibration) -> "Linked":
        """Return the state after messages that this model linked were added to those up to the arrival `newest`.

        If another model made the links before, that one has to continue, or this one must begin anew.
        """
        if self.whole(model, newest=newest):
            return Linked(by=model, calibration=calibration)
        if self.by:
            return Linked(walk=self.by, walked=newest, calibration=self.calibration)
        return self

    def has_linked(self, arrival: int, model: str) -> bool:
        """Return True if this model made the link of the message with this arrival."""
        return bool(model) and model == (self.by or self.walk) and (bool(self.by) or arrival <= self.walked)

    def adopts(self, arrival: int) -> bool:
        """Return True if a reply with this arrival may be linked to a target that arrives only now.

        A reply behind the position of a walk waits for the walk, which reaches that target too: so each message is
        linked with the messages present when it arrived.
        """
        return not self.walk or arrival > self.walked

    def begun(self, model: str) -> "Linked":
        """Return the state in which this model relinks the room; unchanged if it does so already."""
        return self if self.walk == model and not self.by else Linked(walk=model)

    def moved(self, arrival: int, calibration: Calibration) -> "Linked":
        """Return the state after the walk reached this arrival."""
        return replace(self, walked=arrival, calibration=calibration)

    def done(self) -> "Linked":
        """Return the state after the walk reached the last message."""
        return Linked(by=self.walk, calibration=self.calibration)


UNLINKED = Linked()
