"""Calibration of the link model by a room's own platform replies.

A platform reply tells for certain what the model otherwise guesses. So the model is asked as if it had not been told,
and the squared error of what it states, P(same thread) for each candidate, is added up at several temperatures. The
temperature with the least error is the room's. What a person says that a message answers counts as a reply does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

TEMPERATURES = tuple(0.5 * 2.0 ** (step / 2) for step in range(6))
"""Half an octave apart, from 0.5 to 2.83."""
UNIT = 1 << 16
"""Errors are counted in parts of this, as whole numbers: their sum is the same in any order."""
ALWAYS = 200
SELDOM = 8
PRIOR = 20
"""So many replies that speak for temperature 1."""

Chances = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The errors of the model on the platform replies of a room.

    `replies`: platform replies whose target was known when they came; `asked`: of how many the model was asked;
    `errors`: its squared error at each of `TEMPERATURES`, in parts of `UNIT`.
    """

    replies: int = 0
    asked: int = 0
    errors: tuple[int, ...] = (0,) * len(TEMPERATURES)

    @property
    def due(self) -> bool:
        """Tell whether the model is asked of the next reply: of the first `ALWAYS`, then of one in `SELDOM`."""
        return self.replies < ALWAYS or self.replies % SELDOM == 0

    def passed(self) -> "Calibration":
        """Count a reply of which the model was not asked."""
        return Calibration(self.replies + 1, self.asked, self.errors)

    def heard(self, errors: npt.ArrayLike) -> "Calibration":
        """Count a reply with the squared error at each temperature."""
        return self.with_errors(in_units(errors))

    def with_errors(self, errors: Sequence[int]) -> "Calibration":
        """Count a reply with errors in parts of `UNIT`."""
        added = tuple(old + new for old, new in zip(self.errors, errors, strict=True))
        return Calibration(self.replies + 1, self.asked + 1, added)

    def unheard(self, errors: Sequence[int]) -> "Calibration":
        """Take back what `with_errors` added."""
        left = tuple(max(0, old - gone) for old, gone in zip(self.errors, errors, strict=True))
        return Calibration(max(0, self.replies - 1), max(0, self.asked - 1), left)

    def temperature(self) -> float:
        """Return what the logits of candidates are divided by, within `TEMPERATURES`; 1 without replies."""
        if not self.asked:
            return 1.0
        octaves = _lowest(self.errors) / 2 - 1
        return float(2.0 ** (octaves * self.asked / (self.asked + PRIOR)))


UNCALIBRATED = Calibration()


def in_units(errors: npt.ArrayLike) -> tuple[int, ...]:
    """Return squared errors in parts of `UNIT`."""
    return tuple(np.rint(np.asarray(errors, np.float64) * UNIT).astype(np.int64).tolist())


def _lowest(errors: tuple[int, ...]) -> float:
    """Return the place with the least error, between the places where a parabola through three of them has it."""
    place = errors.index(min(errors))
    if not 0 < place < len(errors) - 1:
        return float(place)
    before, here, after = errors[place - 1 : place + 2]
    bend = before - 2 * here + after
    return place + 0.5 * (before - after) / bend if bend else float(place)


def tempered(chances: Chances, temperature: float) -> Chances:
    """Return the chances evened out (temperature above 1) or sharpened (below 1), in the same order and with the same
    sum: as if their logits were divided by it. The chance of something new, which replies say nothing of, is not among
    them and stays as it is."""
    most = chances.max(initial=0.0)
    if temperature == 1.0 or not most > 0.0:
        return chances
    drawn = (chances / most) ** (1.0 / temperature)
    result: Chances = drawn * (chances.sum() / drawn.sum())
    return result


def errors_of(chances: Chances, kin: npt.NDArray[np.floating], truth: npt.NDArray[np.floating]) -> Chances:
    """Return the squared error at each of `TEMPERATURES`.

    `chances`: of the candidates, together 1. `kin`: P(same thread) of any two candidates. `truth`: P(same thread) of
    each with what the message really answers.
    """
    asked = np.array([tempered(chances, temperature) for temperature in TEMPERATURES])
    wrong: Chances = asked @ kin - truth
    errors: Chances = np.add.reduce(wrong * wrong, axis=1)
    return errors


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
