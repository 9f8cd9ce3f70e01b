"""Read who is named, quoted or speaking in a text, and what the senders of a room are called."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

from roomlore.core import lexicon
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import (
    CHINESE,
    ENGLISH,
    HAN,
    INTERJECTIONS,
    ORDINARY,
    READ_LIMIT,
    fold,
    head,
    pieces_in,
    segment,
    terms,
)

_QUOTED_LINES = r"(?:(?:>|&gt;)(?:[ \t]|(?=[^\W_]|[\"“「@]))[^\n]*(?:\n[ \t]*|\Z))+"
# Lines that quote, at the beginning of a message.
_LINES = lazy_pattern(rf"\s*{_QUOTED_LINES}")
# The quotation that WeChat copies: 「name: text」, a line of dashes, the answer.
_CARD = lazy_pattern(r"\s*「(?:([^:：」\n]{1,64})[:：])?([^」]*)」\s*(?:[-—][ ]?){3,}\s*")
# Lines that quote, anywhere.
_LINES_INSIDE = lazy_pattern(rf"^[ \t]*{_QUOTED_LINES}", re.MULTILINE)
# The mark that begins a quoted line.
_MARK = lazy_pattern(r"^\s*(?:>|&gt;)[ \t]?", re.MULTILINE)
# The name before a quoted text.
_AUTHOR = lazy_pattern(r"\s*@?([^:：\n]{1,64})[:：]\s*(?:\n|(?=\S))")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A quotation, and the author that the quotation itself names ('' if none)."""

    author: str
    text: str


def split_quote(text: str) -> tuple[Quotation | None, str]:
    """Return the quotation at the beginning of a text, if any, and the sender's own words after it.

    The author of quoted lines is not read here: `> name: ...` may as well be a line of the quoted text.
    """
    start = text[:READ_LIMIT].lstrip()[:1]
    if start == "「":
        card = _CARD.match(text, 0, READ_LIMIT)
        return (Quotation(card[1] or "", card[2]), text[card.end() :]) if card else (None, text)
    if start not in (">", "&"):
        return None, text
    lines = _LINES.match(text, 0, READ_LIMIT)
    return (_quotation(lines[0]), text[lines.end() :]) if lines else (None, text)


def split_quotes(text: str) -> list[Quotation | str]:
    """Return the parts of the text in order: quotations, at the beginning or in lines further down, and the sender's
    own words between."""
    first, rest = split_quote(text)
    parts: list[Quotation | str] = [] if first is None else [first]
    at = 0
    for lines in _LINES_INSIDE.finditer(rest, 0, READ_LIMIT):
        parts += [rest[at : lines.start()], _quotation(lines[0])]
        at = lines.end()
    return [*parts, rest[at:]]


def _quotation(lines: str) -> Quotation:
    return Quotation("", _MARK.sub("", lines).strip())


def named_author(quoted: str) -> tuple[str, str]:
    """Return the author that quoted lines may name at their beginning ('anna: ...'), and the rest; ('', all of it) if
    none."""
    match = _AUTHOR.match(quoted)
    return (match[1].strip(), quoted[match.end() :]) if match else ("", quoted)


# Possessive, since a name holds none of the characters around it except blanks: no line is read twice.
_SPEAKER = lazy_pattern(
    r"[\s<\[【（(*]*+(?P<name>[^\s<>:：\"“”\[\]【】()（）*][^<>:：\"“”\[\]【】()（）*\n]{0,31}?)[\s>\]】）)*]*+[:：]"
)
_OPENING, _CLOSING = tuple('"“”「『'), tuple('"“”」』')
# The name of an agent; robot and email are none.
_AGENT = lazy_pattern(
    rf"assistant|gpt(?![a-z])|助手|助理|机器人|機器人|(?<![a-z])(?:[a-z]+[-_ ]|help|chat|support)?bots?(?![a-z])"
    r"|(?<=[a-z])(?-i:B)ots?(?![a-z])"
    rf"|(?<![a-z])(?:ai|agent)(?=$|[{HAN}])",
    re.IGNORECASE,
)


class SpokenText(NamedTuple):
    speaker: str
    said: str


def utterances(text: str) -> tuple[SpokenText, ...]:
    """Return speaker and text of each line; empty unless nearly all lines name a speaker and speakers repeat."""
    lines = [line for line in text.splitlines() if line.strip()]
    utterances_read = [line for line in map(_utterance, lines) if line]
    speakers = {line.speaker for line in utterances_read}
    if len(lines) < 2 or 5 * len(utterances_read) < 4 * len(lines) or len(speakers) > max(2, len(lines) // 2):
        return ()
    return tuple(utterances_read)


def _utterance(line: str) -> SpokenText | None:
    speaker = _SPEAKER.match(line)
    if speaker is None:
        return None
    text = line[speaker.end() :].strip()
    text = text[1:] if text.startswith(_OPENING) else text
    return SpokenText(speaker["name"], text[:-1] if text.endswith(_CLOSING) else text)


def sounds_like_agent(name: str) -> bool:
    """Return True if the name is typical of a bot: "assistant", "helpbot", "AI伴侣", 客服机器人."""
    return bool(_AGENT.search(name))


_MAX_NAME = 64
_MAX_MENTIONS = 100
# A mark that isolates the direction of a name from the text around it, as WhatsApp writes names.
_ISOLATE = lazy_pattern("[\u2066-\u2069]")
# A mention as Slack, Discord or OneBot writes it.
TAG = lazy_pattern(
    r"<@!?(?P<id>[^\s<>|]{1,64})(?:\|[^<>]{0,64})?>|<!(?P<all>here|channel|everyone)(?:\|[^<>]{0,64})?>"
    r"|<at (?:user_)?id=[\"']?(?P<at>[^\"'<>\s]{1,64})[\"']?[^<>]{0,64}>(?:[^<>]{0,64}</at>)?"
)
# The same, or a plain @id; not in an e-mail address.
_BY_ID = lazy_pattern(rf"{TAG.pattern}|(?<![A-Za-z0-9._%+-])@(?P<plain>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,63}})")


def with_names(text: str, names: Mapping[str, str], mentioned: Collection[str]) -> str:
    """Return the text with names for the ids of people in it: those in tags such as `<@123>`, and those in `@123` of
    whom the platform says that they are `mentioned`. `names`: by id."""

    def named(match: re.Match[str]) -> str:
        plain = match["plain"]
        if plain is None:
            name = names.get(match["id"] or match["at"] or "")
            return f"@{name}" if name else match[0]
        bare = plain if plain in mentioned else plain.rstrip(".-")
        name = names.get(bare) if bare in mentioned else None
        return f"@{name}{plain[len(bare) :]}" if name else match[0]

    return _BY_ID.sub(named, text) if "@" in text or "<at " in text else text


def ids_named(text: str, mentioned: Collection[str]) -> set[str]:
    """Return the ids in whose place `with_names` puts names, if it is given these."""
    ids: set[str] = set()
    for match in _BY_ID.finditer(text) if "@" in text or "<at " in text else ():
        plain = match["plain"]
        if plain is None:
            ids |= {match["id"] or match["at"] or ""}
        else:
            ids |= {plain, plain.rstrip(".-")}.intersection(mentioned)
    return ids - {""}


# An @ after a Latin letter or digit belongs to an e-mail address or a prompt, unless what follows is not Latin.
_AT = lazy_pattern(r"(?<![a-z0-9._%+-])(?<!!\*)@(?=\S)|@(?=[^\x00-\x7f])")
_EVERYONE = lexicon.pattern("everyone_mentioned")
# What follows an @ where no name is known; a path or a call is none.
_HANDLE = lazy_pattern(r"[a-z0-9_](?:[a-z0-9_.-]{0,62}[a-z0-9_])?(?![\w/(])|[^\W\x00-\x7f]{1,20}")
# A word that may be a nick; not in a path, a domain or an e-mail address.
_NICK = lazy_pattern(rf"(?<![@/.\\a-z0-9_])(?:(?![{HAN}])[\w\[\]{{}}\\|`^-]){{3,64}}+(?![@/]|\.\w)")
# The same in an ASCII text.
_ASCII_NICK = lazy_pattern(r"(?<![@/.\\a-z0-9_])[a-z0-9_\[\]{}\\|`^-]{3,64}+(?![@/]|\.[a-z0-9_])")
# The first word of a message, which may be the name of who is addressed.
_FIRST_WORD = lazy_pattern(rf"[\w\[\]{{}}\\|`^-]{{3,64}}(?=\s|$)|[{HAN}]{{2,}}(?=\s)")
# What stands before the first colon or comma.
_ADDRESS = lazy_pattern(r"[^:,\n]{1,64}?(?=\s?[:,])")
# What divides a name from the text.
_BETWEEN = lazy_pattern(r"[\s,:]*")
# What joins the names of several who are addressed.
_JOINED = lazy_pattern(r"\s*[/&+]\s*|\s+and\s+|\s*[和跟]\s*")
# A mark with which people are addressed.
_CALL = lazy_pattern(r"[@:,]")
# Chinese characters in a row.
_HAN_RUN = lazy_pattern(f"[{HAN}]{{2,}}")


class Mentions(NamedTuple):
    """The people named in a text, in order, each once.

    `people`: sender ids, or for an unknown `@name` the name as written, folded. `addressed`: those that the text begins
    by addressing. `everyone`: True if it calls everybody (@all, @所有人).
    """

    people: tuple[str, ...] = ()
    addressed: tuple[str, ...] = ()
    everyone: bool = False


_NOBODY = Mentions()


class _Reading:
    """Reads one text with the names of one room."""

    def __init__(self, text: str, names: Mapping[str, str]) -> None:
        self._names = names
        self._tagged: dict[str, str] = {}
        self.everyone = False
        raw = text[:READ_LIMIT]
        raw = raw if raw.isascii() else _ISOLATE.sub("", raw)
        self.text = head(TAG.sub(self._untag, raw) if "<" in raw else raw)

    def _untag(self, tag: re.Match[str]) -> str:
        """Replace a platform's tag by a plain @id, keeping the spelling of the id."""
        if tag["all"]:
            return "@here "
        sender = tag["id"] or tag["at"]
        self._tagged[fold(sender)] = sender
        return f"@{sender} "

    def sender(self, name: str) -> str | None:
        return self._names.get(name) or self._tagged.get(name)

    def named_at(self, start: int) -> tuple[str | None, int]:
        """Return (sender id or unknown name, end) of the @ just before `start`; None for everybody or nobody."""
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
        """Yield the people that the text begins with, as long as one name follows another."""
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
        beginning = self.text[at : at + _MAX_NAME + 2]
        if ":" in beginning or "," in beginning:
            called = _ADDRESS.match(self.text, at)
            senders = self._called(called[0], self.text[called.end() :].lstrip()[:1]) if called else []
            if called and senders:
                return senders, called.end()
        first = "".join(self.text[at:].split(None, 1)[:1])
        sender = self._bare(first)
        return ([sender], at + len(first)) if sender and _FIRST_WORD.match(self.text, at) else ([], at)

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

    def bare(self) -> list[str]:
        known = self._names
        nicks = (_ASCII_NICK if self.text.isascii() else _NICK).findall(self.text)
        senders = [self._bare(nick) for nick in nicks if nick in known or not nick.isalnum()]
        senders += [] if self.text.isascii() else self._bare_han()
        return [sender for sender in senders if sender]

    def _bare(self, name: str) -> str | None:
        """Return the sender with this name, unless it is more likely an ordinary word."""
        sender = self._names.get(name) or self._names.get(name.strip("-[]{}|^`"))
        if not sender or name in ENGLISH or name in ORDINARY or name in CHINESE or name in INTERJECTIONS:
            return None
        return None if name.isdigit() else sender

    def _bare_han(self) -> Iterator[str | None]:
        """Yield known Chinese names of two or more characters that end at the end of a word."""
        for run in _HAN_RUN.findall(self.text):
            starts = [0, *accumulate(map(len, segment(run)))]
            names = [run[start:end] for place, start in enumerate(starts) for end in starts[place + 1 : place + 5]]
            for name in names:
                if name in self._names and len(name) > 1:
                    yield self._bare(name)


def _ends(text: str, end: int) -> bool:
    """Return True if a name that ends here is not the beginning of a longer Latin word."""
    last, following = text[end - 1], text[end : end + 2]
    if not following or not (last.isascii() and (last.isalnum() or last == "_")):
        return True
    if following[0] in ".-":
        return not following[1:].isalnum()
    return not (following[0] == "_" or (following[0].isascii() and following[0].isalnum()))


def find_mentions(text: str, names: Mapping[str, str]) -> Mentions:
    """Return the people named in the text's first 20,000 characters; at most 100 by @.

    `names` maps a folded name or id to a sender id. Recognised are: `@name` (the longest known name, else the handle or
    run of letters as written); known people at the start as `name:`, `name,` or a bare first word, several in a row
    too; bare known names elsewhere; `<@U123>` and `<at id="...">`; calls to everybody. A bare name counts if it is
    neither a stop word nor an ordinary word: Latin names from three characters, Chinese ones from two that end at the
    end of a word. E-mail addresses name nobody.
    """
    reading = _Reading(text, names)
    bare = reading.bare()
    if not bare and reading.text.isascii() and _CALL.search(reading.text) is None:
        return _NOBODY
    addressed = dict.fromkeys(reading.addressed())
    people = dict.fromkeys(chain(addressed, reading.at_signs(), bare))
    return Mentions(tuple(people), tuple(addressed), reading.everyone)


_ONE = 1 << 40


class Renaming(NamedTuple):
    """A new name of the sender with this index. `before`: the earlier name; None: the sender is new."""

    place: int
    before: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Naming:
    """Senders by name. `agents`: the indices of senders whose names are an agent's, ascending. `tallies`: of each term
    of the names, the sum of 2**40 plus the index over the senders with it, so that a sender can be subtracted again."""

    tallies: Mapping[str, int]
    agents: tuple[int, ...]

    def owner(self, term: str) -> int | None:
        """Return the index of the only sender with this term in the name."""
        tally = self.tallies.get(term, 0)
        return tally - _ONE if _ONE <= tally < 2 * _ONE else None


NOBODY = Naming({}, ())


def naming_of(names: Sequence[str]) -> Naming:
    """Return the naming of senders with these names, by index."""
    return renamed(NOBODY, [Renaming(place, None, name) for place, name in enumerate(names)])


def renamed(naming: Naming, changes: Sequence[Renaming]) -> Naming:
    """Return the naming after these changes, each of another sender."""
    if not changes:
        return naming
    tallies = dict(naming.tallies)
    for place, before, name in changes:
        if before is not None:
            _tally(tallies, before, -_ONE - place)
        _tally(tallies, name, _ONE + place)
    changed = {change.place for change in changes}
    agents = {change.place for change in changes if sounds_like_agent(change.name)}
    return Naming(tallies, tuple(sorted(agents.union(naming.agents) - (changed - agents))))


def _tally(tallies: dict[str, int], name: str, share: int) -> None:
    for term in set(terms(name)):
        if pieces_in(term) != 1:
            tally = tallies.get(term, 0) + share
            if tally:
                tallies[term] = tally
            else:
                del tallies[term]
