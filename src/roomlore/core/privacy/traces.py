"""The traces of a person in texts: their id, and what they said, word for word.

A short text is nobody's: 'good morning' is said by everybody. How much a text says is weighed in characters, of which a
wide one (Chinese, say) counts twice. A passage below `LEAST` is never taken for the person's; from `SURE` on it always
is; between the two it is unless somebody else said just that by themselves, which the caller finds out.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from roomlore.core.text import graphemes, language

LEAST = 12
SURE = 32
_ANCHOR = 6
"""Code points that every passage has at least: no code point weighs more than two."""
_NAME_LEAST = 3
_ID_LEAST = 4
_WORD_MOST = 20
"""Letters of an ordinary word; a longer run of letters is an id."""
_MARKS = {"zh": "[已删除]", "en": "[forgotten]"}
_INSIDE_A_WORD = r"[0-9A-Za-z_-]"
_ADDRESSED = "(?:" + "|".join(f"(?<={sign})" for sign in ("@", "id=", 'id="', "id='", 'id":"', 'id": "')) + ")"
_BEGINS, _CALLS = "(?m:^)", r"(?=[ \t]?[:,：，])"
_EDGE = re.compile(r"[0-9A-Za-z_]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
_QUOTATION = re.compile(
    r"^[ \t]*(?:>|＞|&gt;)[^\n]*|\"[^\"\n]*\"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」|『[^『』]*』", re.MULTILINE
)
_ISOLATES = "[\u2066-\u2069\u200e\u200f]*"
_OWN_WORDS = frozenset({"user", "group", "agent", "facts", "extraction", "evolution"})
"""What roomlore itself writes before a colon: 'user:ben' tells nothing of somebody whose id is 'user'."""

Span = tuple[int, int]


def _always(_: str) -> bool:
    return True


def mark(text: str) -> str:
    """What stands where something of the text was taken out, in the text's language."""
    return _MARKS[language(text)]


def is_mark(text: str) -> bool:
    return text in _MARKS.values()


def has_mark(text: str) -> bool:
    """Whether something was taken out of the text."""
    return any(sign in text for sign in _MARKS.values())


def weight(text: str) -> int:
    """Characters as people see them, wide ones twice."""
    wide = 0 if text.isascii() else sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return graphemes(text) + wide


def passages(text: str) -> list[str]:
    """What of a text can be known again elsewhere: all of it, each of its lines, and its longer sentences; nothing that
    weighs too little."""
    whole = text.strip()
    lines = [line.strip() for line in whole.splitlines()] if "\n" in whole else []
    sentences = [one.strip() for line in lines or [whole] for one in _SENTENCE.split(line)]
    told = [one for one in dict.fromkeys([whole, *lines]) if weight(one) >= LEAST]
    return list(dict.fromkeys([*told, *(one for one in sentences if weight(one) >= SURE)]))


class Traces:
    """Finds and takes out what tells of one person.

    `user_id`: counts inside texts as a whole word, in small or capital letters. One that is short or a small number
    counts only behind an @ or an 'id=', since it may be any word. So does one of letters alone ("will"), and also at
    the beginning of a line before a colon or a comma; in the name of something it counts as a whole word. `said`: the
    passages that are the person's. `names`: what others call them, taken out only where `and_names` asks for it.
    """

    def __init__(self, user_id: str, said: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self.user_id = user_id
        word, flags = _word(user_id), re.IGNORECASE if user_id.lower() != user_id.upper() else 0
        self._word = re.compile(word if _is_telling(user_id) else _ADDRESSED + word, flags)
        ordinary = _is_telling(user_id) and user_id.isalpha() and len(user_id) <= _WORD_MOST
        self._id = re.compile(f"{_ADDRESSED}{word}|{_BEGINS}{word}{_CALLS}", flags) if ordinary else self._word
        self._lowered = user_id.lower()
        self.names = frozenset(name.strip() for name in names if weight(name.strip()) >= _NAME_LEAST)
        self._names = _any_of(self.names)
        self._calls = _any_of(self.names, before=f"@{_ISOLATES}", flags=re.IGNORECASE)
        self.said = frozenset(said)
        lengths: dict[str, set[int]] = {}
        for passage in self.said:
            lengths.setdefault(passage[:_ANCHOR], set()).add(len(passage))
        self._lengths = {anchor: sorted(found, reverse=True) for anchor, found in lengths.items()}

    def and_also(self, more: "Traces") -> "Traces":
        """The same person, with what else is known of them."""
        return Traces(self.user_id, self.said | more.said, self.names | more.names)

    def repeated(self, text: str, counts: Callable[[str], bool] = _always) -> bool:
        """Whether the text has a passage of the person's in it that counts."""
        return next(self.repeats(text, counts), None) is not None

    def repeats(self, text: str, counts: Callable[[str], bool] = _always) -> Iterator[Span]:
        """Yield the place of each passage in the text that counts, from left to right."""
        if not self.said:
            return
        at, last = 0, len(text) - _ANCHOR
        while at <= last:
            lengths = self._lengths.get(text[at : at + _ANCHOR])
            found = self._at(text, at, lengths, counts) if lengths else 0
            if found:
                yield at, at + found
            at += found or 1

    def quotes(self, text: str, counts: Callable[[str], bool] = _always) -> list[Span]:
        """Return the places of passages that count and stand in a quotation."""
        found = list(self.repeats(text, counts))
        quotations = [one.span() for one in _QUOTATION.finditer(text)] if found else []
        return [span for span in found if _within(span, quotations)]

    def ids(self, text: str, *, named: bool = False) -> Iterator[Span]:
        """Yield the place of each mention of the id. `named`: the text is known to name the person, so that an
        ordinary word is the id too."""
        if self._lowered in text.lower():
            yield from (found.span() for found in (self._word if named else self._id).finditer(text))

    def calls(self, text: str) -> Iterator[Span]:
        """Yield the place of the name in each '@name'."""
        if self._calls and "@" in text:
            yield from (found.span(1) for found in self._calls.finditer(text))

    def has_id(self, text: str) -> bool:
        """Whether the text, or the name that it is, mentions the id."""
        return self.is_named(text) or next(self.ids(text), None) is not None

    def in_label(self, name: str) -> bool:
        """Return whether the name that somebody gave something mentions the id: 'phone of maria'."""
        return self.is_named(name) or next(self.ids(name, named=True), None) is not None

    def names_them(self, text: str) -> bool:
        """Whether the text mentions the id or a name of the person."""
        return self.has_id(text) or (self._names is not None and self._names.search(text) is not None)

    def tells(self, text: str) -> bool:
        """Whether somebody else's text tells of the person: by the id, or by a name beside a passage. The same words
        alone tell nothing."""
        return self.has_id(text) or (self.names_them(text) and self.repeated(text))

    def in_path(self, path: str) -> bool:
        """Whether the path of a file, 'chats/anna.json', has the person's id in it as a whole word."""
        ends = [rf"(?{sign}{_INSIDE_A_WORD})" for sign in ("<!", "!")]
        return re.search(ends[0] + re.escape(self.user_id) + ends[1], path) is not None

    def mentioned(self, text: str) -> bool:
        """Whether the text, or the name that it is ('user:anna'), tells of the person."""
        return self.has_id(text) or self.repeated(text)

    def is_named(self, name: str) -> bool:
        """Whether a name such as 'user:anna' or 'facts:anna' has the person's id as a part, letter by letter. A
        text with white space beside it is no name: 'anna: see you'."""
        if name == self.user_id or self.user_id not in name:
            return name == self.user_id
        if any(sign.isspace() for sign in name.replace(self.user_id, "", 1)):
            return False
        return f":{self.user_id}:" in (f"{name}:" if self.user_id in _OWN_WORDS else f":{name}:")

    def named_in(self, name: str) -> bool:
        """Whether the name of something has the person's id in it, letter by letter: capital letters make another
        name."""
        if self.is_named(name):
            return True
        if self.user_id not in name or self.user_id in _OWN_WORDS:
            return False
        found = (one for one in self._word.finditer(name) if one.group() == self.user_id)
        return any(_stands_alone(name, *one.span()) for one in found)

    def redact(self, text: str, *, and_names: bool = False) -> str:
        """The text with a mark in the place of each trace; the person's id alone becomes the mark."""
        if self.is_named(text):
            return mark(text)
        spans = [*self.ids(text, named=and_names), *self.repeats(text)]
        if and_names and self._names:
            spans += [found.span() for found in self._names.finditer(text)]
        return cut_out(text, spans)

    def redact_name(self, name: str) -> str:
        """Return the name of something with a mark in the place of the id."""
        return mark(name) if self.is_named(name) else cut_out(name, list(self.ids(name, named=True)))

    def redact_others(self, text: str) -> str:
        """Return somebody else's text without the id, and without passages where it names the person."""
        if self.names_them(text):
            return self.redact(text)
        return text

    def _at(self, text: str, at: int, lengths: Iterable[int], counts: Callable[[str], bool]) -> int:
        """The longest passage that stands there, 0 for none; by their lengths, as many passages may begin alike."""
        left = len(text) - at
        fitting = (text[at : at + size] for size in lengths if size <= left)
        return next((len(passage) for passage in fitting if passage in self.said and counts(passage)), 0)


def cut_out(text: str, spans: Sequence[Span]) -> str:
    """The text with one mark in the place of each run of spans; white space around a run stays."""
    if not spans:
        return text
    sign, kept, at = mark(text), [], 0
    for first, last in _joined(spans):
        run = text[first:last]
        start, end = last - len(run.lstrip()), first + len(run.rstrip())
        if start >= end:
            continue
        kept += [text[at:start], sign]
        at = end
    return "".join([*kept, text[at:]])


def _joined(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _within(span: Span, regions: Sequence[Span]) -> bool:
    """`regions`: ascending, none over another."""
    at = bisect_right(regions, span[0], key=itemgetter(0)) - 1
    return at >= 0 and span[1] <= regions[at][1]


def _is_telling(user_id: str) -> bool:
    return weight(user_id) >= _ID_LEAST and not (user_id.isdecimal() and len(user_id) <= _ID_LEAST)


def _stands_alone(name: str, start: int, end: int) -> bool:
    """Whether no letter, digit, - or _ is beside it: '小林子' is another name than '小林'."""
    return not any(sign.isalnum() or sign in "-_" for sign in name[max(start - 1, 0) : start] + name[end : end + 1])


def _word(name: str) -> str:
    """A name that is no part of a longer word or name; between Chinese characters every place is an edge."""
    before = rf"(?<!{_INSIDE_A_WORD})(?<![0-9A-Za-z]\.)" if _EDGE.match(name) else ""
    after = rf"(?!{_INSIDE_A_WORD})(?!\.[0-9A-Za-z])" if _EDGE.match(name[-1]) else ""
    return before + re.escape(name) + after


def _any_of(names: Iterable[str], *, before: str = "", flags: int = 0) -> re.Pattern[str] | None:
    known = sorted(set(names), key=len, reverse=True)
    return re.compile(f"{before}({'|'.join(map(_word, known))})", flags) if known else None
