"""Writes the little of the ONNX format that one fixed network needs, so that the package `onnx` is not needed.

An ONNX file is one protocol-buffers message. The field numbers are those of onnx.proto3, IR version 8.
"""

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

CONTRIB = "com.microsoft"

_IR_VERSION = 8
_OPERATORS = {"": 17, CONTRIB: 1}
_ELEMENTS = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7}
_VARINT, _LENGTH, _FIXED32 = 0, 2, 5
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7

Attribute = int | float | Sequence[int]
Axis = int | str


class Graph:
    """Nodes and constants in the order in which they are added."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        """Numbers known beforehand; gives their name back."""
        shape = b"".join(_whole(1, size) for size in values.shape)
        content = _bytes(9, np.ascontiguousarray(values).tobytes())
        self._parts.append(_bytes(5, shape + _whole(2, _ELEMENTS[values.dtype.name]) + _text(8, name) + content))
        return name

    def add(self, operator: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Attribute) -> str:
        """A node with one output; gives its name back. An input named '' is left out."""
        self.split(operator, inputs, [output], domain, **attributes)
        return output

    def split(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Attribute
    ) -> Sequence[str]:
        """A node with several outputs; gives their names back."""
        ends = [_text(1, name) for name in inputs] + [_text(2, name) for name in outputs]
        settings = [_bytes(5, _attribute(name, value)) for name, value in attributes.items()]
        self._parts.append(_bytes(1, b"".join([*ends, _text(4, operator), *settings, _text(7, domain)])))
        return outputs

    def encode(self, *, inputs: Mapping[str, Sequence[Axis]], outputs: Mapping[str, Sequence[Axis]]) -> bytes:
        """The whole model as the bytes of an ONNX file; an axis is a size or, where it varies, a name. All float32."""
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
