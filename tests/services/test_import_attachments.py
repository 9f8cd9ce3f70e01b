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
        assert (report.added, report.described, report.undescribed) == (5, 2, 0)
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
