"""Requests on the wire, with the `openai` client. Imported when a model is first asked: it takes a second to load."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai

from roomlore.adapters.chat import troubles
from roomlore.core.chat.registry import Offer
from roomlore.core.errors import ModelUnavailable
from roomlore.ports.coordination import Clock

_CONNECT_SECONDS = 10.0


class Wire:
    """One client for each address and key, all on one pool of connections. Whoever asks keeps the time, but for the
    time to connect. Redirects are not followed, so that the prompt and the key go nowhere else. Made on a thread: the
    certificates are read."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._pool = openai.DefaultAsyncHttpxClient(follow_redirects=False)
        self._clients: dict[tuple[str, str | None], openai.AsyncOpenAI] = {}

    @asynccontextmanager
    async def asking(
        self, offer: Offer, body: Mapping[str, Any], *, key: str | None, seconds: float
    ) -> AsyncIterator[httpx2.Response]:
        """The answer's head, its body still to be read; the connection is closed at the end if the body was not read to
        its end. Raises `ModelUnavailable`, without the error that caused it: that one quotes the provider."""
        trouble: ModelUnavailable
        try:
            client = self._client(offer, key)
            async with client.chat.completions.with_streaming_response.create(
                model=offer.model_id,
                messages=[],
                extra_body=body,
                extra_headers={} if key else {"Authorization": openai.Omit()},
                timeout=httpx2.Timeout(None, connect=min(seconds, _CONNECT_SECONDS)),
            ) as response:
                yield response.http_response
                return
        except openai.APIStatusError as error:
            trouble = troubles.of_status(offer, error.status_code, error.response.headers, now=self._clock.now())
        except openai.APITimeoutError:
            trouble = troubles.late(offer, min(seconds, _CONNECT_SECONDS))
        except openai.APIConnectionError as error:
            arrived = not isinstance(error.__cause__, httpx2.ConnectError)
            trouble = troubles.dropped(offer) if arrived else troubles.unreachable(offer)
        except httpx2.TransportError:
            trouble = troubles.dropped(offer)
        except httpx2.InvalidURL:
            trouble = troubles.bad_address(offer)
        except (httpx2.HTTPError, openai.OpenAIError):
            trouble = troubles.broken(offer, "answers something that cannot be read")
        raise trouble

    async def close(self) -> None:
        await self._pool.aclose()

    def _client(self, offer: Offer, key: str | None) -> openai.AsyncOpenAI:
        if key and not (key.isascii() and key.isprintable()):
            raise troubles.bad_key(offer)
        place = offer.provider.base_url, key
        if place not in self._clients:
            self._clients[place] = self._connect(*place)
        return self._clients[place]

    def _connect(self, base_url: str, key: str | None) -> openai.AsyncOpenAI:
        # The client insists on some key; it is left out of the requests to servers that want none.
        pool = self._pool
        client = openai.AsyncOpenAI(api_key=key or "none", base_url=base_url, max_retries=0, http_client=pool)
        # Found in the environment, they would be told to every provider.
        client.organization = client.project = None
        return client
