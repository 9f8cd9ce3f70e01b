"""What came of an evolution: the record that is kept, and what callers are told of it."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from roomlore.core.chat.models import Usage
from roomlore.core.evolution.models import Plan, Rejected
from roomlore.core.evolution.result import EvolutionResult, Stats
from roomlore.core.memory.models import Action, Change, Evolution, EvolutionStatus
from roomlore.services.evolution.piece import Answered, Piece, Read

_NO_LINE = "The model's answer has no line that can be used, so nothing was changed and the messages stay unread."
_NO_CHANGE = "The messages change nothing of what is remembered."


def record(piece: Piece, read: Read, answered: Answered, plan: Plan, *, failed: bool, now: datetime) -> Evolution:
    """What is kept of it."""
    status: EvolutionStatus = "failed" if failed else "applied" if plan.changes else "nothing"
    return Evolution(
        evolution_id=piece.evolution_id,
        scope=piece.scope,
        kind="evolution",
        status=status,
        room_id=read.room_id,
        first_arrival=read.first,
        last_arrival=read.last,
        messages=len(read.handles),
        prompt_name=piece.prompt if answered.prompt_hash else "",
        prompt_hash=answered.prompt_hash,
        model=answered.model,
        usage=Usage(answered.input_tokens, answered.output_tokens),
        raw_answer=answered.text,
        quarantined=tuple((one.text, one.reason) for one in plan.rejected),
        facts={
            "mode": answered.mode,
            "kept": plan.kept,
            "remaining": read.remaining + (len(read.messages) if failed else 0),
            "lines": [one.line for one in plan.rejected],
        },
        error=_NO_LINE if failed else "",
        started_at=read.at,
        finished_at=now,
    )


def told(kept: Evolution, changes: Sequence[Change]) -> EvolutionResult:
    """What callers are told of a record and the changes that were made with it."""
    facts = kept.facts
    done = Counter(change.action for change in changes)
    return EvolutionResult(
        evolution_id=kept.evolution_id,
        scope=kept.scope,
        mode=facts.get("mode", "llm"),
        at=kept.finished_at,
        message=kept.error or ("" if changes else _NO_CHANGE),
        failed=kept.status == "failed",
        stats=Stats(
            kept=facts.get("kept", 0),
            updated=done[Action.UPDATE] + done[Action.MERGE],
            created=done[Action.CREATE],
            deleted=done[Action.DELETE],
        ),
        changes=tuple(changes),
        rejected=tuple(
            Rejected(line, text, reason)
            for line, (text, reason) in zip(facts.get("lines", ()), kept.quarantined, strict=False)
        ),
        messages=kept.messages,
        remaining=facts.get("remaining", 0),
        model=kept.model,
        usage=kept.usage,
    )
