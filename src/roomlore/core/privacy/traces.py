"""Find traces of a person in texts: their id, and what they said, word for word.

A short text belongs to nobody: 'good morning' is said by everybody. The weight of a text is its number of characters; a
wide one (Chinese, say) counts twice. A passage below `MIN` is never attributed to the person; from `SURE` on it
always is; between the two it is unless somebody else wrote the same, which the caller finds out.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from roomlore.core.text import graphemes, language

MIN = 12
SURE = 32
_ANCHOR = 6
"""The least number of code points of a passage: no code point weighs more than two."""
_NAME_MIN = 3
_ID_MIN = 4
_WORD_MAX = 20
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
"""Words that roomlore writes before a colon: 'user:ben' is no trace of somebody whose id is 'user'."""

Span = tuple[int, int]


def _always(_: str) -> bool:
    return True


def mark(text: str) -> str:
    """Return the mark for removed text, in the text's language."""
    return _MARKS[language(text)]


def is_mark(text: str) -> bool:
    return text in _MARKS.values()


def has_mark(text: str) -> bool:
    """Return True if something was removed from the text."""
    return any(sign in text for sign in _MARKS.values())


def weight(text: str) -> int:
    """Return the number of graphemes, wide ones counted twice."""
    wide = 0 if text.isascii() else sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return graphemes(text) + wide


def passages(text: str) -> list[str]:
    """Return the recognisable passages of a text: all of it, each of its lines, and its longer sentences, without those
    below the least weight."""
    whole = text.strip()
    lines = [line.strip() for line in whole.splitlines()] if "\n" in whole else []
    sentences = [one.strip() for line in lines or [whole] for one in _SENTENCE.split(line)]
    told = [one for one in dict.fromkeys([whole, *lines]) if weight(one) >= MIN]
    return list(dict.fromkeys([*told, *(one for one in sentences if weight(one) >= SURE)]))


class Traces:
    """Finds and removes the traces of one person.

    `user_id`: matches inside texts as a whole word, case-insensitively. A short id or a small number matches only
    behind an @ or an 'id=', since it may be any word. So does one of letters alone ("will"), and also at the beginning
    of a line before a colon or a comma; in an identifier it matches as a whole word. `said`: the person's passages.
    `names`: the names that others use, removed only if `and_names` is set.
    """

    def __init__(self, user_id: str, said: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self.user_id = user_id
        word, flags = _word(user_id), re.IGNORECASE if user_id.lower() != user_id.upper() else 0
        self._word = re.compile(word if _is_telling(user_id) else _ADDRESSED + word, flags)
        ordinary = _is_telling(user_id) and user_id.isalpha() and len(user_id) <= _WORD_MAX
        self._id = re.compile(f"{_ADDRESSED}{word}|{_BEGINS}{word}{_CALLS}", flags) if ordinary else self._word
        self._lowered = user_id.lower()
        self.names = frozenset(name.strip() for name in names if weight(name.strip()) >= _NAME_MIN)
        self._names = _any_of(self.names)
        self._calls = _any_of(self.names, before=f"@{_ISOLATES}", flags=re.IGNORECASE)
        self.said = frozenset(said)
        lengths: dict[str, set[int]] = {}
        for passage in self.said:
            lengths.setdefault(passage[:_ANCHOR], set()).add(len(passage))
        self._lengths = {anchor: sorted(found, reverse=True) for anchor, found in lengths.items()}

    def and_also(self, more: "Traces") -> "Traces":
        """Return the traces of the same person with further ones added."""
        return Traces(self.user_id, self.said | more.said, self.names | more.names)

    def repeated(self, text: str, counts: Callable[[str], bool] = _always) -> bool:
        """Return True if the text contains a passage of the person that counts."""
        return next(self.repeats(text, counts), None) is not None

    def repeats(self, text: str, counts: Callable[[str], bool] = _always) -> Iterator[Span]:
        """Yield the position of each passage in the text that counts, from left to right."""
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
        """Return the positions of passages that count and are quoted."""
        found = list(self.repeats(text, counts))
        quotations = [one.span() for one in _QUOTATION.finditer(text)] if found else []
        return [span for span in found if _within(span, quotations)]

    def ids(self, text: str, *, named: bool = False) -> Iterator[Span]:
        """Yield the position of each mention of the id. `named`: the text is known to name the person, so that an
        ordinary word is the id too."""
        if self._lowered in text.lower():
            yield from (found.span() for found in (self._word if named else self._id).finditer(text))

    def calls(self, text: str) -> Iterator[Span]:
        """Yield the position of the name in each '@name'."""
        if self._calls and "@" in text:
            yield from (found.span(1) for found in self._calls.finditer(text))

    def has_id(self, text: str) -> bool:
        """Return True if the text, or the identifier that it is, mentions the id."""
        return self.is_named(text) or next(self.ids(text), None) is not None

    def in_label(self, name: str) -> bool:
        """Return True if a name that somebody gave something mentions the id: 'phone of maria'."""
        return self.is_named(name) or next(self.ids(name, named=True), None) is not None

    def names_them(self, text: str) -> bool:
        """Return True if the text mentions the id or a name of the person."""
        return self.has_id(text) or (self._names is not None and self._names.search(text) is not None)

    def tells(self, text: str) -> bool:
        """Return True if another sender's text concerns the person: by the id, or by a name beside a passage. Equal
        words alone do not count."""
        return self.has_id(text) or (self.names_them(text) and self.repeated(text))

    def in_path(self, path: str) -> bool:
        """Return True if the path of a file, 'chats/anna.json', contains the person's id as a whole word."""
        ends = [rf"(?{sign}{_INSIDE_A_WORD})" for sign in ("<!", "!")]
        return re.search(ends[0] + re.escape(self.user_id) + ends[1], path) is not None

    def mentioned(self, text: str) -> bool:
        """Return True if the text, or the identifier that it is ('user:anna'), mentions the person."""
        return self.has_id(text) or self.repeated(text)

    def is_named(self, name: str) -> bool:
        """Return True if an identifier such as 'user:anna' or 'facts:anna' has the person's id as a part, letter by
        letter. A text with white space beside it is not an identifier: 'anna: see you'."""
        if name == self.user_id or self.user_id not in name:
            return name == self.user_id
        if any(sign.isspace() for sign in name.replace(self.user_id, "", 1)):
            return False
        return f":{self.user_id}:" in (f"{name}:" if self.user_id in _OWN_WORDS else f":{name}:")

    def named_in(self, name: str) -> bool:
        """Return True if an identifier contains the person's id, case-sensitively."""
        if self.is_named(name):
            return True
        if self.user_id not in name or self.user_id in _OWN_WORDS:
            return False
        found = (one for one in self._word.finditer(name) if one.group() == self.user_id)
        return any(_stands_alone(name, *one.span()) for one in found)

    def redact(self, text: str, *, and_names: bool = False) -> str:
        """Return the text with a mark in place of each trace; the person's id alone becomes the mark."""
        if self.is_named(text):
            return mark(text)
        spans = [*self.ids(text, named=and_names), *self.repeats(text)]
        if and_names and self._names:
            spans += [found.span() for found in self._names.finditer(text)]
        return cut_out(text, spans)

    def redact_name(self, name: str) -> str:
        """Return an identifier with a mark in place of the id."""
        return mark(name) if self.is_named(name) else cut_out(name, list(self.ids(name, named=True)))

    def redact_others(self, text: str) -> str:
        """Return another sender's text without the id, and without passages if it names the person."""
        if self.names_them(text):
            return self.redact(text)
        return text

    def _at(self, text: str, at: int, lengths: Iterable[int], counts: Callable[[str], bool]) -> int:
        """Return the length of the longest passage at this position, 0 for none; grouped by length, since many passages
        may begin alike."""
        left = len(text) - at
        fitting = (text[at : at + size] for size in lengths if size <= left)
        return next((len(passage) for passage in fitting if passage in self.said and counts(passage)), 0)


def cut_out(text: str, spans: Sequence[Span]) -> str:
    """Return the text with one mark in place of each run of spans; white space around a run stays."""
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
    """Return True if a region contains the span. `regions`: ascending, without overlap."""
    at = bisect_right(regions, span[0], key=itemgetter(0)) - 1
    return at >= 0 and span[1] <= regions[at][1]


def _is_telling(user_id: str) -> bool:
    return weight(user_id) >= _ID_MIN and not (user_id.isdecimal() and len(user_id) <= _ID_MIN)


def _stands_alone(name: str, start: int, end: int) -> bool:
    """Return True if no letter, digit, - or _ is adjacent: '小林子' is another name than '小林'."""
    return not any(sign.isalnum() or sign in "-_" for sign in name[max(start - 1, 0) : start] + name[end : end + 1])


def _word(name: str) -> str:
    """Return the pattern of a name that is no part of a longer word or name; between Chinese characters every position
    is a boundary."""
    before = rf"(?<!{_INSIDE_A_WORD})(?<![0-9A-Za-z]\.)" if _EDGE.match(name) else ""
    after = rf"(?!{_INSIDE_A_WORD})(?!\.[0-9A-Za-z])" if _EDGE.match(name[-1]) else ""
    return before + re.escape(name) + after


def _any_of(names: Iterable[str], *, before: str = "", flags: int = 0) -> re.Pattern[str] | None:
    known = sorted(set(names), key=len, reverse=True)
    return re.compile(f"{before}({'|'.join(map(_word, known))})", flags) if known else None


_RUN, _WIDE_RUN, _WIDE_MIN = 24, 8, 6
"""The length of a common run that counts as a copy; a shorter one if nearly all of its characters are wide."""
_LINE_MIN = 8
"""The least weight of a line that counts as a copy anywhere; a shorter one counts if it is quoted."""
_INDENT = re.compile(r"^[>＞\s]*+", re.MULTILINE)


def without_copies(text: str, said: Iterable[str]) -> str:
    """Return the text with a mark in place of every run, line or quoted line that it shares with one of these texts."""
    spans: list[Span] = []
    for one in said:
        spans += [*_shared(text, one), *_repeated(text, one)]
    return cut_out(text, spans)


def _shared(text: str, said: str) -> list[Span]:
    spans: list[Span] = []
    for size in (_WIDE_RUN, _RUN):
        known = {said[at : at + size] for at in range(len(said) - size + 1)}
        if size == _WIDE_RUN:
            known = {run for run in known if _is_wide(run)}
        if known:
            spans += [(at, at + size) for at in range(len(text) - size + 1) if text[at : at + size] in known]
    return spans


def _repeated(text: str, said: str) -> list[Span]:
    lines = {line.strip() for line in said.splitlines()} - {""}
    spans = [span for span in _quoted(text) if text[slice(*span)] in lines]
    for line in lines:
        if weight(line) >= _LINE_MIN:
            spans += _places(text, line)
    return spans


def _quoted(text: str) -> Iterator[Span]:
    """Yield the spans of quoted text on each line, of all lines above it too."""
    for indent in _INDENT.finditer(text):
        if ">" in indent[0] or "＞" in indent[0]:
            at = indent.end()
            line_end = text.find("\n", at)
            yield at, at + len(text[at : line_end if line_end >= 0 else None].rstrip())


def _places(text: str, line: str) -> Iterator[Span]:
    at = text.find(line)
    while at >= 0:
        yield at, at + len(line)
        at = text.find(line, at + len(line))


def _is_wide(run: str) -> bool:
    return sum(unicodedata.east_asian_width(sign) in "WF" for sign in run) >= _WIDE_MIN
