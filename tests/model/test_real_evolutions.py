"""Group memory made by a real model over three days: properties that hold whatever it says."""

import math

import pytest
from groups import DAYS, GROUP, ORDERS, day_of
from said import CHAT
from talks import LANGUAGES

import roomlore
from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.requests import EvolutionResult, Rules
from roomlore.core.memory.log import active, replay
from roomlore.core.memory.memory import Action, Evolution, Source
from roomlore.core.text import graphemes

SCOPE, ALL_DAYS = f"group:{GROUP}", 3650
"""The days are back-dated: nothing here goes by the clock."""


async def _remembered(lore: roomlore.Lore) -> dict[str, str]:
    return {memory.memory_id: memory.statement for memory in await lore.memories.page(SCOPE)}


def _tell(listener, result: EvolutionResult, record: Evolution, day: int) -> None:
    spent = f"{result.usage.input_tokens} tokens in, {result.usage.output_tokens} out"
    listener.tell(f"day {day + 1}, {result.messages} messages ({record.status}, {spent})", record.raw_answer)
    for change in result.changes:
        evidence = ", ".join(source.message_id for source in change.memory.sources)
        was = f"{change.old_statement!r} -> " if change.old_statement else ""
        listener.tell(f"{change.action.value} [{evidence}]", f"{was}{change.memory.statement!r}")
    for one in result.rejected:
        listener.tell(f"refused, line {one.line}: {one.reason}", one.text)


async def _check(lore: roomlore.Lore, before: dict[str, str], result: EvolutionResult, day: int, language: str) -> None:
    log = await lore.memories.changes(SCOPE, limit=1000)
    now = await lore.memories.page(SCOPE)
    real = {Source(GROUP, message.id) for n in range(day + 1) for message in day_of(language, n)}
    own = [change for change in log if change.evolution_id == result.evolution_id]
    deleted = [change for change in own if change.action is Action.DELETE]
    assert own == list(result.changes)
    assert {one.memory_id: one for one in active(replay(log))} == {one.memory_id: one for one in now}
    assert len(deleted) <= max(1, math.floor(0.3 * len(before)))
    for memory in now:
        assert set(memory.sources) <= real
        assert 0 < graphemes(memory.statement) <= Rules().statement_chars


def _check_order(result: EvolutionResult, record: Evolution, order: str) -> None:
    """Check that no message with the instruction became a memory, whatever the model made of it."""
    refused = {one.line for one in result.rejected}
    for operation in read_answer(record.raw_answer).operations:
        if any(handle in order for handle in operation.handles):
            assert record.status == "failed" or operation.line in refused


@pytest.mark.parametrize("language", LANGUAGES)
async def test_three_days_of_a_group(real_model, listener, language):
    settings = real_model.settings(evolve_model=CHAT, model_timeout_seconds=real_model.seconds)
    states: list[tuple[str, dict[str, str]]] = []
    async with roomlore.open("sqlite://", settings=settings, background=False) as lore:
        for day in range(len(DAYS[language])):
            before = await _remembered(lore)
            await lore.messages.add(day_of(language, day))
            result = await lore.memories.evolve(GROUP, days=ALL_DAYS, mode="llm")
            record = await lore.memories.evolution(result.evolution_id)
            _tell(listener, result, record, day)
            listener.tell("remembered", "\n".join((await _remembered(lore)).values()))
            await _check(lore, before, result, day, language)
            if day > 0:
                _check_order(result, record, ORDERS[language][day - 1])
            states.append((result.evolution_id, before))
        for evolution_id, before in reversed(states):
            await lore.memories.revert(evolution_id)
            assert await _remembered(lore) == before
    listener.check_answers()


@pytest.mark.parametrize("language", LANGUAGES)
async def test_three_days_of_a_group_without_a_model(real_model, listener, language):
    """Beside the model's, on the same messages."""
    async with roomlore.open("sqlite://", settings=real_model.settings(), background=False) as lore:
        for day in range(len(DAYS[language])):
            await lore.messages.add(day_of(language, day))
            result = await lore.memories.evolve(GROUP, days=ALL_DAYS, mode="offline")
            assert result.mode == "offline"
        found = await _remembered(lore)
    listener.tell("remembered without a model", "\n".join(found.values()) or None)
    assert not any(order in statement for order in ORDERS[language] for statement in found.values())
