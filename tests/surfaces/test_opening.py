"""Mistakes of a newcomer who opens roomlore."""

import pytest

import roomlore


async def test_settings_in_the_place_of_the_address_are_told_how_to_be_handed_over():
    with pytest.raises(roomlore.InvalidInput, match=r"hand it over by name: roomlore\.open\(settings=\.\.\.\)"):
        async with roomlore.open(roomlore.Settings()):
            pass


async def test_settings_by_name_say_the_database_too():
    async with roomlore.open(settings=roomlore.Settings(database_url="sqlite://", recent_turns=3)) as lore:
        assert lore.settings.recent_turns == 3
        await lore.ping()


async def test_a_misspelt_argument_is_named():
    with pytest.raises(TypeError, match="vectros"):
        async with roomlore.open("sqlite://", vectros=None):
            pass
    with pytest.raises(TypeError, match="vectros"):
        roomlore.connect_sync("sqlite://", vectros=None)
    async with roomlore.open("sqlite://", background=False) as lore:
        for call in (
            lambda: lore.memories.add("user:anna", "Drinks tea", tag=["tea"]),
            lambda: lore.memories.update("m1", tag=["tea"]),
            lambda: lore.recall.build(["user:anna"], [], tag=["tea"]),
        ):
            with pytest.raises(TypeError, match="tag"):
                await call()
