"""Values for people to read: tables that fit the terminal, and text that is safe for it."""

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from roomlore.core.context import Context
from roomlore.core.models import Candidate, Heading, Signals, StoredMessage, TalkState

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
    """Return an empty table. `right`: columns of numbers; `fixed`: columns that do not wrap."""
    shape = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    numbers, whole = set(right), set(fixed)
    for name in columns:
        side: JustifyMethod = "right" if name in numbers else "left"
        shape.add_column(name, justify=side, no_wrap=name in numbers | whole, overflow="fold")
    return shape


def rows(shape: Table, lines: Iterable[Sequence[str]]) -> Table:
    for line in lines:
        shape.add_row(*(Text(cell) for cell in line))
    return shape


def clock(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%d %H:%M") if moment else "–"


def name(message: StoredMessage) -> str:
    return inert(message.sender_name or message.sender_id, 24)


def as_json(value: Any, *, indent: int | None = 2) -> None:
    """Print JSON on standard output, in UTF-8 whatever the terminal's encoding; on one line without `indent`."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def context(built: Context, trigger: StoredMessage, out: Console) -> None:
    """Print a context as a table: the messages, their score on each signal, the reason, and the saving."""
    out.print(Text.assemble((f"{name(trigger)}: ", "bold"), inert(trigger.text)))
    out.print(f"  {clock(trigger.at)} · {inert(built.room_id)} · {inert(built.message_id)} · {built.strategy}")
    if built.degraded:
        out.print(Text(f"  degraded: {inert(built.degraded)}", "yellow"))
    if built.messages:
        out.print(rows(_context_table(), (_line(candidate, built) for candidate in built.messages)))
    else:
        out.print("  Nothing earlier matters for this message.")
    out.print(Text(f"  {savings(built)}", "green"))


def _context_table() -> Table:
    numbers = ("score", "reply", "user", "time", "@", "words")
    return table("sent", "sender", "text", *numbers, "reason", right=numbers, fixed=("sent",))


def _line(candidate: Candidate, built: Context) -> list[str]:
    message = candidate.message
    mark = "→ " if message.id == built.parent else ""
    said = inert(message.text, 160)
    return [
        message.at.strftime("%m-%d %H:%M"),
        name(message),
        f"{mark}{said}",
        *_numbers(candidate),
        inert(candidate.reason),
    ]


def _numbers(candidate: Candidate) -> list[str]:
    return [f"{candidate.score:.2f}", *_five(candidate.signals)]


def _five(signals: Signals | None) -> list[str]:
    if signals is None:
        return ["–"] * 5
    five = (
        signals.reply_chain,
        signals.user_continuity,
        signals.time_decay,
        signals.mention_relation,
        signals.keyword_overlap,
    )
    return [f"{value:.2f}" for value in five]


def savings(built: Context) -> str:
    """Return the tokens compared with those of the plain window."""
    spent = f"{counted(len(built.messages), 'message')}, {built.tokens} tokens"
    window = f"the last {counted(built.window_messages, 'message')} would have cost {built.window_tokens}"
    if not built.window_tokens:
        return f"{spent} ({built.build_ms:.1f} ms)"
    return f"{spent}; {window}: {verdict(built.tokens, built.window_tokens)} ({built.build_ms:.1f} ms)"


def verdict(tokens: int, window_tokens: int) -> str:
    """Return the saving of tokens compared with the plain window as text."""
    share = 1 - tokens / window_tokens
    return f"{share:.0%} saved" if share >= 0 else f"{-share:.0%} more"


def heading(of: Heading) -> str:
    """Return the title of a thread, with its state unless it is closed."""
    return f"thread: {inert(of.title, 120)}{'' if of.state is TalkState.CLOSED else f' · {of.state}'}"


def counted(count: int, what: str) -> str:
    """Return a number with its noun, in the plural unless there is one."""
    return f"{count} {what}" if count == 1 else f"{count:,} {what}s"
