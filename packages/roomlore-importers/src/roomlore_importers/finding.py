"""The exports in folders and zips: which files and folders are exports of their own, and which are left out."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from roomlore.core.errors import InvalidInput
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import LeftOut
from roomlore.ports.exports import ExportFile, ExportListing
from roomlore_importers import downloads, qq, slack, whatsapp
from roomlore_importers.export_files import UNREADABLE, Options, Source, is_zip, names_in, plain_name
from roomlore_importers.formats import ENDINGS, FORMATS, PAGE_ENDINGS, check_read, is_blank, page_of, told_by_looking

_DAYS_LOOKED_AT = 5
_HEAD = 1 << 12
_ATTACHMENTS = lazy_pattern(
    r"files|attachments|media|photos|images|videos|video_files|voice_messages|round_video_messages|voices|audio|stickers"
    r"|emojis|avatars|contacts|profile_pictures|stories|resources|uploads|dalle-generations|.*_files|__.*|chat_\d+",
    re.I,
)
"""Folders in which programs put what was sent in a chat, beside the file with the messages or below it."""
_SENT = {
    "whatsapp": lazy_pattern(r"\d{8}-.+|[A-Z]{3}-\d{8}-WA\d{4}.*"),
    "discord": lazy_pattern(r".+-[0-9A-F]{5}\.\w+"),
    "chatgpt": lazy_pattern(r"file[-_][A-Za-z0-9]{8,}.*"),
}
"""How programs name a file that was sent in a chat, beside the export or below it."""
_BESIDE = {
    "chatgpt": lazy_pattern(
        r"(?:user|user_settings|message_feedback|model_comparisons|shared_conversations|group_chats|shopping\w*|sora"
        r"|export_manifest)\.json"
    ),
    "zulip": lazy_pattern(r"(?:realm|attachment|analytics|migration_status|stats)\.json"),
    "googlechat": lazy_pattern(r"group_info\.json"),
}
"""What programs put beside their exports and is none of its own."""
_NO_CHAT = lazy_pattern(r"user_info\.json")
"""What describes an account and is no chat."""


_NEXT_PAGE = lazy_pattern(r"messages\d+")
_PAGES_OF = {"messages": "telegram", "export_results": "telegram", "chat": "chatgpt"}
"""The formats of the exports beside which pages of these names lie."""


def find(path: Path | str, format: str | None = None) -> ExportListing:  # noqa: A002
    """Return the exports at a path: a file, a folder or zip that is one export, or each export of a folder or zip of
    several, which may be of several programs. Zips inside a folder are looked into.

    `format`: a name from `FORMATS`, for exports of that format only. What was sent in a chat is no export of its own.
    Raise `InvalidInput` if there is no export.
    """
    form, place = known_name(format), Source(Path(path)).path
    if not place.is_dir() and not is_zip(place):
        return ExportListing([ExportFile(place, format=form)])
    search = _Search(place, form)
    search.run()
    if not search.found.exports and len(search.doubtful) == 1:
        # Opening it says what is wrong with it; with a format that the caller knows, it may be read.
        return ExportListing([search.doubtful[0]])
    if not search.found.exports:
        code = "export_of_format_not_in_folder" if format else "export_not_in_folder"
        raise search.error or InvalidInput(code, path=path, format=format)
    return search.found


def find_exports(path: Path | str, format: str | None = None) -> list[ExportFile]:  # noqa: A002
    """Return the exports at a path, as `find` does."""
    return find(path, format).exports


def known_name(form: str | None) -> str | None:
    """Return the name of a format. Raise `InvalidInput` for a name that none has."""
    if form is not None and form not in FORMATS:
        raise InvalidInput("export_format_unknown", value=repr(form), known=", ".join(FORMATS))
    return form


@dataclass(slots=True)
class _Folder:
    """A folder, also inside a zip. `name`: its place, with a slash at its end, or ''."""

    name: str
    files: list[str] = field(default_factory=list)
    folders: dict[str, "_Folder"] = field(default_factory=dict)

    @property
    def all_files(self) -> Iterator[str]:
        for file in self.files:
            yield self.name + file
        for folder in self.folders.values():
            yield from folder.all_files


def _tree(names: Sequence[str]) -> _Folder:
    root = _Folder("")
    for name in names:
        *folders, file = PurePosixPath(name).parts
        if file.startswith("._") or "__MACOSX" in folders:
            continue
        folder = root
        for part in folders:
            folder = folder.folders.setdefault(part, _Folder(f"{folder.name}{part}/"))
        folder.files.append(file)
    return root


class _Search:
    """The search in one folder or zip. `form`: the only format that is wanted. `doubtful`: files that may be exports of
    the wanted format though their content does not tell. `error`: the first reason why a file could not be read."""

    def __init__(self, place: Path, form: str | None) -> None:
        self._place = place
        self._packed = not place.is_dir()
        self._form = form
        self.found = ExportListing()
        self.doubtful: list[ExportFile] = []
        self.error: InvalidInput | None = None

    def run(self) -> None:
        self._visit(_tree(names_in(self._place)), frozenset())

    def _visit(self, folder: _Folder, above: frozenset[str]) -> None:
        """Take the exports of a folder and of those below. `above`: the formats of the exports in the folders above."""
        channels = self._channels(folder)
        if channels:
            self._take(folder.name, "slack")
        elif self._has_chunks(folder):
            self._take(folder.name, "qq-exporter")
            for name, below in folder.folders.items():
                if name != qq.CHUNKS:
                    self._leave_attachments(below, self._label(folder.name))
            return
        looked = self._looked_at(folder, slack.LISTS if channels else frozenset())
        here = frozenset(form for form, _ in looked.values() if form) | ({"slack"} if channels else frozenset())
        sent = self._sent(looked, folder, above | here)
        owner = self._label(folder.name)
        for name in sorted({*folder.files, *folder.folders}, key=_oldest_first):
            inside = folder.folders.get(name)
            if name in looked:
                self._decide(folder.name + name, *looked[name], owner if name in sent else "")
            elif inside and (name in channels or (here | above and _holds_attachments(name))):
                self._leave_attachments(inside, owner, days=name in channels)
            elif inside:
                self._visit(inside, above | here)
            else:
                self._visit_packed(folder.name + name)
        self._leave_pages(folder, here)

    def _leave_pages(self, folder: _Folder, formats: frozenset[str]) -> None:
        """Name the chats that were exported as HTML, unless the same export lies beside them in a form that is read.
        `formats`: of the exports of the folder. Telegram divides a chat into many pages; the first one stands for
        them."""
        for name in sorted(folder.files):
            plain, _, ending = name.rpartition(".")
            if f".{ending.lower()}" not in PAGE_ENDINGS or _NEXT_PAGE.fullmatch(plain):
                continue
            if f"{plain}.json" in folder.files or _PAGES_OF.get(plain.lower()) in formats:
                continue
            try:
                page = page_of(self._source(folder.name + name))
            except (*UNREADABLE, InvalidInput):
                continue
            if page is not None:
                self._leave(folder.name + name, page)
                self.error = self.error or InvalidInput(
                    "export_unreadable", path=self._label(folder.name + name), why=page
                )

    def _decide(self, name: str, form: str | None, reason: str, owner: str) -> None:
        """Take a file or leave it out. `owner`: the export in which it was sent."""
        if form is not None and owner:
            self._leave(name, _attachment(owner))
        elif form is not None:
            self._take(name, form)
        elif not owner:
            self._doubt(name, reason)

    def _channels(self, folder: _Folder) -> frozenset[str]:
        """Return the folders of the channels if this is the own folder of a Slack export, which holds its lists, or
        days of messages."""
        channels = {
            name: days
            for name, inside in folder.folders.items()
            if (days := [file for file in inside.files if slack.DAY.fullmatch(file)])
        }
        if not channels or not (not slack.LISTS.isdisjoint(folder.files) or self._has_days(folder, channels)):
            return frozenset()
        return frozenset(channels)

    def _has_days(self, folder: _Folder, channels: dict[str, list[str]]) -> bool:
        days = [f"{folder.name}{channel}/{day}" for channel, days in sorted(channels.items()) for day in days]
        return any(slack.is_day(self._head(day)) for day in days[:_DAYS_LOOKED_AT])

    def _head(self, name: str) -> bytes:
        try:
            with self._source(name).open() as file:
                return file.read(_HEAD)
        except (*UNREADABLE, InvalidInput):
            return b""

    def _has_chunks(self, folder: _Folder) -> bool:
        if qq.MANIFEST not in folder.files:
            return False
        try:
            return qq.has_chunks(self._source(folder.name))
        except UNREADABLE:
            return False

    def _looked_at(self, folder: _Folder, but: frozenset[str]) -> dict[str, tuple[str | None, str]]:
        """Return what looking tells of the files that may be exports: the format, or None and why it tells nothing."""
        names = [name for name in folder.files if name not in but and self._may_be_one(name)]
        looked = {name: self._look(folder.name + name) for name in names}
        others = [_BESIDE[form] for form, _ in looked.values() if form in _BESIDE]
        return {name: shape for name, shape in looked.items() if not any(other.fullmatch(name) for other in others)}

    def _may_be_one(self, name: str) -> bool:
        """Return True if a file with this name may be an export. Any compressed file may, unless it is in a zip."""
        lower = name.lower()
        if _NO_CHAT.fullmatch(lower):
            return False
        packed = lower.endswith(".gz") and not lower.endswith(".tar.gz")
        return lower.endswith(ENDINGS) or (packed and not self._packed)

    def _look(self, name: str) -> tuple[str | None, str]:
        """Return what looking tells of a file's format, or None and the reason why it tells nothing."""
        try:
            source = self._source(name)
            form = told_by_looking(source)
            if form is not None:
                check_read(FORMATS[form], source, Options())
            return form, "it is empty" if form is None and is_blank(source) else "its format cannot be told by looking"
        except InvalidInput as error:
            self.error = self.error or error
            return None, str(error)

    def _sent(self, looked: dict[str, tuple[str | None, str]], folder: _Folder, formats: frozenset[str]) -> set[str]:
        """Return those of the files that were sent in a chat whose export lies beside or above them."""
        patterns = [_SENT[form] for form in formats if form in _SENT]
        sent = {name for name in looked if any(pattern.fullmatch(name) for pattern in patterns)}
        chats = [name for name, (form, _) in looked.items() if form == "whatsapp" and name not in sent]
        named = {name for name in chats if _is_whatsapp(PurePosixPath(name).stem)}
        others = looked.keys() - sent - named
        if len(named) == 1 and _is_whatsapp(self._name_of(folder)):
            return sent | others
        for chat in chats:
            if unsent := others - sent - {chat}:
                sent |= whatsapp.files_sent(self._source(folder.name + chat), unsent)
        return sent

    def _name_of(self, folder: _Folder) -> str:
        """Return the name of a folder, or of the zip, without its ending."""
        if folder.name:
            return PurePosixPath(folder.name).name
        return self._place.resolve().stem if self._packed else self._place.resolve().name

    def _take(self, name: str, form: str) -> None:
        if self._form not in (None, form):
            self._leave(name, f"its format is {form}")
            return
        self.found.exports.append(self._file(name, form))

    def _file(self, name: str, form: str | None) -> ExportFile:
        if self._packed:
            return ExportFile(self._place, name or None, form)
        return ExportFile(self._place / name, None, form)

    def _leave(self, name: str, reason: str) -> None:
        self.found.left_out.append(LeftOut(self._label(name), reason))

    def _doubt(self, name: str, reason: str) -> None:
        """Leave a file out of which looking tells nothing."""
        if self._form is None or plain_name(name).lower().endswith(FORMATS[self._form].endings):
            self.doubtful.append(self._file(name, self._form))
        self._leave(name, reason)

    def _leave_attachments(self, folder: _Folder, owner: str, *, days: bool = False) -> None:
        """Leave out what looks like an export among what was sent in a chat. `days`: a channel of Slack, whose own
        files are days."""
        for name in folder.all_files:
            of_channel = (
                days and name.count("/") == folder.name.count("/") and slack.DAY.fullmatch(name.rpartition("/")[2])
            )
            if of_channel or not name.lower().endswith((*ENDINGS, ".zip")):
                continue
            if name.lower().endswith(".zip"):
                if self._zip_holds(name):
                    self._leave(name, _attachment(owner))
            elif self._look_quietly(name) is not None:
                self._leave(name, _attachment(owner))

    def _look_quietly(self, name: str) -> str | None:
        before = self.error
        form, _ = self._look(name)
        self.error = before
        return form

    def _zip_holds(self, name: str) -> bool:
        """Return True if a zip in this folder holds an export."""
        if self._packed:
            return False
        try:
            return bool(find(self._place / name).exports)
        except InvalidInput:
            return False

    def _visit_packed(self, name: str) -> None:
        """Look into a zip, and leave out what else is packed."""
        if name.lower().endswith(".zip"):
            self._visit_zip(name)
        elif name.lower().endswith((".tar.gz", ".tgz")):
            self._leave(name, "it is an archive of several files: unpack it")
        elif self._packed and name.lower().endswith(".gz"):
            self._leave(name, "it is a compressed file inside a zip: unpack it")

    def _visit_zip(self, name: str) -> None:
        if self._packed:
            self._leave(name, "it is a zip inside a zip: unpack it")
            return
        inside = _Search(self._place / name, self._form)
        try:
            if not is_zip(self._place / name):
                self._leave(name, "it is no zip")
                return
            inside.run()
        except InvalidInput as error:
            self.error = self.error or error
            self._leave(name, str(error))
            return
        self.found.exports += inside.found.exports
        self.found.left_out += inside.found.left_out
        self.doubtful += inside.doubtful
        self.error = self.error or inside.error

    def _source(self, name: str) -> Source:
        return Source(self._place, name or None) if self._packed else Source(self._place / name)

    def _label(self, name: str) -> str:
        return str(self._place / name)


def _oldest_first(name: str) -> tuple[str, int]:
    """Return what sorts names. Of the files of one chat of Messenger, the first has the newest messages."""
    part = downloads.META_PART.fullmatch(name)
    return (name, 0) if part is None else ("message_", -int(part["number"]))


def _attachment(owner: str) -> str:
    return f"it was sent in a chat of {owner}: if it is a chat of its own, give the file itself"


def _is_whatsapp(stem: str) -> bool:
    return whatsapp.STEM.fullmatch(stem) is not None


def _holds_attachments(folder: str) -> bool:
    return _ATTACHMENTS.fullmatch(folder) is not None
