"""A patient who talks with an agent: turns, a model that answers, and one that summarises."""

from typing import Any

from roomlore import Lore, SessionContext

CONVERSATION = "conv-123"
USER = "user-456"
AGENT = "triage_agent"


async def speak(lore: Lore, *numbers: int, conversation: str = CONVERSATION) -> None:
    """Turns of 46 tokens each or so, with ids that tell their number."""
    for number in numbers:
        await lore.sessions.write_turn(
            conversation,
            USER,
            AGENT,
            f"第{number}问：我最近感觉头晕，应该怎么办？",
            f"第{number}答：先坐下休息，多喝水，注意测量血压",
            turn_id=f"t{number}",
        )


def numbers(context: SessionContext) -> list[int]:
    """The turns that a context shows verbatim."""
    return [
        int(one.removeprefix("t").removesuffix("-answer")) for one in context.message_ids if one.endswith("-answer")
    ]


async def due(lore: Lore, *, upto: int = 40, **how: Any) -> SessionContext:
    """Turns until a context asks for a checkpoint; returns that context."""
    for number in range(1, upto):
        await speak(lore, number)
        context = await lore.sessions.query_context(CONVERSATION, **how)
        if context.should_checkpoint_summary:
            return context
    raise AssertionError("no context asked for a checkpoint")


async def told(lore: Lore, context: SessionContext, summary: str, recent_turns: int | None = None) -> None:
    """A checkpoint that says what its summary covers."""
    await lore.sessions.checkpoint(
        CONVERSATION, summary, recent_turns, context.covers_through, expected_checkpoint=context.checkpoint_id
    )
