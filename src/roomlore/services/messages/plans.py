"""Plans: what is to be stored of a batch, room by room, and what became of its messages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roomlore.core.errors import Conflict
from roomlore.core.intake import Intake, IntakeResult
from roomlore.core.linking.calibration import Calibration
from roomlore.core.models import AddReport, Entry, Link, Message, Room

Batches = Mapping[str, Sequence[Message]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for one room's share of a batch: entries to append, the links of older messages that changed, and what
    the room's replies have shown about the link model."""

    room: Room
    intake: Intake
    entries: Sequence[Entry]
    relinked: Mapping[int, Link]
    calibration: Calibration

    def share(self, message_id: str, *, made: bool) -> "Plan":
        """Return what is about one message. `made`: False if another message has made the room."""
        its = self.intake
        return replace(
            self,
            room=self.room if made else replace(self.room, revision=max(self.room.revision, 1)),
            intake=Intake(
                fresh=[message for message in its.fresh if message.id == message_id],
                duplicates=[one for one in its.duplicates if one == message_id],
                gone=[one for one in its.gone if one == message_id],
                conflicts=[one for one in its.conflicts if one == message_id],
            ),
            entries=[entry for entry in self.entries if entry.message.id == message_id],
        )


def check_conflicts(message_ids: Sequence[str]) -> None:
    """Raise `Conflict` if there are ids of messages that are stored, or earlier in the batch, with other content."""
    if message_ids:
        raise Conflict(
            f"{len(message_ids)} message(s) are stored already with other content, or are twice in this batch, "
            f"{message_ids[0]!r} for one; nothing was added. Edit a message to change it, or give on_conflict=report "
            "to add the others."
        )


def by_room(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Return the messages of each room, in their order."""
    rooms: dict[str, list[Message]] = {}
    for message in messages:
        rooms.setdefault(message.room_id, []).append(message)
    return rooms


def results_of(plans: Sequence[Plan]) -> dict[str, IntakeResult]:
    """Return what became of the batches that were planned so, by room."""
    return {plan.room.room_id: plan.intake.result for plan in plans}


def report_of(plans: Sequence[Plan]) -> AddReport:
    """Return what became of the batches that were planned so."""
    return AddReport(
        added=tuple(message.id for plan in plans for message in plan.intake.fresh),
        duplicates=tuple(message_id for plan in plans for message_id in (*plan.intake.duplicates, *plan.intake.gone)),
        conflicts=tuple(message_id for plan in plans for message_id in plan.intake.conflicts),
        new_rooms={plan.room.room_id: () for plan in plans if plan.entries and plan.room.revision == 0},
    )
