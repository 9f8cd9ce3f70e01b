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
