"""What was handed out to be summarised, so that a checkpoint that does not say what it covers never covers more."""

from collections import OrderedDict
from dataclasses import dataclass, replace

from roomlore.core.errors import Conflict
from roomlore.core.sessions.models import Session

_MOST = 10_000
_MOST_ASKED = 100
_LASTS_SECONDS = 600.0
_LATE_SECONDS = 120.0
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class _Ask:
    """A history that was handed out with a checkpoint asked for. `until`: a summary of it may come so long."""

    covers: int
    boundary: int
    until: float


@dataclass(frozen=True, slots=True)
class _Offer:
    """What was handed out while one checkpoint was in force. `covers`: the arrival up to which it went. `asked`: what
    no summary came for yet; `late`: the same of checkpoints before."""

    checkpoint_id: str
    boundary: int
    covers: int
    at: float
    asked: tuple[_Ask, ...] = ()
    late: tuple[_Ask, ...] = ()

    def stands(self, session: Session) -> bool:
        return (self.checkpoint_id, self.boundary) == (session.checkpoint_id, session.boundary)

    def of(self, session: Session, now: float) -> "_Offer":
        """The offer as of the session's checkpoint: what was asked for before it can only come late."""
        if self.stands(session):
            return replace(self, late=_open(self.late, now))
        late = _open((*self.late, *self.asked), now)[-_MOST_ASKED:]
        return _Offer(session.checkpoint_id, session.boundary, _NOWHERE, now, late=late)


def _open(asks: tuple[_Ask, ...], now: float) -> tuple[_Ask, ...]:
    return tuple(ask for ask in asks if now < ask.until)


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
        offer = self._of(session, now)
        if not offer.asked or now - offer.at >= _LASTS_SECONDS:
            offer = replace(offer, covers=covers, at=now, asked=())
        if asked:
            ask = _Ask(covers, session.boundary, now + _LATE_SECONDS)
            offer = replace(offer, asked=(*offer.asked, ask)[:_MOST_ASKED])
        self._keep(session, offer)

    def used(self, session: Session, covers: int) -> None:
        """A summary up to `covers` came into force that did not say so. `session`: as it was until then."""
        offer = self._offers.get((session.tenant, session.conversation_id))
        if offer is None:
            return
        ask = next((ask for ask in (*offer.late, *offer.asked) if ask.covers == covers), None)
        late = tuple(one for one in offer.late if one is not ask)
        asked = tuple(one for one in offer.asked if one is not ask)
        self._keep(session, replace(offer, late=late, asked=asked))

    def covers(self, session: Session, *, sure: bool, now: float) -> int | None:
        """Up to which arrival a summary reaches that does not say; None where nobody asked here. `sure`: it was made
        since the checkpoint in force; else `Conflict` where it can only be a late one."""
        offer = self._of(session, now)
        late = () if sure else offer.late
        if offer.asked and all(ask.boundary == session.boundary and ask.covers >= session.covered for ask in late):
            return min([offer.covers, *(ask.covers for ask in late)])
        if late:
            raise Conflict(
                "The conversation has moved on since a summary was asked for, and this may be that summary; name "
                "covers_through, the id of the last message it stands for."
            )
        return None if offer.covers == _NOWHERE else offer.covers

    def asked(self, session: Session, *, now: float) -> bool:
        """Whether a checkpoint was asked for with a history handed out here."""
        return bool(self._of(session, now).asked)

    def _of(self, session: Session, now: float) -> _Offer:
        offer = self._offers.get((session.tenant, session.conversation_id))
        return offer.of(session, now) if offer else _Offer(session.checkpoint_id, session.boundary, _NOWHERE, now)

    def _keep(self, session: Session, offer: _Offer) -> None:
        named = (session.tenant, session.conversation_id)
        self._offers[named] = offer
        self._offers.move_to_end(named)
        if len(self._offers) > _MOST:
            self._offers.popitem(last=False)
