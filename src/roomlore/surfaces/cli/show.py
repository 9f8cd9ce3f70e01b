"""Values for people to read: tables that fit the terminal, and text that is safe for it."""

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from datetime import UTC, datetime, tzinfo
from itertools import compress
from typing import Any

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from roomlore.core.attachments import attachment, attachments_of, with_attachments
from roomlore.core.context import Context
from roomlore.core.models import Heading, Signals, StoredMessage, TalkState
from roomlore.surfaces.cli.language import causes, interface_language, say

MESSAGE_HELP = "The message's id, or the beginning or end of that."
WHOLE_ID = 512
PLAIN_WIDTH = 120
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_HARMLESS = frozenset("\u200d\u200c")
_LONGEST = 400


def console() -> Console:
    """Return a console on standard output; wide, and without colour or motion, if it is no terminal."""
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False, markup=False, emoji=False)


def inert(text: str, longest: int = _LONGEST) -> str:
    """Return text that cannot control a terminal: one line, without control, direction and surrogate characters."""
    shown = text[: longest + 1]
    safe = "".join(_inert_character(character) for character in shown)
    line = " ".join(safe.split())
    return line if len(text) <= longest else f"{line[:longest]}…"


def inert_piece(text: str) -> str:
    """Return a piece of a longer text that cannot control a terminal. Lines and spaces are kept."""
    return "".join(character if character == "\n" else _inert_character(character) for character in text)


def _inert_character(character: str) -> str:
    if character.isspace():
        return " "
    unsafe = unicodedata.category(character) in _UNSAFE and character not in _HARMLESS
    return "\ufffd" if unsafe else character


def table(*columns: str, right: Iterable[str] = (), fixed: Iterable[str] = ()) -> Table:
    """Return an empty table with its headings in the user's language. `right`: columns of numbers; `fixed`: columns
    that do not wrap."""
    shape = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    numbers, whole = set(right), set(fixed)
    for name in columns:
        side: JustifyMethod = "right" if name in numbers else "left"
        shape.add_column(say(name), justify=side, no_wrap=name in numbers | whole, overflow="fold")
    return shape


_ID_COLUMNS = 19
"""Ids of Slack and Discord fit, longer ones are folded."""


def one_line(*, fill: str = "", **columns: int | None) -> Table:
    """Return an empty table that takes a line for each row: `columns` with their most columns, None for what they need.
    The column `fill`, by default the first, takes what is left; what does not fit is cut, except the ids at the end."""
    shape = Table.grid(padding=(0, 1, 0, 0), expand=True)
    names = list(columns)
    for column, most in columns.items():
        if column == (fill or names[0]):
            shape.add_column(column, no_wrap=True, overflow="ellipsis", ratio=1)
        elif column == names[-1]:
            shape.add_column(column, overflow="fold", max_width=most or _ID_COLUMNS)
        else:
            shape.add_column(column, no_wrap=True, overflow="ellipsis", max_width=most)
    return shape


def rows(shape: Table, lines: Iterable[Sequence[str]]) -> Table:
    """Return the table with lines. Columns in which no line has anything are left out."""
    every = list(lines)
    used = [any(line[place] for line in every) or not every for place in range(len(shape.columns))]
    shape.columns = list(compress(shape.columns, used))
    for line in every:
        shape.add_row(*(Text(cell) for cell in compress(line, used)))
    return shape


_zone: tzinfo = UTC


def times_in(zone: tzinfo) -> None:
    """Show times in this zone from here on."""
    global _zone
    _zone = zone


def shown_zone() -> tzinfo:
    """Return the zone in which times are shown."""
    return _zone


def local(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the moment in the zone, by default that in which times are shown; unchanged at the calendar's ends, if the
    conversion is not possible."""
    try:
        return moment.astimezone(zone or _zone)
    except OverflowError:
        return moment


def clock(moment: datetime | None, zone: tzinfo | None = None) -> str:
    return local(moment, zone).strftime("%Y-%m-%d %H:%M") if moment else "–"


def name(message: StoredMessage) -> str:
    return inert(message.sender_name or message.sender_id, 24)


def as_json(value: Any, *, indent: int | None = 2) -> None:
    """Print JSON on standard output, in UTF-8 whatever the terminal's encoding; on one line without `indent`."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def ids(messages: Iterable[StoredMessage], out: Console) -> None:
    """Print a line for each message that begins with its whole id, however wide the terminal is."""
    for message in messages:
        line = f"  {clock(message.at)}  {name(message)}: {text_of(message)}"
        out.print(Text.assemble((inert(message.id, WHOLE_ID), "dim"), line), soft_wrap=True)


def context(
    built: Context, trigger: StoredMessage, out: Console, *, signals: bool = False, numbers: bool = True
) -> None:
    """Print a context: a line for each message, with a bar for its score and the reason, and the saving. `signals`:
    with the five signals, if the terminal is wide enough. `numbers`: with the scores, else bars compare them, and
    a reason that half of the lines have is left out."""
    out.print(Text.assemble((f"{name(trigger)}: ", "bold"), inert(trigger.text)))
    place = (
        clock(trigger.at),
        inert(built.room_id),
        inert(built.message_id),
        built.strategy,
        f"{built.build_ms:.1f} ms",
    )
    out.print(Text(f"  {' · '.join(place)}", "dim"))
    if built.degraded:
        out.print(Text(f"  {say('degraded: {why}', why=causes(inert(built.degraded)))}", "yellow"))
    if built.messages:
        out.print(_context_table(built, out, signals=signals and out.width >= WIDE, numbers=numbers))
    else:
        out.print(f"  {say('Nothing earlier matters for this message.')}")
    out.print(Text(f"  {savings(built)}", "green"))


WIDE = 100
"""From so many columns on there is room for the signals."""
_NARROW_REASON, _WIDE_REASON = 24, 44
_NUMBER = re.compile(r"(, [\d.]+ likely| \([\d.]+\))$")
_BESIDE = re.compile(r" \([^()]*\)$")
_BAR = 5
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SIGNALS = ("reply", "user", "time", "@", "words")


def _context_table(built: Context, out: Console, *, signals: bool, numbers: bool) -> Table:
    wide = out.width >= WIDE and not signals
    most = 1.0 if numbers else max(candidate.score for candidate in built.messages) or 1.0
    one_day = len({local(candidate.message.at).date() for candidate in built.messages}) == 1
    shape = Table.grid(padding=(0, 1, 0, 0), expand=True)
    for column in ("sent", "bar", "score"):
        shape.add_column(column, no_wrap=True)
    shape.add_column(no_wrap=True, overflow="ellipsis", max_width=10)
    shape.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for _ in _SIGNALS if signals else ():
        shape.add_column(no_wrap=True, justify="right")
    shape.add_column(no_wrap=True, overflow="ellipsis", max_width=_WIDE_REASON if wide else _NARROW_REASON)
    if signals:
        shape.add_row(*(Text(head, "bold") for head in ("", "", "", "", "", *map(say, _SIGNALS), "")))
    reasons = [reason(candidate.reason, wide=wide) for candidate in built.messages]
    usual = max(reasons, key=reasons.count)
    left_out = usual if not numbers and reasons.count(usual) * 2 >= len(reasons) else None
    for candidate, why in zip(built.messages, reasons, strict=True):
        message = candidate.message
        shape.add_row(
            Text(local(message.at).strftime("%H:%M" if one_day else "%m-%d %H:%M"), "dim"),
            bar(candidate.score / most, out) if candidate.signals else Text(),
            f"{candidate.score:.2f}" if candidate.signals and numbers else "",
            Text(name(message), "bold"),
            f"{'→ ' if message.id == built.parent else ''}{text_of(message)}",
            *(_five(candidate.signals) if signals else ()),
            Text("" if why == left_out else why, "dim"),
        )
    return shape


def bar(share: float, out: Console) -> Text:
    """Return a bar of five columns for a number from 0 to 1."""
    eighths = round(max(0.0, min(1.0, share)) * _BAR * 8)
    if not (out.encoding or "").lower().startswith("utf"):
        return Text(f"{'#' * round(eighths / 8):<{_BAR}}", "green")
    whole, rest = divmod(eighths, 8)
    return Text(f"{'█' * whole + (_EIGHTHS[rest] if rest else ''):<{_BAR}}", "green")


def reason(text: str, *, wide: bool) -> str:
    """Return the reason without the number that the bar shows, and in a narrow terminal without what is in brackets."""
    plain = _NUMBER.sub("", inert(text))
    shown = plain if wide else _BESIDE.sub("", plain)
    if interface_language() == "zh":
        return causes(shown)
    return shown if wide else shown.replace("the same thread", "same thread")


def text_of(message: StoredMessage, longest: int = 160) -> str:
    """Return the text of a message in one line, with what was said of its attachments; of one without words what it
    holds."""
    if any(held.description for held in attachments_of(message)):
        return inert(with_attachments(message, interface_language()), longest)
    if message.text.strip():
        return inert(message.text, longest)
    kind, caption = attachment(message)
    return f"({': '.join(part for part in (say(kind or 'no text'), inert(caption, 80)) if part)})"


def _five(signals: Signals | None) -> list[str]:
    if signals is None:
        return ["–"] * 5
    return [f"{value:.2f}" for value in astuple(signals)]


def savings(built: Context) -> str:
    """Return the tokens compared with those of the plain window."""
    spent = say("{messages}, {tokens} tokens", messages=counted(len(built.messages), "message"), tokens=built.tokens)
    if not built.window_tokens:
        return spent
    return say(
        "{spent}; the last {messages} would have cost {tokens}: {verdict}",
        spent=spent,
        messages=counted(built.window_messages, "message"),
        tokens=built.window_tokens,
        verdict=verdict(built.tokens, built.window_tokens),
    )


def verdict(tokens: int, window_tokens: int) -> str:
    """Return the saving of tokens compared with the plain window as text."""
    share = 1 - tokens / window_tokens
    return say("{share:.0%} saved", share=share) if share >= 0 else say("{share:.0%} more", share=-share)


def heading(of: Heading) -> str:
    """Return the title of a thread, with its state unless it is closed."""
    state = "" if of.state is TalkState.CLOSED else f" · {say(of.state)}"
    return say("thread: {title}", title=inert(of.title, 120)) + state


def counted(count: int, what: str) -> str:
    """Return a number with its noun, in the plural unless there is one."""
    if interface_language() == "zh":
        return say(f"{{count:,}} {what}s", count=count)
    return f"{count} {what}" if count == 1 else f"{count:,} {what}s"


def padded(text: str, columns: int) -> str:
    """Return the text with spaces up to so many columns of a terminal, of which a Chinese character takes two."""
    return text + " " * max(0, columns - cell_len(text))
