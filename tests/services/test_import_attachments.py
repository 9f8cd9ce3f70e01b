"""Attachments of imports: files of exports described by a double at the port, stored, searched and shown."""

import asyncio
import json
import zipfile

import pytest

import roomlore
from roomlore.core.attachments import Attachment
from roomlore.core.records import to_line

ROOM = "4242"
PICTURE, VOICE = b"\x89PNG hut", b"OggS bring the rope"


class Describer:
    """Says of a picture what its bytes say, of a voice message its words, and fails or waits where it is told to."""

    def __init__(self, fails: str = "") -> None:
        self.asked: list[tuple[Attachment, bytes]] = []
        self.at_once = self.most_at_once = 0
        self._fails = fails

    async def describe(self, attachment: Attachment, content: bytes) -> str | None:
        self.asked.append((attachment, content))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self._fails and self._fails in attachment.name:
            raise RuntimeError("no such model")
        if attachment.type == "file":
            return None
        return "  the way to the Kestrel hut " if attachment.type == "picture" else "bring the\nrope on Friday"


def _said(number: int, **told: object) -> dict[str, object]:
    at = {"date": f"2024-05-01T10:0{number}:00", "date_unixtime": str(1714550400 + 60 * number)}
    return {"id": number, "type": "message", "from": "Ann", "from_id": "user11", "text": "", **at, **told}


@pytest.fixture
def telegram(tmp_path):
    """A folder as Telegram Desktop writes it."""
    folder = tmp_path / "ChatExport"
    (folder / "photos").mkdir(parents=True)
    (folder / "photos" / "photo_1.jpg").write_bytes(PICTURE)
    (folder / "voice.ogg").write_bytes(VOICE)
    (folder / "plan.pdf").write_bytes(b"%PDF")
    (tmp_path / "secret.jpg").write_bytes(b"not of the export")
    chat = {
        "id": 4242,
        "type": "private_group",
        "name": "Hikers",
        "messages": [
            _said(1, photo="photos/photo_1.jpg", text="look"),
            _said(2, file="voice.ogg", media_type="voice_message", mime_type="audio/ogg"),
            _said(3, file="plan.pdf", file_name="plan.pdf", mime_type="application/pdf"),
            _said(4, photo="../secret.jpg"),
            _said(5, photo="(File not included. Change data exporting settings to download.)"),
        ],
    }
    (folder / "result.json").write_text(json.dumps(chat), encoding="utf-8")
    return folder


def _zipped(folder, tmp_path):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*"):
            archive.write(file, f"ChatExport/{file.relative_to(folder).as_posix()}")
    return path


@pytest.mark.parametrize("packed", [False, True])
async def test_the_files_of_an_export_are_described_and_read_like_text(packed, telegram, tmp_path):
    describer = Describer()
    path = _zipped(telegram, tmp_path) if packed else telegram
    async with roomlore.open("sqlite://", background=False, describer=describer) as lore:
        report = await lore.imports.run(path)
        assert (report.added, report.attachments, report.described, report.undescribed) == (5, 5, 2, 0)
        assert {(one.name, content) for one, content in describer.asked} == {
            ("photo_1.jpg", PICTURE), ("voice.ogg", VOICE), ("plan.pdf", b"%PDF"),
        }  # fmt: skip
        first, second, *_ = await lore.messages.page(ROOM)
        assert first.metadata["attachments"] == [
            {
                "type": "picture",
                "name": "photo_1.jpg",
                "file": "photos/photo_1.jpg",
                "description": "the way to the Kestrel hut",
            }
        ]
        assert second.tokens > 4
        await lore.messages.add(roomlore.Message(id="9", room_id=ROOM, sender_id="bob", text="where to?"))
        shown = (await lore.context.build(ROOM, "9", strategy="recent")).to_prompt()
        assert "Ann: look [picture photo_1.jpg: the way to the Kestrel hut]" in shown
        assert "Ann: [voice message voice.ogg: bring the rope on Friday]" in shown
        assert "Ann: [file: plan.pdf]" in shown
        found = await lore.messages.search(ROOM, "kestrel hut")
        assert found.hits[0].message.id == "1"
        assert (await lore.messages.search(ROOM, "rope")).hits[0].message.id == "2"


def _node(key: str, above: str | None, below: list[str], **said: object) -> dict[str, object]:
    message = {"id": key, "author": {"role": "user"}, "create_time": 1714550400.0, **said}
    return {"id": key, "parent": above, "children": below, "message": message if said else None}


@pytest.fixture
def chatgpt(tmp_path):
    """A folder as ChatGPT's export has it: uploads beside the conversations, pictures and recordings in folders."""
    folder = tmp_path / "ChatExport"
    (folder / "dalle-generations").mkdir(parents=True)
    (folder / "c1" / "audio").mkdir(parents=True)
    (folder / "c1" / "audio" / "deep").mkdir()
    (folder / "file-Abc123Def456-hut.png").write_bytes(PICTURE)
    (folder / "file-Pdf123Def456-plan.pdf").write_bytes(b"%PDF")
    (folder / "dalle-generations" / "file-Gen123Def456-0b1c.webp").write_bytes(b"RIFF made")
    (folder / "c1" / "audio" / "file_000000001234abcd-9f.wav").write_bytes(VOICE)
    (folder / "c1" / "audio" / "deep" / "file-Deep23Def456-x.png").write_bytes(b"too deep")
    upload = {"id": "file-Abc123Def456", "name": "hut.png", "mimeType": "image/png"}
    plan = {"id": "file-Pdf123Def456", "name": "plan.pdf", "mime_type": "application/pdf"}
    shown = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-Abc123Def456"}
    made = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file-Gen123Def456"}
    said = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_000000001234abcd"}
    talk = {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": said}
    gone = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-Gone23Def456"}
    deep = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-Deep23Def456"}
    mapping = {
        "root": _node("root", None, ["a"]),
        "a": _node(
            "a", "root", ["b"], content={"content_type": "multimodal_text", "parts": [shown, "哪里？ Where is it?"]},
            metadata={"attachments": [upload, plan]},
        ),
        "b": _node("b", "a", ["c"], content={"content_type": "multimodal_text", "parts": [made, talk]}),
        "c": _node("c", "b", [], content={"content_type": "multimodal_text", "parts": [gone, deep]}),
    }  # fmt: skip
    told = [{"title": "Hut", "conversation_id": "c1", "mapping": mapping, "current_node": "c"}]
    (folder / "conversations.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


@pytest.mark.parametrize("packed", [False, True])
async def test_the_files_of_chatgpts_export_are_found_by_their_ids(packed, chatgpt, tmp_path):
    describer = Describer()
    async with roomlore.open("sqlite://", background=False, describer=describer) as lore:
        report = await lore.imports.run(_zipped(chatgpt, tmp_path) if packed else chatgpt)
        assert (report.added, report.attachments, report.described, report.undescribed) == (3, 6, 3, 0)
        assert {(one.type, one.name, content) for one, content in describer.asked} == {
            ("picture", "hut.png", PICTURE),
            ("file", "plan.pdf", b"%PDF"),
            ("picture", "sediment://file-Gen123Def456", b"RIFF made"),
            ("voice", "sediment://file_000000001234abcd", VOICE),
        }
        first, second, third = await lore.messages.page("c1")
        assert first.metadata["attachments"][0] == {
            "type": "picture",
            "name": "hut.png",
            "mime_type": "image/png",
            "file": "file-Abc123Def456-hut.png",
            "description": "the way to the Kestrel hut",
        }
        assert first.metadata["caption"] == "hut.png plan.pdf"
        assert [one["file"] for one in second.metadata["attachments"]] == [
            "dalle-generations/file-Gen123Def456-0b1c.webp", "c1/audio/file_000000001234abcd-9f.wav",
        ]  # fmt: skip
        assert ["file" in one for one in third.metadata["attachments"]] == [False, False]


async def test_conversations_without_their_files_are_the_same_messages(chatgpt, tmp_path):
    alone = tmp_path / "conversations.json"
    alone.write_bytes((chatgpt / "conversations.json").read_bytes())
    async with roomlore.open("sqlite://", background=False) as lore:
        assert (await lore.imports.run(alone)).added == 3
        report = await lore.imports.run(chatgpt)
        assert (report.duplicates, report.conflicts, report.attachments) == (3, (), 0)


async def test_what_a_model_reads_of_attachments_counts_in_the_budget():
    held = [{"type": "picture", "name": f"{'a long name of a picture ' * 20}{number}.jpg"} for number in range(9)]
    told = [
        roomlore.Message(id="1", room_id=ROOM, sender_id="ann", text="", metadata={"attachments": held}),
        roomlore.Message(id="2", room_id=ROOM, sender_id="ann", text="look"),
        roomlore.Message(id="3", room_id=ROOM, sender_id="bob", text="where to?"),
    ]
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(told)
        first = (await lore.messages.page(ROOM))[0]
        assert first.tokens > 4 * 100
        small = await lore.context.build(ROOM, "3", strategy="recent", max_tokens=100)
        assert [one.message.id for one in small.messages] == ["2"]
        whole = await lore.context.build(ROOM, "3", strategy="recent", max_tokens=first.tokens + 100)
        assert "a long name" in whole.to_prompt()


async def test_importing_again_asks_about_new_messages_only_and_conflicts_with_nothing(telegram):
    async with roomlore.open("sqlite://", background=False, describer=Describer()) as lore:
        await lore.imports.run(telegram)
        chat = json.loads((telegram / "result.json").read_text(encoding="utf-8"))
        chat["messages"].append(_said(6, photo="photos/photo_1.jpg"))
        (telegram / "result.json").write_text(json.dumps(chat), encoding="utf-8")
        lore.imports._describer = again = Describer()
        report = await lore.imports.run(telegram)
        assert (report.added, report.duplicates, report.conflicts, report.described) == (1, 5, (), 1)
        assert len(again.asked) == 1


async def test_an_edit_keeps_what_was_said_of_the_attachments(telegram):
    async with roomlore.open("sqlite://", background=False, describer=Describer()) as lore:
        await lore.imports.run(telegram)
        before = await lore.messages.page(ROOM)
        chat = json.loads((telegram / "result.json").read_text(encoding="utf-8"))
        chat["messages"] = [
            one | {"text": "新的 words", "edited": "2024-06-01T10:00:00"} if one["type"] == "message" else one
            for one in chat["messages"]
        ]
        (telegram / "result.json").write_text(json.dumps(chat), encoding="utf-8")
        assert (await lore.imports.run(telegram)).edited == len(before)
        after = await lore.messages.page(ROOM)
    assert {one.text for one in after} == {"新的 words"}
    assert [one.metadata.get("attachments") for one in after] == [one.metadata.get("attachments") for one in before]
    assert any("description" in held for one in after for held in one.metadata.get("attachments", []))


async def test_an_import_without_a_describer_and_one_with_it_are_the_same_messages(telegram):
    async with roomlore.open("sqlite://", background=False) as lore:
        first = await lore.imports.run(telegram)
        assert (first.described, first.undescribed) == (0, 0)
        lore.imports._describer = Describer()
        second = await lore.imports.run(telegram)
        assert (second.duplicates, second.conflicts) == (5, ())


async def test_a_describer_that_fails_costs_no_message(telegram):
    async with roomlore.open("sqlite://", background=False, describer=Describer(fails="voice")) as lore:
        report = await lore.imports.run(telegram)
        assert (report.added, report.described, report.undescribed) == (5, 1, 1)


async def test_what_was_described_survives_an_export_of_roomlore(telegram, tmp_path):
    async with roomlore.open("sqlite://", background=False, describer=Describer()) as lore:
        await lore.imports.run(telegram)
        lines = [to_line(one) async for one in lore.messages.export(ROOM)]
        before = await lore.messages.page(ROOM)
    (tmp_path / "out.jsonl").write_bytes(b"".join(lines))
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.imports.run(tmp_path / "out.jsonl")
        after = await lore.messages.page(ROOM)
    assert [one.metadata for one in after] == [one.metadata for one in before]


async def test_files_in_a_zip_of_whatsapp_and_a_folder_of_discord_are_found(tmp_path):
    with zipfile.ZipFile(tmp_path / "WhatsApp Chat with Hikers.zip", "w") as archive:
        archive.writestr(
            "WhatsApp Chat with Hikers.txt",
            "01/05/2024, 10:00 - Ann: PTT-20240501-WA0001.opus (file attached)\n01/05/2024, 10:01 - Ann: hello\n",
        )
        archive.writestr("PTT-20240501-WA0001.opus", VOICE)
    said = {
        "id": "1",
        "type": "Default",
        "timestamp": "2024-05-01T10:00:00+00:00",
        "content": "",
        "author": {"id": "9", "name": "ann"},
        "attachments": [{"id": "5", "url": "trips.json_Files/map-1F.png", "fileName": "map.png"}],
    }
    export = {"guild": {"id": "1"}, "channel": {"id": "7001", "type": "GuildTextChat"}, "messages": [said]}
    (tmp_path / "discord" / "trips.json_Files").mkdir(parents=True)
    (tmp_path / "discord" / "trips.json_Files" / "map-1F.png").write_bytes(PICTURE)
    (tmp_path / "discord" / "trips.json").write_text(json.dumps(export), encoding="utf-8")
    describer = Describer()
    async with roomlore.open("sqlite://", background=False, describer=describer) as lore:
        await lore.imports.run(tmp_path / "WhatsApp Chat with Hikers.zip")
        await lore.imports.run(tmp_path / "discord")
    assert [(one.type, one.name, content) for one, content in describer.asked] == [
        ("voice", "PTT-20240501-WA0001.opus", VOICE),
        ("picture", "map.png", PICTURE),
    ]
