"""Calls of a chat client in one form, and what tests of it send."""

import json
import traceback
from dataclasses import replace

import pytest

from roomlore.core.chat import ChatAnswer, ChatRequest, Offer, Provider, Usage
from roomlore.core.errors import ModelUnavailable
from roomlore_testkit.model_server import ModelServer, Sends

KEY = "sk-secret-0123456789"
PROMPT = "a very private matter, 私事"
ASKED = ChatRequest(messages=({"role": "user", "content": PROMPT},))
WHOLE, STREAMED = "whole", "streamed"


def offer(server: ModelServer, **provider: object) -> Offer:
    return Offer(replace(Provider("near", server.url, "NEAR_KEY"), **provider), "tiny")


async def ask(client, server, how=WHOLE, request=ASKED, *, key=KEY, seconds=5.0) -> ChatAnswer:
    """The answer, in the same form whichever way it came."""
    if how == WHOLE:
        return await client.complete(offer(server), request, key=key, timeout_seconds=seconds)
    pieces = [piece async for piece in client.stream(offer(server), request, key=key, timeout_seconds=seconds)]
    last = pieces[-1]
    assert not any(piece.finish_reason or piece.tool_calls or piece.usage != Usage() for piece in pieces[:-1])
    assert all(piece.text for piece in pieces[:-1])
    return ChatAnswer(
        text="".join(piece.text for piece in pieces),
        finish_reason=last.finish_reason,
        tool_calls=last.tool_calls,
        usage=last.usage,
        provider=last.provider,
        model_id=last.model_id,
    )


async def refused(client, server, how=WHOLE, **more) -> ModelUnavailable:
    """The error of a call, after a look for what it must not tell."""
    with pytest.raises(ModelUnavailable) as caught:
        await ask(client, server, how, **more)
    told = "".join(traceback.format_exception(caught.value))
    assert not [secret for secret in (KEY, PROMPT, "refused:", "私事") if secret in told]
    return caught.value


both = pytest.mark.parametrize("how", [WHOLE, STREAMED])
DONE = b"data: [DONE]\n\n"


def event(delta: object, finish: object = None) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"


def streamed(*events: bytes) -> Sends:
    return Sends(body=b"".join(events), content_type="text/event-stream", in_chunks=True)


def fragment(arguments: object, **fields: object) -> dict:
    named = {"name": fields.pop("name")} if "name" in fields else {}
    return {**fields, "function": {**named, "arguments": arguments}}


async def ask_for_nothing(client, server) -> None:
    """So that what is loaded once is loaded."""
    script, server.default = server.default, "ready"
    await ask(client, server)
    server.default = script
