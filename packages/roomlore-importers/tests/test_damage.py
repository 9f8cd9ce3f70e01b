"""Damage to an export never stops the import and costs only what it touches."""

import json
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import catalogue
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roomlore_importers import Bad, Parsed

QUICK = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@st.composite
def damaged_bytes(draw, data, start):
    """The data with a flip, a cut, a gap or garbage, none of it before `start`."""
    place = draw(st.integers(start, max(start, len(data) - 1)))
    kind = draw(st.sampled_from(("flip", "cut", "gap", "garbage")))
    if kind == "flip":
        return data[:place] + bytes([data[place] ^ draw(st.integers(1, 255))]) + data[place + 1 :] if data else data
    if kind == "cut":
        return data[:place]
    if kind == "gap":
        return data[:place] + data[place + draw(st.integers(1, 300)) :]
    return data[:place] + draw(st.binary(min_size=1, max_size=40)) + data[place:]


@st.composite
def damaged_lines(draw, lines):
    """(lines with some damaged, removed or inserted, numbers of the untouched)"""
    touched = draw(st.sets(st.integers(0, len(lines) - 1), max_size=2))
    out, whole = [], []
    for number, line in enumerate(lines):
        if draw(st.integers(0, 9)) == 0:
            out.append(draw(st.sampled_from((b"", b"???", b'{"broken', b"\xff\xfe", b"  ", b"[]", b"\x00"))))
        if number not in touched:
            out.append(line)
            whole.append(number)
        elif line and draw(st.booleans()):
            place = draw(st.integers(0, len(line) - 1))
            flipped = line[place] ^ draw(st.sampled_from((1, 2, 4, 16, 32, 128)))
            out.append(line[:place] + bytes([flipped]) + line[place + 1 :])
    return out, whole


def read(data, name):
    form = catalogue.FORMAT_OF[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        items = catalogue.items(path, format=form)
        for item in items[:: max(1, len(items) // 3)]:
            rest = catalogue.items(path, format=form, resume_from=json.loads(json.dumps(item.position)))
            assert rest == items[items.index(item) + 1 :]
    return items


def words(item):
    return item.message.sender_id, item.message.text


@QUICK
@given(st.data())
def test_no_untouched_line_is_lost(data):
    name = data.draw(st.sampled_from(catalogue.ONE_LINE_A_MESSAGE))
    raw = (catalogue.SAMPLES / name).read_bytes()
    lines = raw.removesuffix(b"\n").split(b"\n")
    alone = {
        number: [words(item) for item in read(line, name) if isinstance(item, Parsed)]
        for number, line in enumerate(lines)
    }
    out, whole = data.draw(damaged_lines(lines))
    found = Counter(words(item) for item in read(b"\n".join(out), name) if isinstance(item, Parsed))
    wanted = Counter(one for number in whole for one in alone[number])
    assert not wanted - found


@QUICK
@given(st.data())
def test_whatsapp_keeps_every_message_whose_lines_are_untouched(data):
    name = data.draw(st.sampled_from(catalogue.WHATSAPP))
    raw = (catalogue.SAMPLES / name).read_bytes()
    ends = [item.position["offset"] for item in read(raw, name)]
    blocks = [raw[start:end].rstrip(b"\r\n") for start, end in zip([0, *ends], ends, strict=False)]
    messages = [item.message for item in read(raw, name)]
    out, whole = data.draw(damaged_lines(blocks))
    found = [item.message for item in read(b"\n".join(out), name) if isinstance(item, Parsed)]
    for number in whole:
        one = messages[number]
        assert any(other.sender_id == one.sender_id and one.text in other.text for other in found)


@QUICK
@given(st.data())
def test_documents_keep_all_before_the_damage(data):
    name = data.draw(st.sampled_from(catalogue.DOCUMENTS))
    raw = (catalogue.SAMPLES / name).read_bytes()
    whole = [(item.position["offset"], item.message) for item in read(raw, name)]
    start = data.draw(st.sampled_from([2, *(end for end, _ in whole)]))
    damaged = data.draw(damaged_bytes(raw, start))
    found = [item.message for item in read(damaged, name) if isinstance(item, Parsed)]
    before = [message for end, message in whole if end <= start]
    assert len(found) >= len(before)
    for message, expected in zip(found, before, strict=False):
        assert message in (expected, with_ids_of_the_program(expected))


def with_ids_of_the_program(message):
    """In the sample of QQChatExporter only the messages of 10003, which come later, say that this is u_ccc."""
    return replace(message, mentions=tuple("u_ccc" if one == "10003" else one for one in message.mentions))


@QUICK
@given(st.data())
def test_a_chatgpt_conversation_keeps_what_is_before_the_damage(data):
    name = "conversations.json"
    raw = (catalogue.SAMPLES / name).read_bytes()
    texts = [item.message.text for item in read(raw, name)]
    ends = [raw.index(b"\n   }", raw.index(text.encode())) + 5 for text in texts]
    start = data.draw(st.sampled_from(ends))
    damaged = data.draw(damaged_bytes(raw, start))
    found = [item.message.text for item in read(damaged, name) if isinstance(item, Parsed)]
    wanted = [text for text, end in zip(texts, ends, strict=True) if end <= start]
    assert not set(wanted) - set(found)


@QUICK
@given(st.data())
def test_one_damaged_record_costs_one_record(data):
    """A flip inside one Telegram message: all the others are still there, each in its chat."""
    raw = (catalogue.SAMPLES / "result.json").read_bytes()
    items = read(raw, "result.json")
    number = data.draw(st.integers(1, 4))
    start, end = items[number - 1].position["offset"] + 12, items[number].position["offset"]
    place = data.draw(st.integers(start, end - 1))
    broken = raw[:place] + bytes([raw[place] ^ data.draw(st.integers(1, 127))]) + raw[place + 1 :]
    found = [item.message for item in read(broken, "result.json") if isinstance(item, Parsed)]
    for other, item in enumerate(items):
        assert other == number or item.message in found


@QUICK
@given(st.data())
def test_nothing_raises_on_any_bytes(data):
    name = data.draw(st.sampled_from(sorted(set(catalogue.FORMAT_OF) - catalogue.FOLDERS)))
    raw = (catalogue.SAMPLES / name).read_bytes()
    damaged = raw
    for _ in range(data.draw(st.integers(1, 4))):
        damaged = data.draw(damaged_bytes(damaged, 0))
    for item in read(damaged, name):
        assert isinstance(item, Parsed) or (item.reason and item.number >= 1)


@pytest.mark.parametrize("name", sorted(name for name in catalogue.FORMAT_OF if name.endswith(".csv")))
def test_a_table_may_end_inside_its_last_row(name):
    raw = (catalogue.SAMPLES / name).read_bytes().rstrip()
    before = [item.message for item in read(raw, name) if isinstance(item, Parsed)][:-1]
    for end in range(raw.rindex(b"\n") + 2, len(raw)):
        found = [item.message for item in read(raw[:end], name) if isinstance(item, Parsed)]
        assert found[: len(before)] == before


def test_a_cut_document_gives_everything_before_the_cut_and_one_bad(tmp_path):
    raw = (catalogue.SAMPLES / "telegram.json").read_bytes()
    whole = catalogue.messages(catalogue.SAMPLES / "telegram.json")
    path = tmp_path / "cut.json"
    path.write_bytes(raw[: raw.index(b'"id": 4,') + 200])
    items = catalogue.items(path)
    assert [item.message for item in items[:-1]] == whole[:3]
    assert isinstance(items[-1], Bad)
    assert "ends in the middle" in items[-1].reason
    assert items[-1].number == 4


def test_messages_after_a_damaged_chat_end_stay_in_their_own_chat(tmp_path):
    raw = (catalogue.SAMPLES / "result.json").read_bytes()
    end_of_first = raw.index(b"stickers/s.webp")
    damaged = raw[:end_of_first] + raw[end_of_first:].replace(b"]", b"!", 2)
    path = tmp_path / "result.json"
    path.write_bytes(damaged)
    rooms = {message.text: message.room_id for message in catalogue.messages(path)}
    assert rooms["Yes"] == "12"
    assert rooms["Who has the map?"] == "4242"
