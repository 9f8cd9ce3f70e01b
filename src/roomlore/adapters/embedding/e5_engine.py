"""multilingual-e5-small as a function from one text to one vector, run by ONNX Runtime."""

from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as refusals

from roomlore.adapters.embedding.e5_graph import INPUT, OUTPUT, encode_graph
from roomlore.adapters.embedding.e5_tokens import E5Tokens
from roomlore.adapters.embedding.e5_weights import E5Weights, Floats
from roomlore.core.errors import ModelUnavailable

# The model reads up to 512, but finds messages no better for it, and takes more than twice as long (ADR 0008).
_MOST_TOKENS = 256
_MARKS = 2
_CHARACTERS_A_TOKEN = 16
_ERRORS_ONLY = 3


class E5Engine:
    """The model, ready to run; may be called from several threads at once. Reading it takes about half a second.

    Raises `ModelUnavailable` where the file is damaged or ONNX Runtime is too old.
    """

    def __init__(self, path: Path) -> None:
        self._weights = weights = E5Weights(path)
        self._tokens = E5Tokens(weights.vocabulary)
        self._session = _session(encode_graph(weights))
        places = weights.numbers("emb.pos").reshape(weights.sizes.positions, -1)
        self._places = places + weights.numbers("emb.type")[: weights.sizes.hidden]

    def vector(self, text: str) -> Floats:
        """(384,), of length 1. What lies beyond the first 256 tokens of the text is not read."""
        mean: Floats = self._session.run([OUTPUT], {INPUT: self._input(text)})[0][0]
        return mean / np.linalg.norm(mean)

    def _input(self, text: str) -> Floats:
        most = _MOST_TOKENS - _MARKS
        numbers = self._tokens.numbers(text[: most * _CHARACTERS_A_TOKEN])[:most]
        vocabulary = self._weights.vocabulary
        last = len(numbers) + 1
        # The graph wants both marks first; where a token stands is told by its place alone.
        vectors = self._weights.words(np.array([vocabulary.start, vocabulary.end, *numbers], np.int64))
        vectors += self._places[[0, last, *range(1, last)]]
        return vectors[None]


_engines: WeakValueDictionary[Path, E5Engine] = WeakValueDictionary()
_reading = Lock()


def shared_engine(path: Path) -> E5Engine:
    """The one engine of this process, for as long as somebody holds it. Raises `ModelUnavailable`."""
    with _reading:
        engine = _engines.get(path)
        if engine is None:
            engine = _engines[path] = E5Engine(path)
        return engine


def _session(graph: bytes) -> onnxruntime.InferenceSession:
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    # Texts run side by side, each on one thread: nothing to wait for, and no thread spins between texts.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except (refusals.Fail, refusals.InvalidGraph, refusals.NotImplemented) as error:
        advice = "pip install --upgrade 'roomlore[embeddings]'"
        raise ModelUnavailable(f"ONNX Runtime {onnxruntime.__version__} cannot run the model: {advice}.") from error
