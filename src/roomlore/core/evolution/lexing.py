"""Where an object of almost-JSON ends, and how it reads as JSON."""

import json
import re
from dataclasses import dataclass

MOST_DEPTH = 16
MOST_CHARS = 200_000
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
BLANKS = rf" \t\v\f\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000{INVISIBLE}"
OPENING = {"{": "}", "[": "]"}
_WIDE = str.maketrans("｛｝［］，：", "{}[],:")
_CLOSERS = {'"': '"＂”', "＂": '＂"', "“": '”“"', "”": '”"', "'": "'", "＇": "＇'", "‘": "’‘'", "’": "’'"}
_QUOTE_ENDS = {quote: re.compile(rf"\\[^\n]|[{closers}\n]") for quote, closers in _CLOSERS.items()}
_FOLLOWS = re.compile(rf"[{BLANKS}]*(?:[,:}}\]，：｝］\n]|//|\#|\Z)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,20})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?")
_LITERALS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_TOKEN = re.compile(
    rf"(?P<space>[{BLANKS}\n]+)|(?P<comment>(?://|\#)[^\n]*)|(?P<mark>[{{}}\[\],:｛｝［］，：])"
    r"|(?P<quote>[\"'＂＇“”‘’])|(?P<bare>(?:(?!\s(?:\#|//))[^\n,:{}\[\]，：｛｝［］])+)"
)


@dataclass(frozen=True, slots=True)
class Lexed:
    """`end`: behind the object, or where it fell apart. `written`: the object as JSON, '' where it fell apart, with
    the `fault`."""

    end: int
    written: str = ""
    fault: str = ""


def lex(text: str, start: int) -> Lexed:
    """The object whose brace stands at `start`. An object that is JSON as it stands ends where JSON says; texts never
    go on over a line's end."""
    return _Lexer(text).run(start)


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._out: list[str] = []
        self._open: list[str] = []

    def run(self, start: int) -> Lexed:
        at = start
        while token := _TOKEN.match(self._text, at):
            kind, fault, at = token.lastgroup, "", token.end()
            if kind == "mark":
                fault = self._mark(token[0].translate(_WIDE))
            elif kind == "quote":
                at = self._string(token.start())
                fault = "" if at > 0 else "A text in it does not end on its line."
            elif kind == "bare":
                self._value(_bare(token[0]))
            if fault:
                return Lexed(token.end(), fault=fault)
            if at - start > MOST_CHARS:
                return Lexed(at, fault=f"It is longer than {MOST_CHARS:,} characters.")
            if not self._open:
                return Lexed(at, "".join(self._out))
        return Lexed(len(self._text), fault="It is cut off before it ends.")

    def _mark(self, mark: str) -> str:
        if mark in OPENING:
            return self._opened(mark)
        if mark not in "]}":
            self._out.append(mark)
            return ""
        if OPENING[self._open.pop()] != mark:
            return "Its brackets do not match."
        if self._out[-1] == ",":
            self._out.pop()
        self._out.append(mark)
        return ""

    def _opened(self, mark: str) -> str:
        if self._open and self._open[-1] == "{" and self._out[-1] != ":":
            return "Another object begins before it ends."
        if len(self._open) >= MOST_DEPTH:
            return f"It is nested more than {MOST_DEPTH} deep."
        self._value(mark)
        self._open.append(mark)
        return ""

    def _value(self, written: str) -> None:
        """A comma that was forgotten is put in."""
        if self._out and self._out[-1] not in ("{", "[", ",", ":"):
            self._out.append(",")
        self._out.append(written)

    def _string(self, start: int) -> int:
        """Behind the text that opens at `start`; -1 where it does not end on its line. A quote inside it that nobody
        escaped is known by what follows."""
        for found in _QUOTE_ENDS[self._text[start]].finditer(self._text, start + 1, start + MOST_CHARS):
            if found[0] == "\n":
                return -1
            if found[0][0] != "\\" and _FOLLOWS.match(self._text, found.end()):
                self._value(_quoted(self._text[start + 1 : found.start()]))
                return found.end()
        return -1


def _quoted(inside: str) -> str:
    if '"' not in inside and "\\" not in inside:
        return json.dumps(inside)
    escaped = re.sub(r'\\.|"', _escaped, inside)
    try:
        return json.dumps(json.loads(f'"{escaped}"', strict=False))
    except ValueError:
        return json.dumps(inside)


def _escaped(found: re.Match[str]) -> str:
    return {'"': '\\"', "\\'": "'"}.get(found[0], found[0])


def _bare(word: str) -> str:
    word = word.strip().strip(INVISIBLE)
    if word in _LITERALS:
        return _LITERALS[word]
    return word if _NUMBER.fullmatch(word) else json.dumps(word)
