"""What a message without words holds."""

import pytest

from roomlore.core.attachments import (
    as_submitted,
    attachment,
    caption_of,
    media_type_of,
    undescribed,
    with_attachments,
)
from roomlore.core.intake import content_hash, sort_out
from roomlore.core.memory.reading import own_words
from roomlore.core.search.query import indexed_words
from roomlore_testkit.builders import message
from roomlore_testkit.case_table import all_cases


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({}, ("", "")),
        ({"caption": "🦊", "media_type": "sticker"}, ("sticker", "🦊")),
        ({"photo": "photos/photo_1.jpg"}, ("picture", "")),
        ({"caption": "map.png", "attachments": [{"name": "map.png", "url": "x"}]}, ("picture", "map.png")),
        ({"type": "语音"}, ("voice", "")),
        ({"type": "表情"}, ("sticker", "")),
        ({"attachments": ["trip.mp4"]}, ("video", "trip.mp4")),
        ({"media_type": "video_file", "caption": "周五"}, ("video", "周五")),
        ({"caption": "contract.pdf"}, ("file", "contract.pdf")),
        ({"caption": 5, "attachments": [{"name": None}, 3], "photo": ["x"]}, ("", "")),
        ({"caption": "x" * 100_000 + ".png"}, ("file", "x" * 200)),
    ],
)
def test_what_the_export_says(metadata, wanted):
    assert attachment(message(1, text="", metadata=metadata)) == wanted


READ = [
    ("look", {"attachments": [{"type": "picture", "name": "map.png"}]}, "look [picture: map.png]"),
    ("看", {"attachments": [{"type": "picture", "caption": "山 🏔️"}]}, "看 [图片：山 🏔️]"),
    ("", {"caption": "map.png", "attachments": [{"type": "picture", "name": "map.png"}]}, "[picture: map.png]"),
    ("", {"caption": "Media omitted", "attachments": [{"type": "file"}]}, "Media omitted"),
    ("[图片:map.jpg]", {"attachments": [{"type": "picture", "name": "map.jpg"}]}, "[图片:map.jpg]"),
    ("[图片]", {"attachments": [{"type": "picture"}]}, "[图片]"),
    ("[图片]", {"attachments": [{"type": "picture", "description": "a\nhut"}]}, "[图片] [图片：a hut]"),
    ("", {"attachments": [{"name": "a.ogg", "description": "hello there"}]}, "[voice message a.ogg: hello there]"),
    ("six", {"attachments": [{"name": f"{n}.png"} for n in range(6)]},
     "six [picture: 0.png] [picture: 1.png] [picture: 2.png] [picture: 3.png] [+2]"),
    ("", {"caption": "Where?\nmap.png", "attachments": [{"name": "map.png"}]}, "Where? [picture: map.png]"),
    ("hm", {"attachments": "no list"}, "hm"),
    ("", {"attachments": [None, 5, {"type": 7, "name": ["x"]}]}, "[file] [file] [file]"),
]  # fmt: skip


def test_attachments_as_a_model_reads_them():
    with all_cases() as case:
        for text, metadata, wanted in READ:
            with case(repr(text), metadata):
                language = "zh" if "图" in wanted else "en"
                assert with_attachments(message(1, text=text, metadata=metadata), language) == wanted


def test_what_was_said_of_a_picture_is_found_and_extracted_and_changes_no_identity():
    plain = {"caption": "map.png", "attachments": [{"type": "picture", "name": "map.png"}]}
    described = {**plain, "attachments": [{**plain["attachments"][0], "description": "the way to the hut"}]}
    one, other = message(1, text="", metadata=plain), message(1, text="", metadata=described)
    assert caption_of(other) == "map.png\nthe way to the hut"
    assert "hut" in indexed_words(other)
    assert own_words(one) == ""
    assert own_words(other) == "[picture map.png: the way to the hut]"
    assert content_hash(one) == content_hash(other)
    assert content_hash(one) != content_hash(message(1, text="", metadata={**plain, "caption": "other"}))


CHANGES = [
    {"reactions": {"👍": 2}},
    {"pinned": True},
    {"attachments": [{"type": "picture", "name": "photo_7.jpg", "url": "https://c.example/7?expires=1"}]},
]


@pytest.mark.parametrize("later", CHANGES)
def test_what_changes_after_a_message_was_said_changes_no_identity(later):
    said = message(1, text="look", metadata={"kind": "20"})
    assert content_hash(said) == content_hash(message(1, text="look", metadata={"kind": "20"} | later))
    assert content_hash(said) != content_hash(message(1, text="look", metadata={"kind": "23"} | later))


def test_the_name_of_a_stickers_file_is_no_word_of_anybody():
    held = [{"type": "sticker", "caption": "👍"}]
    one, other = ({"caption": words, "attachments": held} for words in ("👍", "sticker.webp 👍"))
    assert content_hash(message(1, text="", metadata=one)) == content_hash(message(1, text="", metadata=other))


def test_what_an_earlier_version_stored_with_its_reactions_is_a_duplicate():
    said = message(1, text="look", metadata={"reactions": {"👍": 2}})
    former = content_hash(said, as_submitted)
    assert former != content_hash(said)
    assert sort_out([said], {said.id: former}).duplicates == [said.id]


def test_a_file_is_known_by_how_it_begins_and_not_by_its_name():
    with all_cases() as case:
        for content, known in (
            (b"\x89PNG\r\n\x1a\n..", ("image/png", "png")), (b"\xff\xd8\xff\xe0", ("image/jpeg", "jpg")),
            (b"GIF89a", ("image/gif", "gif")), (b"RIFF\x00\x00\x00\x00WEBPVP8", ("image/webp", "webp")),
            (b"RIFF\x00\x00\x00\x00WAVEfmt", ("audio/wav", "wav")), (b"OggS\x00", ("audio/ogg", "ogg")),
            (b"ID3\x04", ("audio/mpeg", "mp3")), (b"\xff\xfb\x90", ("audio/mpeg", "mp3")),
            (b"\x00\x00\x00\x20ftypM4A ", ("audio/mp4", "m4a")), (b"\x00\x00\x00\x20ftypisom", ("video/mp4", "mp4")),
            (b"\x1a\x45\xdf\xa3", ("video/webm", "webm")), (b"fLaC", ("audio/flac", "flac")),
            (b"", ("", "")), (b"<html>", ("", "")), (b"%PDF-1.7", ("", "")), (b"RIFF", ("", "")), (b"PNG", ("", "")),
            (b"<svg xmlns=", ("", "")), (b"MZ\x90", ("", "")),
        ):  # fmt: skip
            with case(content):
                assert media_type_of(content) == known


def test_what_is_left_to_describe():
    kinds = ("picture", "voice")
    with all_cases() as case:
        for listed, files, left in (
            ([{"type": "picture", "url": "http://a/b"}, {"type": "voice", "file": "v.ogg"}], True, [0, 1]),
            ([{"type": "picture", "url": "http://a/b"}, {"type": "voice", "file": "v.ogg"}], False, [0]),
            ([{"mime_type": "image/png", "url": "http://a/b"}], False, [0]),
            ([{"type": "picture"}, {"type": "sticker", "url": "http://a/b"}, {"type": "file", "url": "u"}], True, []),
            ([{"type": "picture", "url": "u", "description": ""}], True, []),
            ([{"type": "picture", "url": "u", "description": None}], True, [0]),
            ([{"type": "picture", "url": 7}, None, "a.png", 3, []], True, []),
            ("a.png", True, []), ({"url": "u"}, True, []), (None, True, []),
            ([{"type": "picture", "url": "u"}] * 30, False, list(range(20))),
        ):  # fmt: skip
            with case(listed):
                held = message(1, metadata={"attachments": listed})
                assert list(undescribed(held, kinds, files=files)) == left
