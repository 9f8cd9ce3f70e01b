"""Recordings over the wire: what is sent, what is taken for what was said, and what goes wrong."""

from dataclasses import replace

from asking_models import KEY, ask, offer, refused

from attachment_rig import INLINE, PICTURE, VOICE
from roomlore.core.chat import ChatAnswer, ChatRequest, Recording, Usage, about_picture, words_in
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.model_server import Drops, Fails, Hangs, Says, Sends

SPOKEN = ChatRequest(recording=Recording("attachment.wav", "audio/wav", VOICE), tenant="t")


async def test_a_recording_is_sent_as_a_file_and_its_words_come_back(client, server):
    for text in ("bring the rope", "明天带绳子", ""):
        server.default = Says(text=text)
        answer = await ask(client, server, request=SPOKEN)
        assert answer == ChatAnswer(text=text, provider="near", model_id="tiny")
    asked = server.requests[0]
    assert (asked.path, asked.key) == ("/v1/audio/transcriptions", KEY)
    form = asked.body["form"]
    assert VOICE in form
    assert b'filename="attachment.wav"' in form
    assert b"audio/wav" in form
    assert b'name="model"\r\n\r\ntiny' in form
    assert b'name="response_format"\r\n\r\njson' in form


async def test_the_options_of_an_offer_are_sent_with_it_and_usage_is_read(client, server):
    server.default = Sends(body=b'{"text": "hi", "usage": {"input_tokens": 9, "output_tokens": 2}}')
    spoken_in = replace(offer(server), options={"language": "zh"})
    answer = await client.complete(spoken_in, SPOKEN, key=None, timeout_seconds=5)
    assert answer.usage == Usage(9, 2)
    (asked,) = server.requests
    assert b'name="language"\r\n\r\nzh' in asked.body["form"]
    assert asked.key is None


async def test_what_goes_wrong_is_told_as_of_other_requests(client, server):
    with all_cases() as case:
        for answer, cause in (
            (Fails(status=503), "broken"), (Fails(status=400), "refused"), (Fails(status=401), "refused"),
            (Fails(status=429), "limited"), (Drops(), "dropped"), (Hangs(), "timeout"),
            (Sends(body=b"no json"), "broken"), (Sends(body=b'{"words": "hi"}'), "broken"),
            (Sends(body=b'{"text": 7}'), "broken"), (Sends(body=b'{"error": {"code": 404}}'), "refused"),
        ):  # fmt: skip
            with case(answer):
                server.default = answer
                assert (await refused(client, server, request=SPOKEN, seconds=0.5)).cause == cause


async def test_a_picture_is_shown_in_an_address_and_counts_no_words(client, server):
    request = about_picture("What is this?", "image/png", PICTURE)
    await ask(client, server, request=request)
    (said,) = server.requests[0].body["messages"]
    assert said["content"][1] == {"type": "image_url", "image_url": {"url": INLINE}}
    assert words_in(said) == {"role": "user", "content": [{"type": "text", "text": "What is this?"}]}
    for message in ({"role": "user", "content": "hi"}, {"role": "tool"}, {"content": ["hi", {"type": "text"}]}):
        assert words_in(message) == message
