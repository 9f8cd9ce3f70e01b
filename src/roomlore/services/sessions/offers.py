"""What was handed out to be summarised, so that a checkpoint that does not say what it covers never covers more."""

from collections import OrderedDict
from dataclasses import dataclass

from roomlore.core.sessions.models import Session

_MOST = 10_000
_LASTS_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class _Offer:
    covers: int
    asked: bool
    at: float
    checkpoint_id: str
    boundary: int

    def stands(self, session: Session) -> bool:
        return (self.checkpoint_id, self.boundary) == (session.checkpoint_id, session.boundary)


class Offers:
    """The history each conversation's callers were given last, in this process.

    Where a checkpoint was asked for, the first such history counts: its summary may be in the making while later ones
    are handed out. After ten minutes a later one takes its place.
    """

    def __init__(self) -> None:
        self._offers: OrderedDict[tuple[str, str], _Offer] = OrderedDict()

    def note(self, session: Session, *, covers: int, asked: bool, now: float) -> None:
        """A history up to the arrival `covers` was handed out. `now`: seconds that only grow."""
        named = (session.tenant, session.conversation_id)
        before = self._offers.get(named)
        if before and before.asked and before.stands(session) and now - before.at < _LASTS_SECONDS:
            return
        self._offers[named] = _Offer(covers, asked, now, session.checkpoint_id, session.boundary)
        self._offers.move_to_end(named)
        if len(self._offers) > _MOST:
            self._offers.popitem(last=False)

    def covers(self, session: Session) -> int | None:
        """Up to which arrival a summary made since the checkpoint in force reaches; None where nobody asked here."""
        offer = self._offers.get((session.tenant, session.conversation_id))
        return offer.covers if offer and offer.stands(session) else None
