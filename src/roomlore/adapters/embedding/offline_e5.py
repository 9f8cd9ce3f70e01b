"""multilingual-e5-small on ONNX Runtime: the engine of this process, and the port `Embedder` over it."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as refusals

from roomlore.adapters.embedding.e5_model import INPUT, OUTPUT, E5Tokens, E5Weights, Floats, encode_graph
from roomlore.core.errors import ModelUnavailable
from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.language import TextKind

# The model reads up to 512, but 512 finds messages no better and takes more than twice as long (ADR 0008).
_MAX_TOKENS = 256
_MARKS = 2
_CHARACTERS_A_TOKEN = 16
_ERRORS_ONLY = 3


class E5Engine:
    """The model, ready to run; thread-safe. Reading it takes about half a second.

    Raises `ModelUnavailable` if the file is damaged or ONNX Runtime is too old.
    """

    def __init__(self, path: Path) -> None:
        self._weights = weights = E5Weights(path)
        self._tokens = E5Tokens(weights.vocabulary)
        self._session = _session(encode_graph(weights))
        places = weights.numbers("emb.pos").reshape(weights.sizes.positions, -1)
        self._places = places + weights.numbers("emb.type")[: weights.sizes.hidden]

    def vector(self, text: str) -> Floats:
        """Return a vector (384,) of length 1. Only the first 256 tokens of the text are read."""
        mean: Floats = self._session.run([OUTPUT], {INPUT: self._input(text)})[0][0]
        return mean / np.linalg.norm(mean)

    def _input(self, text: str) -> Floats:
        most = _MAX_TOKENS - _MARKS
        numbers = self._tokens.numbers(text[: most * _CHARACTERS_A_TOKEN])[:most]
        vocabulary = self._weights.vocabulary
        last = len(numbers) + 1
        # The graph takes both special tokens first; the position of a token is an input of its own.
        vectors = self._weights.words(np.array([vocabulary.start, vocabulary.end, *numbers], np.int64))
        vectors += self._places[[0, last, *range(1, last)]]
        return vectors[None]


_engines: WeakValueDictionary[Path, E5Engine] = WeakValueDictionary()
_reading = Lock()


def shared_engine(path: Path) -> E5Engine:
    """Return the one engine of this process, shared while it is referenced. Raises `ModelUnavailable`."""
    with _reading:
        engine = _engines.get(path)
        if engine is None:
            engine = _engines[path] = E5Engine(path)
        return engine


def _session(graph: bytes) -> onnxruntime.InferenceSession:
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    # Texts run in parallel, each on one thread, so no thread waits for another or spins between texts.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except (refusals.Fail, refusals.InvalidGraph, refusals.NotImplemented) as error:
        advice = "pip install --upgrade 'roomlore[embeddings]'"
        raise ModelUnavailable(f"ONNX Runtime {onnxruntime.__version__} cannot run the model: {advice}.") from error


_MODEL = EmbeddingModel(name="multilingual-e5-small q4 int8", dimensions=384)
_MAX_THREADS = 4
_SLICE = 64


class OfflineE5:
    """The port `Embedder`. The vector of a text depends on that text alone, not on the batch.

    Queries have their own threads, so that a search does not wait for indexing. A chat message takes a few
    milliseconds, the longest text about 50. The event loop is never blocked.
    """

    def __init__(self, weights: Path, *, threads: int = 0) -> None:
        threads = threads or min(os.cpu_count() or 1, _MAX_THREADS)
        self._path = weights
        self._pools: Mapping[TextKind, ThreadPoolExecutor] = {
            "query": ThreadPoolExecutor(threads, "embed-query"),
            "passage": ThreadPoolExecutor(threads, "embed-passage"),
        }
        self._engine: E5Engine | None = None

    @property
    def model(self) -> EmbeddingModel:
        """The embedding model: its name and the length of its vectors."""
        return _MODEL

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return vectors (len(texts), 384), each row of length 1, also for an empty text. Only the first 256 tokens of
        a text are read.

        Raises `ModelUnavailable` if the model cannot be read.
        """
        rows = np.empty((len(texts), _MODEL.dimensions), np.float32)
        if not texts:
            return rows
        engine = await asyncio.get_running_loop().run_in_executor(self._pools[kind], self._read)
        # Texts of similar length run together, so that no thread waits long for another at the end of a batch.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), _SLICE):
            places = order[start : start + _SLICE]
            rows[places] = await self._slice(engine, [f"{kind}: {texts[place]}" for place in places], kind)
        return rows

    async def close(self) -> None:
        """Wait for the texts that are being processed and drop those that wait."""
        for pool in self._pools.values():
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)
        self._engine = None

    async def _slice(self, engine: "E5Engine", prompts: Sequence[str], kind: TextKind) -> Vectors:
        loop, pool = asyncio.get_running_loop(), self._pools[kind]
        return np.stack(await asyncio.gather(*(loop.run_in_executor(pool, engine.vector, each) for each in prompts)))

    def _read(self) -> "E5Engine":

        self._engine = engine = shared_engine(self._path)
        return engine
