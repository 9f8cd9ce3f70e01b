"""Who is named in a text: `@name`, `name: ...`, bare names and the platforms' own tags, Chinese and English alike."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from roomlore.core.stop_words import CHINESE, ENGLISH, INTERJECTIONS, ORDINARY
from roomlore.core.text import HAN, READ_LIMIT, fold, head, segment

_MAX_NAME = 64
_MAX_MENTIONS = 100
_ISOLATES = dict.fromkeys(range(0x2066, 0x206A))
"""What keeps the direction of a name apart from the text around it, as WhatsApp writes names."""
TAG = re.compile(
    r"<@!?(?P<id>[^\s<>|]{1,64})(?:\|[^<>]{0,64})?>|<!(?P<all>here|channel|everyone)(?:\|[^<>]{0,64})?>"
    r"|<at (?:user_)?id=[\"']?(?P<at>[^\"'<>\s]{1,64})[\"']?[^<>]{0,64}>(?:[^<>]{0,64}</at>)?"
)
# An @ after a Latin letter or digit belongs to an e-mail address or a prompt, unless what follows is not Latin.
_AT = re.compile(r"(?<![a-z0-9._%+-])(?<!!\*)@(?=\S)|@(?=[^\x00-\x7f])")
_EVERYONE = re.compile(
    r"(?:_?all|everyone|here|channel)(?![a-z0-9_-])|全体成员|全體成員|全体|全體|全员|全員|所有人|大家"
)
_HANDLE = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,62}[a-z0-9_])?(?![\w/(])|[^\W\x00-\x7f]{1,20}")
_NICK = re.compile(rf"(?<![@/.\\a-z0-9_])(?:(?![{HAN}])[\w\[\]{{}}\\|`^-]){{3,64}}+(?![@/]|\.\w)")
_FIRST_WORD = re.compile(rf"[\w\[\]{{}}\\|`^-]{{3,64}}(?=\s|$)|[{HAN}]{{2,}}(?=\s)")
_ADDRESS = re.compile(r"[^:,\n]{1,64}?(?=\s?[:,])")
_BETWEEN = re.compile(r"[\s,:]*")
_JOINED = re.compile(r"\s*[/&+]\s*|\s+and\s+|\s*[和跟]\s*")
_HAN_RUN = re.compile(f"[{HAN}]{{2,}}")


@dataclass(frozen=True, slots=True)
class Mentions:
    """Whom a text names, in order, each once.

    `people`: sender ids, or for an unknown `@name` the name as written, folded. `addressed`: those of them the text
    begins by addressing. `everyone`: whether it calls everybody (@all, @所有人).
    """

    people: tuple[str, ...] = ()
    addressed: tuple[str, ...] = ()
    everyone: bool = False


class _Reading:
    """One text read against the names of one room."""

    def __init__(self, text: str, names: Mapping[str, str]) -> None:
        self._names = names
        self._tagged: dict[str, str] = {}
        self.everyone = False
        raw = text[:READ_LIMIT].translate(_ISOLATES)
        self.text = head(TAG.sub(self._untag, raw) if "<" in raw else raw)

    def _untag(self, tag: re.Match[str]) -> str:
        """Writes a platform's tag as a plain @id and keeps the id's own spelling."""
        if tag["all"]:
            return "@here "
        sender = tag["id"] or tag["at"]
        self._tagged[fold(sender)] = sender
        return f"@{sender} "

    def sender(self, name: str) -> str | None:
        return self._names.get(name) or self._tagged.get(name)

    def named_at(self, start: int) -> tuple[str | None, int]:
        """(sender id or unknown name, end) of what an @ just before `start` names; None for everybody or nobody."""
        rest = self.text[start : start + _MAX_NAME]
        for end in range(len(rest), 0, -1):
            sender = self.sender(rest[:end])
            if sender and _ends(rest, end):
                return sender, start + end
        if everyone := _EVERYONE.match(rest):
            self.everyone = True
            return None, start + everyone.end()
        handle = _HANDLE.match(rest)
        return (handle[0], start + handle.end()) if handle else (None, start)

    def addressed(self) -> Iterator[str]:
        """Those the text begins with, as long as one name follows another."""
        at = len(self.text) - len(self.text.lstrip())
        for _ in range(_MAX_MENTIONS):
            names, end = self._address_at(at)
            if end == at:
                return
            yield from names
            between = _BETWEEN.match(self.text, end)
            at = between.end() if between else end

    def _address_at(self, at: int) -> tuple[list[str], int]:
        if self.text.startswith("@", at):
            name, end = self.named_at(at + 1)
            return ([name] if name else []), (end if end > at + 1 else at)
        called = _ADDRESS.match(self.text, at)
        senders = self._called(called[0], self.text[called.end() :].lstrip()[:1]) if called else []
        if called and senders:
            return senders, called.end()
        first = _FIRST_WORD.match(self.text, at)
        sender = self._bare(first[0]) if first else None
        return ([sender], first.end()) if first and sender else ([], at)

    def _called(self, name: str, mark: str) -> list[str]:
        if mark == "," and (name in ENGLISH or name in CHINESE or name in INTERJECTIONS):
            return []
        whole = self.sender(name)
        if whole:
            return [whole]
        parts = [self.sender(part) for part in _JOINED.split(name)]
        return [part for part in parts if part] if None not in parts else []

    def at_signs(self) -> Iterator[str]:
        if "@" not in self.text:
            return
        for count, at in enumerate(_AT.finditer(self.text)):
            if count == _MAX_MENTIONS:
                return
            name, _ = self.named_at(at.end())
            if name:
                yield name

    def bare(self) -> Iterator[str]:
        known = self._names
        for nick in _NICK.findall(self.text):
            if (nick in known or not nick.isalnum()) and (sender := self._bare(nick)):
                yield sender
        if not self.text.isascii():
            yield from self._bare_han()

    def _bare(self, name: str) -> str | None:
        """The sender of this name unless the word is likelier to mean itself."""
        sender = self._names.get(name) or self._names.get(name.strip("-[]{}|^`"))
        if not sender or name in ENGLISH or name in ORDINARY or name in CHINESE or name in INTERJECTIONS:
            return None
        return None if name.isdigit() else sender

    def _bare_han(self) -> Iterator[str]:
        """Known Chinese names of two or more characters whose ends are ends of words."""
        for run in _HAN_RUN.findall(self.text):
            pieces = segment(run)
            for first in range(len(pieces)):
                for last in range(first + 1, min(first + 4, len(pieces)) + 1):
                    name = "".join(pieces[first:last])
                    if len(name) > 1 and (sender := self._bare(name)):
                        yield sender


def _ends(text: str, end: int) -> bool:
    """Whether a name that ends here is not the beginning of a longer Latin word."""
    last, following = text[end - 1], text[end : end + 2]
    if not following or not (last.isascii() and (last.isalnum() or last == "_")):
        return True
    if following[0] in ".-":
        return not following[1:].isalnum()
    return not (following[0] == "_" or (following[0].isascii() and following[0].isalnum()))


def find_mentions(text: str, names: Mapping[str, str]) -> Mentions:
    """Who is named in the text's first 20,000 characters; at most 100 by @.

    `names` maps a folded name or id to a sender id. Read are: `@name` (the longest known name, else the handle or run
    of letters as written); known people at the start as `name:`, `name,` or a bare first word, several in a row too;
    bare known names elsewhere; `<@U123>` and `<at id="...">`; calls to everybody. A bare name counts where it is no
    stop word and no ordinary one: Latin names from three characters, Chinese ones from two that end where words end.
    E-mail addresses name nobody.
    """
    reading = _Reading(text, names)
    addressed = dict.fromkeys(reading.addressed())
    people = dict.fromkeys(addressed)
    people.update(dict.fromkeys(reading.at_signs()))
    people.update(dict.fromkeys(reading.bare()))
    return Mentions(tuple(people), tuple(addressed), reading.everyone)
