"""Requests to providers with the `openai` client. Imported at the first request, as it takes a second to load."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai

from roomlore.adapters.chat import errors
from roomlore.adapters.tls import trusted
from roomlore.core.chat import Offer
from roomlore.core.errors import ModelUnavailable
from roomlore.core.texts import Phrase
from roomlore.ports.coordination import Clock

_CONNECT_SECONDS = 10.0


class Wire:
    """One client for each address and key, all on one connection pool. Callers set the time limits, except the one for
    connecting. Redirects are not followed, so that prompt and key are not sent elsewhere. Created on a thread, as it
    reads the certificates."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._pool = openai.DefaultAsyncHttpxClient(follow_redirects=False, verify=trusted())
        self._clients: dict[tuple[str, str | None], openai.AsyncOpenAI] = {}

    @asynccontextmanager
    async def asking(
        self,
        offer: Offer,
        body: Mapping[str, Any],
        *,
        key: str | None,
        seconds: float,
        file: tuple[str, bytes, str] | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """Yield the head of the answer, with the body still unread. `file`: the name, the bytes and the media type of a
        recording that is to be written down. The connection is closed at the end unless the body was read completely.
        Raises `ModelUnavailable` without the error that caused it, which quotes the provider."""
        failure: ModelUnavailable
        try:
            client = self._client(offer, key)
            own: dict[str, Any] = {"messages": []} if file is None else {"file": file, "response_format": "json"}
            place: Any = client.chat.completions if file is None else client.audio.transcriptions
            async with place.with_streaming_response.create(
                model=offer.model_id,
                **own,
                extra_body=body,
                extra_headers={} if key else {"Authorization": openai.Omit()},
                timeout=httpx2.Timeout(None, connect=min(seconds, _CONNECT_SECONDS)),
            ) as response:
                yield response.http_response
                return
        except openai.APIStatusError as error:
            failure = errors.of_status(offer, error.status_code, error.response.headers, now=self._clock.now())
        except openai.APITimeoutError:
            failure = errors.late(offer, min(seconds, _CONNECT_SECONDS))
        except openai.APIConnectionError as error:
            arrived = not isinstance(error.__cause__, httpx2.ConnectError)
            failure = errors.dropped(offer) if arrived else errors.unreachable(offer)
        except httpx2.TransportError:
            failure = errors.dropped(offer)
        except httpx2.InvalidURL:
            failure = errors.bad_address(offer)
        except (httpx2.HTTPError, openai.OpenAIError):
            failure = errors.broken(offer, Phrase("answer_unreadable"))
        raise failure

    async def close(self) -> None:
        await self._pool.aclose()

    def _client(self, offer: Offer, key: str | None) -> openai.AsyncOpenAI:
        if key and not (key.isascii() and key.isprintable()):
            raise errors.bad_key(offer)
        place = offer.provider.base_url, key
        if place not in self._clients:
            self._clients[place] = self._connect(*place)
        return self._clients[place]

    def _connect(self, base_url: str, key: str | None) -> openai.AsyncOpenAI:
        # The client requires a key; it is removed from requests to servers that need none.
        pool = self._pool
        client = openai.AsyncOpenAI(api_key=key or "none", base_url=base_url, max_retries=0, http_client=pool)
        # If they were read from the environment, every provider would receive them.
        client.organization = client.project = None
        return client
