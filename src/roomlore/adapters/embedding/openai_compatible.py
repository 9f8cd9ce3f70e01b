"""Embeddings from any server that speaks OpenAI's protocol."""

import asyncio
import hashlib
import json
import logging
import operator
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import numpy as np
import openai
from numpy.typing import NDArray

from roomlore.adapters.tls import trusted
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.core.texts import Phrase
from roomlore.ports.language import TextKind

log = logging.getLogger(__name__)

# A user waits for the vector of a query, nobody for that of a message.
_RETRIES: Mapping[TextKind, int] = {"query": 1, "passage": 2}
_PATIENCE: Mapping[TextKind, int] = {"query": 1, "passage": 3}
# A token is at least one byte of UTF-8, so these hold OpenAI's limits of 8,191 tokens a text and 300,000 a request.
_TEXT_BYTES = 8_000
_BATCH_BYTES = 200_000
_ADVICE: Mapping[int, str] = {
    400: "advice_check_embedding_model",
    401: "advice_check",
    403: "advice_check_rights",
    404: "advice_check_embedding_url",
    422: "advice_check_embedding_model",
    429: "advice_limit_reached",
}
_REFUSALS = {400, 413, 422}
"""The server answers and does not accept these texts."""


def _connect(url: str, *, api_key: str, timeout_seconds: float) -> openai.AsyncOpenAI:
    """Return a client for the server at `url`. It follows no redirects, so that texts and key are not sent
    elsewhere."""
    if not _is_web_address(url):
        raise InvalidInput("embedding_url_invalid")
    if not (api_key.isascii() and api_key.isprintable()):
        raise InvalidInput("embedding_api_key_invalid")
    # The client requires a key; servers that need none ignore it.
    pool = openai.DefaultAsyncHttpxClient(follow_redirects=False, verify=trusted())
    return openai.AsyncOpenAI(api_key=api_key or "none", base_url=url, timeout=timeout_seconds, http_client=pool)


class OpenAICompatible:
    """The port `Embedder` on a server at `url` with OpenAI's protocol (`POST {url}/embeddings`). Texts longer than
    8,000 bytes of UTF-8 are truncated. Answers are checked.

    `dimensions`: the length of its vectors. `batch`: the most texts in a request. `timeout_seconds` is for one request.
    The prefixes are put before each text unchanged. An empty `api_key` is for servers that need none; `key_name` names
    it in errors. Raises `InvalidInput` for an invalid url or key. No request is sent yet.
    """

    def __init__(
        self,
        *,
        url: str,
        api_key: str,
        model: str,
        dimensions: int,
        batch: int = 64,
        key_name: str = "embedding_api_key",
        timeout_seconds: float = 20.0,
        query_prefix: str = "",
        passage_prefix: str = "",
    ) -> None:
        client = self._client = _connect(url, api_key=api_key, timeout_seconds=timeout_seconds)
        prefixes: Mapping[TextKind, str] = {"query": query_prefix, "passage": passage_prefix}
        self._asked = model
        self._model = EmbeddingModel(name=_name(model, prefixes), dimensions=dimensions)
        self._most = batch
        self._key_name = key_name
        self._timeout_seconds = timeout_seconds
        self._prefixes = prefixes
        self._server = _without_secrets(str(client.base_url))

    @property
    def model(self) -> EmbeddingModel:
        """The embedding model: the server's model (with its prefixes, if any) and the length of its vectors."""
        return self._model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return vectors (len(texts), dimensions), each row of length 1. An empty text is sent as a space, since
        servers refuse it.

        A failed request is repeated: once for a query, within the time of one request, and twice for passages. A
        refused one is halved until the server accepts, and later requests are no larger. Raises `InvalidInput` if a
        single text is refused, and `ModelUnavailable` if the server does not answer in time, refuses, or gives an
        unusable answer. The error says what to do and never quotes the texts, the key or the server's own text.
        """
        fitted = [_fit(self._prefixes[kind] + text) for text in texts]
        made = np.empty((len(texts), self._model.dimensions), np.float32)
        size, done, refused_to = self._most, 0, 0
        while done < len(texts):
            batch = _batch(fitted, done, size)
            try:
                answer = await self._ask(batch, kind)
            except InvalidInput:
                if len(batch) == 1:
                    raise
                size, refused_to = len(batch) // 2, max(refused_to, done + len(batch))
                continue
            made[done : done + len(batch)] = await asyncio.to_thread(self._checked, answer, len(batch))
            done += len(batch)
            if refused_to and done >= refused_to:
                self._remember(size)
                refused_to = 0
        return made

    def _remember(self, size: int) -> None:
        """Note that requests may hold so many texts: all those of a refused request were accepted in smaller ones."""
        if size < self._most:
            self._most = size
            details = {"texts": size, "server": self._server}
            log.warning("an embedding server refuses larger requests; smaller ones are sent", extra=details)

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, batch: list[str], kind: TextKind) -> bytes:
        embeddings = self._client.with_options(max_retries=_RETRIES[kind]).embeddings
        try:
            async with asyncio.timeout(self._timeout_seconds * _PATIENCE[kind]):
                answer = await embeddings.with_raw_response.create(
                    input=batch, model=self._asked, encoding_format="float"
                )
                return answer.content
        except openai.APIStatusError as error:
            status, usual = error.status_code, "advice_try_later"
            code = "advice_embedding_redirects" if 300 <= status < 400 else _ADVICE.get(status, usual)
            problem = self._problem("answers_with_status", status=status, advice=Phrase(code, key=self._key_name))
            raise (InvalidInput(str(problem)) if status in _REFUSALS else problem) from error
        except (openai.APITimeoutError, TimeoutError) as error:
            raise self._problem("embeddings_late") from error
        except openai.OpenAIError as error:
            raise self._problem("embeddings_unreachable") from error

    def _checked(self, answer: bytes, count: int) -> Vectors:
        rows = np.zeros((count, self._model.dimensions))
        missing = set(range(count))
        for place, numbers in self._rows(answer):
            if place not in missing:
                raise self._problem("embeddings_of_no_text")
            missing.remove(place)
            rows[place] = numbers
        if missing:
            raise self._problem("embeddings_missing", count=count - len(missing), texts=count)
        return self._of_length_one(rows)

    def _rows(self, answer: bytes) -> Iterator[tuple[int, NDArray[np.float64]]]:
        try:
            for row in json.loads(answer)["data"]:
                yield operator.index(row["index"]), self._sized(np.array(row["embedding"], np.float64))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise self._problem("embeddings_none") from error

    def _sized(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        if numbers.shape != (self._model.dimensions,):
            raise self._problem("embeddings_of_other_size", size=numbers.size, expected=self._model.dimensions)
        return numbers

    def _of_length_one(self, rows: NDArray[np.float64]) -> Vectors:
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise self._problem("embeddings_pointless")
        made: Vectors = (rows / lengths).astype(np.float32)
        return made

    def _problem(self, code: str, /, **fields: object) -> ModelUnavailable:
        return ModelUnavailable("embedding_server_failed", server=self._server, what=Phrase(code, **fields))


def _name(model: str, prefixes: Mapping[TextKind, str]) -> str:
    """Return the model's name. Vectors with other prefixes belong to another model."""
    if not any(prefixes.values()):
        return model
    mark = hashlib.sha256(json.dumps(sorted(prefixes.items())).encode()).hexdigest()
    return f"{model} (prefixes {mark[:8]})"


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")


def _fit(text: str) -> str:
    """Return the text as it can be sent: without lone surrogates, not empty, not too long."""
    encoded = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    return encoded[:_TEXT_BYTES].decode(errors="ignore") or " "


def _batch(texts: Sequence[str], start: int, most: int) -> list[str]:
    """Return the texts of the next request, which begins with the one at `start`."""
    batch = [texts[start]]
    size = len(batch[0].encode())
    for text in texts[start + 1 : start + most]:
        size += len(text.encode())
        if size > _BATCH_BYTES:
            break
        batch.append(text)
    return batch
