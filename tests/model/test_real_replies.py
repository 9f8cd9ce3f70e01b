"""The reply loop with a real model: what holds whatever it says."""

import pytest
from said import CHAT
from talks import LANGUAGES, REQUESTS

import roomlore
from roomlore.core.replies.reply import Reply, ReplyStarted, ReplyText

ROOM, AGENT = "rabbits", "helper"


def _request(number: int, text: str) -> roomlore.Message:
    return roomlore.Message(id=f"q{number}", room_id=ROOM, sender_id="lea", text=text)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_is_streamed_is_what_is_stored(real_model, listener, language):
    async with roomlore.open("sqlite://", settings=real_model.settings(extract_every=0)) as lore:
        for number, text in enumerate(REQUESTS[language]):
            asked = {"agent_id": AGENT, "max_tokens": 80}
            events = [event async for event in lore.replies.stream(_request(number, text), **asked)]
            started, reply = events[0], events[-1]
            assert isinstance(started, ReplyStarted)
            assert isinstance(reply, Reply)
            listener.tell(f"reply to {text!r} ({reply.finish_reason}, {started.messages} messages shown)", reply.text)
            assert reply.text.strip()
            assert "".join(event.text for event in events if isinstance(event, ReplyText)) == reply.text
            assert (reply.finish_reason in ("stop", "length", "content_filter"), reply.model) == (True, CHAT)
            stored = (await lore.messages.get(ROOM, reply.reply_id)).message
            assert (stored.text, stored.sender_id, stored.role) == (reply.text, AGENT, roomlore.Role.ASSISTANT)
            again = await lore.replies.reply(_request(number, text), **asked)
            assert (again.text, again.reply_id, again.repeated) == (reply.text, reply.reply_id, True)
        assert started.messages >= 2, "the second prompt holds the first question and its answer"
        assert len(await lore.messages.page(ROOM)) == 2 * len(REQUESTS[language])
    listener.check_answers()


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_reply_that_grows_too_long_ends_politely(real_model, listener, language):
    closing = {"en": "(More another time.)", "zh": "（下次再说。）"}[language]
    request = {"en": "Count from 1 to 200 in words.", "zh": "请用汉字从一数到二百。"}[language]
    async with roomlore.open("sqlite://", settings=real_model.settings(extract_every=0, length_text=closing)) as lore:
        reply = await lore.replies.reply(_request(0, request), agent_id=AGENT, max_tokens=10)
        stored = (await lore.messages.get(ROOM, reply.reply_id)).message
    listener.tell(f"{request} ({reply.finish_reason})", reply.text)
    assert (reply.finish_reason == "length") == reply.text.endswith(closing)
    assert stored.text == reply.text
