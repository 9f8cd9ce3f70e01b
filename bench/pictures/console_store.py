"""A store worth looking at in the console: rooms in two languages, a memory with a past, facts, and sessions."""

from datetime import timedelta
from pathlib import Path

from bench.pictures import nights
from bench.pictures.cache_talk import FACTS, TALK
from bench.pictures.held import BEGIN
from roomlore import Lore, NewMemory
from roomlore.samples import demo_path
from roomlore_testkit import FrozenClock

WINDOW, RECENT, SUMMARY = 560, 3, 110
SESSION = "ann"
_CHINESE = Path(__file__).parents[1] / "data" / "zh_room"


async def fill(lore: Lore, clock: FrozenClock) -> None:
    """Some weeks of life; it is the evening of 17 June 2026 when all is said."""
    await nights.live(lore, clock)
    await lore.memories.add_all(
        [NewMemory(scope="user:ann", statement=words, confidence=sure) for words, sure in FACTS]
    )
    await _talk(lore, clock)
    clock.advance((BEGIN + timedelta(days=16, hours=14) - clock.now()).total_seconds())
    for path in (demo_path(), *sorted(_CHINESE.glob("*.messages.jsonl"))):
        await lore.imports.run(path)


async def _talk(lore: Lore, clock: FrozenClock) -> None:
    """A long session whose summaries roomlore makes when they are asked for, and two short ones."""
    for question, answered in TALK:
        clock.advance(timedelta(minutes=3).total_seconds())
        await lore.sessions.write_turn(SESSION, "ann", "companion", question, answered)
        if (await lore.sessions.query_context(SESSION)).should_checkpoint_summary:
            await lore.sessions.summarise(SESSION)
    for name, turns in (("前台-小雨", TALK[7:12]), ("help-desk-31", TALK[2:5])):
        for question, answered in turns:
            clock.advance(timedelta(minutes=3).total_seconds())
            await lore.sessions.write_turn(name, name, "desk", question, answered)
