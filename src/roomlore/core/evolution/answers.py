"""Read a model's answer: where its objects begin and end, what is not part of an object, and the operations.

json-repair is asked last. It cannot do what this module does first: see decision 0023.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, get_args

from roomlore.core.evolution.requests import Answer, Kind, Operation, Refusal, Rejected
from roomlore.core.json_values import storable
from roomlore.core.patterns import lazy_pattern

MAX_DEPTH = 16
MAX_CHARS = 200_000
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
BLANKS = rf" \t\v\f\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000{INVISIBLE}"
OPENING = {"{": "}", "[": "]"}
_WIDE = str.maketrans("｛｝［］，：", "{}[],:")
_CLOSERS = {'"': '"＂”', "＂": '＂"', "“": '”“"', "”": '”"', "'": "'", "＇": "＇'", "‘": "’‘'", "’": "’'"}
# What ends a quotation: an escape is stepped over, a closing mark of its kind or a line end ends it.
_QUOTE_ENDS = {quote: lazy_pattern(rf"\\[^\n]|[{closers}\n]") for quote, closers in _CLOSERS.items()}
# What follows the end of a value; a quotation mark before anything else does not end it.
_FOLLOWS = lazy_pattern(rf"[{BLANKS}]*(?:[,:}}\]，：｝］\n]|//|\#|\Z)")
# A number of JSON; bounded, since a model may write digits without end.
_NUMBER = lazy_pattern(r"-?(?:0|[1-9][0-9]{0,20})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?")
_LITERALS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
# The tokens of JSON as models write it: full-width marks, curly quotation marks, comments, bare words.
_TOKEN = lazy_pattern(
    rf"(?P<space>[{BLANKS}\n]+)|(?P<comment>(?://|\#)[^\n]*)|(?P<mark>[{{}}\[\],:｛｝［］，：])"
    r"|(?P<quote>[\"'＂＇“”‘’])|(?P<bare>(?:(?!\s(?:\#|//))[^\n,:{}\[\]，：｛｝［］])+)"
)


@dataclass(frozen=True, slots=True)
class Lexed:
    """The result of reading an object. `end`: the index behind the object or the failure. `written`: the object as
    JSON, '' if it failed, with the `fault`."""

    end: int
    written: str = ""
    fault: str = ""


def lex(text: str, start: int) -> Lexed:
    """Read the object whose brace is at `start`. A valid JSON object ends as JSON defines; texts never continue over a
    line's end."""
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
            if at - start > MAX_CHARS:
                return Lexed(at, fault=f"It is longer than {MAX_CHARS:,} characters.")
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
        if len(self._open) >= MAX_DEPTH:
            return f"It is nested more than {MAX_DEPTH} deep."
        self._value(mark)
        self._open.append(mark)
        return ""

    def _value(self, written: str) -> None:
        """Write a value, with the comma before it if it is missing."""
        if self._out and self._out[-1] not in ("{", "[", ",", ":"):
            self._out.append(",")
        self._out.append(written)

    def _string(self, start: int) -> int:
        """Return the index behind the text that opens at `start`; -1 if it does not end on its line. An unescaped quote
        inside the text is recognised by what follows it."""
        for match in _QUOTE_ENDS[self._text[start]].finditer(self._text, start + 1, start + MAX_CHARS):
            if match[0] == "\n":
                return -1
            if match[0][0] != "\\" and _FOLLOWS.match(self._text, match.end()):
                self._value(_quoted(self._text[start + 1 : match.start()]))
                return match.end()
        return -1


def _quoted(inside: str) -> str:
    if '"' not in inside and "\\" not in inside:
        return json.dumps(inside)
    escaped = re.sub(r'\\.|"', _escaped, inside)
    try:
        return json.dumps(json.loads(f'"{escaped}"', strict=False))
    except ValueError:
        return json.dumps(inside)


def _escaped(match: re.Match[str]) -> str:
    return {'"': '\\"', "\\'": "'"}.get(match[0], match[0])


def _bare(word: str) -> str:
    word = word.strip().strip(INVISIBLE)
    if word in _LITERALS:
        return _LITERALS[word]
    return word if _NUMBER.fullmatch(word) else json.dumps(word)


MAX_PIECES = 4000
MAX_PROSE = 200
REPAIRABLE_CHARS = 20_000
MAX_REPAIRS = 200
MAX_WRAPPERS = 1000
FIELDS = frozenset(
    (
        "action",
        "old_id",
        "old_ids",
        "statement",
        "change_reason",
        "reason",
        "tags",
        "evidence",
        "confidence",
        "valid_from",
        "valid_until",
    )
)
_BLOCKS = {"<think>": "</think>", "<thinking>": "</thinking>", "/*": "*/", "<!--": "-->"}
# Where something other than prose may begin; // in an address is none.
_NEXT = lazy_pattern(r"\n\s*|[{｛]|[}｝]+|</?think(?:ing)?>|<!--|/\*|(?<!:)//|(?<=\s)#")
# White space without line ends.
_BLANK = lazy_pattern(rf"[{BLANKS}]*")
# The beginning of a comment.
_COMMENT = lazy_pattern(rf"[{BLANKS}]*(?://|#)")
# The line that opens or closes a block of code.
_FENCE = lazy_pattern(rf"[{BLANKS}]*(?:```|~~~)")
# A letter or a figure: the text is not only marks.
_WORD = lazy_pattern(r"[^\W_]")
# A line that begins with an object, or with a list of them.
_NEW_LINE = lazy_pattern(rf"\n[{BLANKS}]*+(?:[\[［][{BLANKS}]*+)?(?=[{{｛])")
# An object whose first field has an object or a list, which is then read instead.
_WRAPPER = lazy_pattern(
    rf"[{{｛][{BLANKS}\n]{{0,99}}[\"'“]?(\w{{1,40}})[\"'”]?[{BLANKS}]{{0,99}}[:：][{BLANKS}\n]{{0,99}}(?=[\[{{［｛])"
)
# The field that each operation has.
_ACTION = lazy_pattern(r"action[\"'“”]?\s{0,9}[:：]", re.IGNORECASE)
# A line that says something: it has a letter, a figure or a quotation mark.
_SAID = lazy_pattern(r"[^\W_]|[\"'“”‘’＂＇]")
_QUOTES = "\"'“”‘’＂＇"


class _DuplicateField(ValueError):
    """A field occurs twice in an object with different values."""


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A piece of an answer. `value`: the object, or None if it could not be read, for the reason in `fault`."""

    line: int
    text: str
    value: dict[str, Any] | None = None
    fault: str = ""
    repaired: bool = False


def find(text: str, repair: Callable[[str], str] | None) -> tuple[list[AnswerPiece], int]:
    """Return the pieces in order, including prose, and the number of further lines that were skipped."""
    finder = _Finder(text, repair)
    finder.run()
    return finder.pieces, finder.passed_over


class _Finder:
    def __init__(self, text: str, repair: Callable[[str], str] | None) -> None:
        self.pieces: list[AnswerPiece] = []
        self.passed_over = 0
        self._text, self._repair = text, repair
        self._repairs = self._prose = self._wrappers = 0
        self._line, self._counted = 1, 0
        self._gap: int | None = 0
        self._object_end = self._line_at = 0
        self._unsure: int | None = None

    def run(self) -> None:
        at = self._line_start(0)
        while match := _NEXT.search(self._text, at):
            at = self._step(match[0], match.start(), match.end())
            if len(self.pieces) > MAX_PIECES:
                self.passed_over += self._text.count("\n", at)
                return
        self._end_line(len(self._text))

    def _step(self, mark: str, start: int, end: int) -> int:
        if mark[0] == "\n":
            self._end_line(start)
            return self._line_start(end)
        if mark in "{｛":
            return self._object(start)
        if mark[0] in "}｝":
            return self._unmatched_brace(start, end)
        if mark in _BLOCKS:
            return self._block(mark, start)
        if mark.startswith("</"):
            return self._end_thought(end)
        self._end_line(start)
        return self._line_end(end)

    def _line_start(self, at: int) -> int:
        self._gap = self._line_at = at
        if _COMMENT.match(self._text, at):
            self._gap = None
            return self._line_end(at)
        if fence := _FENCE.match(self._text, at):
            self._gap = None
            return fence.end()
        return at

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end

    def _number(self, at: int) -> int:
        if at >= self._counted:
            self._line += self._text.count("\n", self._counted, at)
        else:
            self._line -= self._text.count("\n", at, self._counted)
        self._counted = at
        return self._line

    def _end_line(self, end: int) -> None:
        """Record the text of a line that has no object."""
        gap, self._gap = self._gap, None
        if gap is None or not _WORD.search(self._text, gap, end):
            return
        if self._prose >= MAX_PROSE:
            self.passed_over += 1
            return
        self._prose += 1
        self._add(gap, end, fault="It holds no JSON object.")

    def _add(self, start: int, end: int, **made: Any) -> None:
        blank = _BLANK.match(self._text, start)
        start = blank.end() if blank else start
        self.pieces.append(AnswerPiece(self._number(start), self._text[start : min(end, start + 400)], **made))

    def _object(self, start: int) -> int:
        wrapper = _WRAPPER.match(self._text, start)
        if wrapper and wrapper[1].lower() not in FIELDS and self._wrappers < MAX_WRAPPERS:
            self._gap = None
            self._wrappers += 1
            return wrapper.end()
        lexed = lex(self._text, start)
        if lexed.fault:
            return self._add_broken(start, lexed)
        self._gap = None
        self._read(start, lexed)
        self._object_end = lexed.end
        return lexed.end

    def _add_broken(self, start: int, lexed: Lexed) -> int:
        self._gap = None
        self._unsure = len(self.pieces)
        self._add(start, self._line_end(start), fault=lexed.fault)
        again = _NEW_LINE.search(self._text, start, min(lexed.end + 1, len(self._text)))
        if again:
            return again.end()
        return self._line_end(lexed.end - 1 if self._text[lexed.end - 1] == "\n" else lexed.end)

    def _read(self, start: int, lexed: Lexed) -> None:
        end = lexed.end
        if start and self._text[start - 1] in _QUOTES:
            self._unsure = len(self.pieces)
            self._add(start, end, fault="It is a quotation, no object of its own.")
            return
        made = self._made(self._text[start:end], lexed.written)
        if made.get("repaired") or "fault" in made:
            self._unsure = len(self.pieces)
        self._add(start, end, **made)

    def _made(self, raw: str, written: str) -> dict[str, Any]:
        try:
            value, repaired = _loaded(raw), False
            if value is None:
                value, repaired = _loaded(written) or self._repaired(raw), True
        except _DuplicateField as twice:
            return {"fault": f"It gives {twice} twice, and not the same."}
        if value is None:
            return {"fault": "It is no JSON and cannot be repaired."}
        return {"value": value, "repaired": repaired}

    def _repaired(self, raw: str) -> dict[str, Any] | None:
        """Repair the object, unless the repair could swap the action or made fields from parts of a text."""
        if self._repair is None or len(raw) > REPAIRABLE_CHARS or len(_ACTION.findall(raw)) != 1:
            return None
        self._repairs += 1
        mended = _loaded(self._repair(raw)) if self._repairs <= MAX_REPAIRS else None
        return mended if mended and mended.keys() <= FIELDS else None

    def _unmatched_brace(self, start: int, end: int) -> int:
        """Handle an unmatched closing brace. If words precede it, an object ended too early, and everything read since
        may have been part of it."""
        if self._unsure is not None and _SAID.search(self._text, max(self._line_at, self._object_end), start):
            self._invalidate(self._unsure, "It may be part of the text of an object that is not written as JSON.")
            self._unsure = None
        self._object_end = end
        return end

    def _invalidate(self, since: int, fault: str) -> None:
        for place, piece in enumerate(self.pieces[since:], since):
            if piece.value is not None:
                self.pieces[place] = replace(piece, value=None, fault=fault)

    def _block(self, mark: str, start: int) -> int:
        end = self._text.find(_BLOCKS[mark], start)
        if end >= 0:
            self._end_line(start)
            return end + len(_BLOCKS[mark])
        self._add(start, self._line_end(start), fault=f"{mark} never ends; nothing behind it is read.")
        self._gap = None
        return len(self._text)

    def _end_thought(self, end: int) -> int:
        """Handle the end of a thought without a beginning: everything before it belongs to the thought."""
        self._invalidate(0, "It belongs to a thought.")
        self._unsure, self._gap = None, None
        return end


def _loaded(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, object_pairs_hook=_fields, parse_int=_whole)
    except _DuplicateField:
        raise
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().lower()
        if name in fields and fields[name] != value:
            raise _DuplicateField(f"{name:.40}")
        fields[name] = value
    return fields


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 20 else math.inf


MAX_OPERATIONS = 1000
MAX_REJECTED = 200
_REJECTED_CHARS = 120
_HANDLE_CHARS = 64
_MAX_ITEMS = 100
# A number as people write it, with a percent sign if it has one.
_WRITTEN_NUMBER = lazy_pattern(r"\s{0,9}(\d{1,20}(?:[.,]\d{0,20})?|[.,]\d{1,20})\s{0,9}(%?)\s{0,9}", re.ASCII)
# Between the handles of a list.
_BETWEEN = lazy_pattern(r"[,，、;；]")
_UNKNOWN_DAYS = frozenset(("none", "null", "unknown", "-"))
_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


class _InvalidObject(ValueError):
    """The reason why an object is not a usable request."""


def read_answer(text: str, *, repair: Callable[[str], str] | None = None) -> Answer:
    """Return the requests of the answer, in its order.

    `repair`: turns an object into JSON if it is still invalid after full-width punctuation, quotes, keys, commas and
    comments were corrected here. It is called for complete objects of at most 20,000 characters, at most 200 times, and
    must not raise. Objects that are cut off, inside comments, thoughts or texts, or contradictory are rejected. At most
    1,000 operations and 200 rejections are returned, then one rejection with the number of further ones. A keep or
    delete of several memories becomes one operation for each.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    pieces, passed_over = find(text, repair)
    operations: list[Operation] = []
    rejected: list[Rejected] = []
    for piece in pieces:
        try:
            read_operations = list(_operations(piece))
            if len(operations) + len(read_operations) > MAX_OPERATIONS:
                raise _InvalidObject(f"There are more than {MAX_OPERATIONS} operations before it.")
            operations.extend(read_operations)
        except _InvalidObject as unfit:
            kind = Refusal if piece.text[:1] in OPENING or piece.text[:1] == "｛" else Rejected
            rejected.append(kind(piece.line, _short(piece.text), str(unfit)))
    return Answer(tuple(operations), _capped(rejected, passed_over))


def _capped(rejected: list[Rejected], passed_over: int) -> tuple[Rejected, ...]:
    more = max(0, len(rejected) - MAX_REJECTED) + passed_over
    if not more:
        return tuple(rejected)
    kept = rejected[:MAX_REJECTED]
    line = rejected[MAX_REJECTED].line if len(rejected) > MAX_REJECTED else kept[-1].line
    return (*kept, Rejected(line, "", f"{more} more could not be used from here on."))


def _short(text: str) -> str:
    text = storable(text[: _REJECTED_CHARS + 1]).strip()
    return text if len(text) <= _REJECTED_CHARS else text[: _REJECTED_CHARS - 1] + "…"


def _operations(piece: AnswerPiece) -> Iterator[Operation]:
    if piece.value is None:
        raise _InvalidObject(piece.fault)
    for fields in _unwrapped(piece.value):
        yield from _split(_operation(fields, piece))


def _unwrapped(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects in a wrapper with another name, else the object itself."""
    if FIELDS & fields.keys():
        return [fields]
    lists = [value if isinstance(value, list) else [value] for value in fields.values()]
    inner = [value for values in lists for value in values if isinstance(value, dict)]
    return inner or [fields]


def _split(operation: Operation) -> Iterator[Operation]:
    if operation.kind == "update" or len(operation.handles) < 2:
        yield operation
        return
    for handle in operation.handles:
        yield Operation(
            line=operation.line,
            kind=operation.kind,
            handles=(handle,),
            reason=operation.reason,
            tags=operation.tags,
            evidence=operation.evidence,
            confidence=operation.confidence,
            repaired=operation.repaired,
        )


def _operation(fields: dict[str, Any], piece: AnswerPiece) -> Operation:
    kind = _kind(fields)
    handles = _handles(fields)
    if kind == "create" and handles:
        raise _InvalidObject("A create names no memory; an update does.")
    if kind in ("update", "delete") and not handles:
        raise _InvalidObject(f"It does not say in old_id which memory to {kind}.")
    return Operation(
        line=piece.line,
        kind=kind,
        handles=handles,
        statement=_statement(fields) if kind in ("update", "create") else "",
        reason=_text(fields, "change_reason") or _text(fields, "reason"),
        tags=_items(fields, "tags"),
        evidence=_evidence(fields),
        confidence=_confidence(fields.get("confidence")),
        valid_from=_day(fields, "valid_from"),
        valid_until=_day(fields, "valid_until"),
        repaired=piece.repaired,
    )


def _kind(fields: dict[str, Any]) -> Kind:
    if fields.get("action") is None:
        raise _InvalidObject("It has no action.")
    action = _text(fields, "action")
    if (kind := _KINDS.get(action.lower())) is None:
        raise _InvalidObject(f"No action is called {storable(action)!r:.60}; there are {', '.join(_KINDS)}.")
    return kind


def _handles(fields: dict[str, Any]) -> tuple[str, ...]:
    given = (*_items(fields, "old_id"), *_items(fields, "old_ids"))
    return tuple(dict.fromkeys(map(_handle, given)))


def _handle(given: str) -> str:
    """Return the normalised handle: 'ｍ１ ' and 'M1' become m1."""
    handle = unicodedata.normalize("NFKC", given[: _HANDLE_CHARS + 1]).strip().strip(INVISIBLE).lower()
    if len(handle) > _HANDLE_CHARS:
        raise _InvalidObject(f"A handle is longer than {_HANDLE_CHARS} characters.")
    return handle


def _evidence(fields: dict[str, Any]) -> tuple[str, ...]:
    """Return the evidence handles; 'c1, c2' counts as two."""
    given = (piece for several in _items(fields, "evidence") for piece in _BETWEEN.split(several))
    return tuple(dict.fromkeys(_handle(piece) for piece in given if piece.strip()))


def _statement(fields: dict[str, Any]) -> str:
    statement = _text(fields, "statement")
    if not statement:
        raise _InvalidObject("It has no statement.")
    return statement


def _items(fields: dict[str, Any], name: str) -> tuple[str, ...]:
    """Return the items of a text or a list of texts, without empty ones."""
    given = fields.get(name)
    given = [] if given is None else given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in given):
        raise _InvalidObject(f"Its {name} must be texts.")
    if len(given) > _MAX_ITEMS:
        raise _InvalidObject(f"Its {name} are more than {_MAX_ITEMS}.")
    return tuple(item for text in given if (item := _clean(text)))


def _text(fields: dict[str, Any], name: str) -> str:
    given = fields.get(name)
    if given is None:
        return ""
    if not isinstance(given, str):
        raise _InvalidObject(f"Its {name} must be a text.")
    return _clean(given)


def _clean(text: str) -> str:
    return storable(text).strip().strip(INVISIBLE).strip()


def _day(fields: dict[str, Any], name: str) -> date | None:
    """Return the day of a text such as 2026-05-01, with or without a time behind it."""
    given = _text(fields, name)
    if not given or given.lower() in _UNKNOWN_DAYS:
        return None
    try:
        return date.fromisoformat(given[:10])
    except ValueError:
        raise _InvalidObject(f"Its {name} must be a day such as 2026-05-01.") from None


def _confidence(given: Any) -> float | None:
    """Return the confidence as it is written, such as 0.8, ".8" or "80%"; NaN, which the plan leaves out with a note,
    if it is no number."""
    if given is None or (isinstance(given, int | float) and not isinstance(given, bool)):
        return given if given is None else float(given)
    written = _WRITTEN_NUMBER.fullmatch(unicodedata.normalize("NFKC", given)) if isinstance(given, str) else None
    if written is None:
        return math.nan
    number = float(written[1].replace(",", "."))
    return number / 100 if written[2] else number
