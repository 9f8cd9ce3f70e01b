"""The judge for extraction: what reaches the model, and what comes of it."""

import pytest
from bench.meaning_extraction import extraction

import roomlore

AT = "2026-03-04T12:00:0{}Z"


def case(*texts: str, facts: list[dict]) -> dict:
    messages = [
        {"sender": "Anna" if n % 2 == 0 else "bot", "role": "user" if n % 2 == 0 else "assistant", "at": AT.format(n),
         "text": text}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    return {"id": "case", "messages": messages, "facts": facts}


async def judged(given: dict) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    async with roomlore.open("sqlite://", background=False) as lore:
        for one in await extraction(lore, given):
            found.setdefault(one.group, []).append(one.verdict)
    return found


@pytest.mark.parametrize("texts", [["I come on Friday.", "Noted."], ["Hello", "Hello.", "I come on Friday."]])
async def test_what_is_told_is_shown_read_once_and_told_again(texts):
    fact = {"say": "Anna comes on Friday", "words": ["Friday"]}
    assert await judged(case(*texts, facts=[fact])) == {
        "fact shown to the model": ["right"],
        "fact told in the next reply": ["right"],
        "message read once, with its day": ["right"] * (len(texts) - 1),
    }


async def test_what_was_never_said_and_what_does_not_fit_a_note_is_wrong():
    never = {"say": "Anna comes on Monday", "words": ["Monday"]}
    long = {"say": "Anna " + "comes " * 30 + "on Friday", "words": ["Friday"]}
    found = await judged(
        case("I come on Friday.", "Noted.", "Twice on Friday.", "Twice on Friday.", facts=[never, long])
    )
    assert found["fact shown to the model"] == ["wrong", "right"]
    assert found["fact told in the next reply"] == ["wrong", "wrong"]
