"""What was handed out to be summarised, so that a checkpoint that does not say what it covers never covers more."""

from collections import OrderedDict
from dataclasses import dataclass, replace

from roomlore.core.errors import Conflict
from roomlore.core.sessions.models import Session

_MOST = 10_000
_MOST_ASKED = 100
_LASTS_SECONDS = 600.0
_LATE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class _Offer:
    """What was handed out while one checkpoint was in force. `covers`: the arrival up to which it went, `asked`: those
    of the histories that a checkpoint was asked for with and that no summary came for, `late`: until when one may.
    `former`: the same of the checkpoint before."""

    checkpoint_id: str
    boundary: int
    covers: int
    at: float
    asked: tuple[int, ...] = ()
    late: float = 0.0
    former: "_Offer | None" = None

    def stands(self, session: Session) -> bool:
        return (self.checkpoint_id, self.boundary) == (session.checkpoint_id, session.boundary)

    def awaited(self, session: Session, now: float) -> list[int]:
        """What a summary may be of that was asked for before the checkpoint in force, as arrivals."""
        before = self.former if self.stands(session) else self
        return list(before.asked) if before and now < before.late else []


class Offers:
    """The history each conversation's callers were given last, in this process.

    Where a checkpoint was asked for, the first such history counts: its summary may be in the making while later ones
    are handed out. After ten minutes a later one takes its place. Where several were asked for and one came into force,
    the others may still come, for two minutes.
    """

    def __init__(self) -> None:
        self._offers: OrderedDict[tuple[str, str], _Offer] = OrderedDict()

    def note(self, session: Session, *, covers: int, asked: bool, now: float) -> None:
        """A history up to the arrival `covers` was handed out. `now`: seconds that only grow."""
        offer = self._standing(session, now)
        if not offer.asked or now - offer.at >= _LASTS_SECONDS:
            offer = replace(offer, covers=covers, at=now, asked=())
        if asked:
            offer = replace(offer, asked=(*offer.asked, covers)[:_MOST_ASKED], late=now + _LATE_SECONDS)
        named = (session.tenant, session.conversation_id)
        self._offers[named] = offer
        self._offers.move_to_end(named)
        if len(self._offers) > _MOST:
            self._offers.popitem(last=False)

    def _standing(self, session: Session, now: float) -> _Offer:
        offer = self._offers.get((session.tenant, session.conversation_id))
        if offer and offer.stands(session):
            return offer
        former = replace(offer, former=None) if offer else None
        return _Offer(session.checkpoint_id, session.boundary, 0, now, former=former)

    def used(self, session: Session, covers: int) -> None:
        """A caller's summary up to `covers` came into force. `session`: as it was until then."""
        named = (session.tenant, session.conversation_id)
        offer = self._offers.get(named)
        if offer and offer.stands(session):
            rest = [arrival for arrival in offer.asked if arrival >= covers]
            if covers in rest:
                rest.remove(covers)
            self._offers[named] = replace(offer, asked=tuple(rest))

    def covers(self, session: Session, *, sure: bool, now: float) -> int | None:
        """Up to which arrival a summary reaches that does not say; None where nobody asked here. `sure`: it was made
        since the checkpoint in force; else `Conflict` where it can only be a late one."""
        offer = self._offers.get((session.tenant, session.conversation_id))
        if offer is None:
            return None
        awaited = [] if sure else offer.awaited(session, now)
        begun_anew = awaited and awaited[-1] <= session.boundary
        if offer.stands(session) and offer.asked and not begun_anew:
            return min([offer.covers, *(arrival for arrival in awaited if arrival >= session.covered)])
        if awaited:
            raise Conflict(
                "The conversation has moved on since a summary was asked for, and this may be that summary; name "
                "covers_through, the id of the last message it stands for."
            )
        return offer.covers if offer.stands(session) else None
