"""Token counts: known values, both languages, and texts that break naive counters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.adapters.tokens import ENCODINGS, EncodingTokens
from roomlore.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("encoding", "text", "tokens"),
    [
        ("cl100k_base", "hello world", 2),
        ("cl100k_base", "", 0),
        ("cl100k_base", "a\0b", 3),
        ("cl100k_base", "<|endoftext|>", 7),
        ("cl100k_base", "\ud800", 1),
        ("o200k_base", "hello world", 2),
        ("o200k_base", "你好,世界", 3),
        ("o200k_harmony", "hello world", 2),
        ("qwen3.5", "order 20261130", 10),
    ],
)
def test_known_counts(encoding, text, tokens):
    assert EncodingTokens(encoding).count([text]) == [tokens]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_megabyte_is_counted(encoding):
    latin, chinese = EncodingTokens(encoding).count(["a" * (1 << 20), "你好" * (1 << 18)])
    assert 0 < latin <= 1 << 20
    assert 1 << 18 <= chinese <= 1 << 21


@given(st.lists(st.text(alphabet=st.characters(), max_size=40), max_size=8))
def test_a_batch_is_each_text_alone(texts):
    counter, many = EncodingTokens(), texts * 3  # more than are counted one by one
    assert counter.count(many) == [counter.count([text])[0] for text in many]


def test_an_unknown_encoding_is_named():
    with pytest.raises(InvalidInput, match=r"'p50k'.*cl100k_base, o200k_base"):
        EncodingTokens("p50k")


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("gpt-5.4-mini", 5, 5),
        ("openai/gpt-4o", 5, 5),
        ("o3", 5, 5),
        ("gpt-4-turbo", 5, 5),
        ("gpt-oss-120b", 5, 5),
        ("Qwen/Qwen3.5-27B", 10, 11),
        ("qwen3-8b", 10, 13),
        ("meta-llama/Llama-3.3-70B-Instruct", 5, 13),
        ("deepseek-chat", 5, 13),
        ("mistral-small", 10, 13),
        ("claude-sonnet-5", 5, 5),
        ("our-own-model", 5, 5),
    ],
)
def test_a_model_known_by_name_is_not_counted_short(name, least, most):
    (count,) = EncodingTokens().for_models([name]).count(["order 20261130"])
    assert least <= count <= most


def test_of_several_models_the_most_is_counted():
    text = "order 20261130 " * 40
    several = EncodingTokens().for_models(["chat", "gpt-4o", "qwen3.5-flash"]).count([text, ""])
    assert several == EncodingTokens().for_models(["qwen3.5-flash"]).count([text, ""])
    assert several[0] > 1.5 * EncodingTokens().count([text])[0]
