"""Which link model made the links of a room, and how far another one has come in making them anew."""

from dataclasses import dataclass, replace

from roomlore.core.calibration import UNCALIBRATED, Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """How the links of a room came to be. Models are named by `linking.version_of`.

    `by`: the model that made all of them; '' if that is not known, or if several did. `walk`: the model that makes them
    anew, message by message from the first one; '' if none does. `walked`: the arrival up to which it has come.
    `calibration`: what the room's replies have shown of the model `by` or else `walk`.
    """

    by: str = ""
    walk: str = ""
    walked: int = 0
    calibration: Calibration = UNCALIBRATED

    def calibrated(self, model: str) -> Calibration:
        """Return what the room's replies have shown of this model."""
        return self.calibration if model == (self.by or self.walk) else UNCALIBRATED

    def whole(self, model: str, *, newest: int) -> bool:
        """Tell whether this model made the links of all messages up to the arrival `newest`."""
        return not newest or self.by == model

    def grown(self, model: str, *, newest: int, calibration: Calibration) -> "Linked":
        """Return the state after messages that this model linked were added to those up to the arrival `newest`.

        Where another model made the links before, it has to go on from there, or this one to begin anew.
        """
        if self.whole(model, newest=newest):
            return Linked(by=model, calibration=calibration)
        if self.by:
            return Linked(walk=self.by, walked=newest, calibration=self.calibration)
        return self

    def adopts(self, arrival: int) -> bool:
        """Tell whether a reply with this arrival may be linked to a target that arrives only now.

        Below the place that a walk has reached it waits for the walk, which comes by that target too: so each message
        is linked by what was there when it arrived.
        """
        return not self.walk or arrival > self.walked

    def begun(self, model: str) -> "Linked":
        """Return the state in which this model makes the links anew, where it is if it does so already."""
        return self if self.walk == model and not self.by else Linked(walk=model)

    def moved(self, arrival: int, calibration: Calibration) -> "Linked":
        """Return the state after the walk has come up to this arrival."""
        return replace(self, walked=arrival, calibration=calibration)

    def done(self) -> "Linked":
        """Return the state after the walk has met every message."""
        return Linked(by=self.walk, calibration=self.calibration)


UNLINKED = Linked()
