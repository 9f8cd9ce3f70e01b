"""The network of multilingual-e5-small (a BERT encoder of 12 layers) as an ONNX graph in 8-bit whole numbers.

Input `tokens`: (1, length, 384), the vectors of the tokens with those of their places added, the mark of the start
first and that of the end second (their order is of no consequence: places are told by the vectors). Output `mean`:
(1, 384), the mean of the last layer.

Products are taken by `DynamicQuantizeMatMul`, which finds one scale for all numbers of its input. Two things make that
harmless. One text is run at a time, so that its vector depends on no other text. And the first two tokens, the marks,
whose activations between the two halves of the feed-forward part are up to thirty times those of any word, go through
`MatMulNBits` there, which finds a scale for each block of 32 numbers.
"""

import numpy as np

from roomlore.adapters.embedding.e5_weights import BLOCK, E5Weights, Floats
from roomlore.adapters.embedding.onnx_graph import CONTRIB, Graph

INPUT = "tokens"
OUTPUT = "mean"

# 7 bits: processors without VNNI add pairs of products in 16 bits, which 8 bits would overflow.
_LARGEST = 63
_EPSILON = 1e-12
_MARKS = 2
_INT8_COMPUTE = 4


def encode_graph(weights: E5Weights) -> bytes:
    """The network as the bytes of an ONNX file."""
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
    """The second half of the feed-forward part, the marks apart from the words."""
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
