"""The report of `roomlore eval` as one page of HTML, with bars drawn in SVG."""

from collections.abc import Iterator
from html import escape

from roomlore.core.evaluation import Evaluation, QuestionScore, RoomScore, Share, caution

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd}
td.n,th.n{text-align:right}svg{width:100%;height:auto}.leak{color:#b00020}
@media(prefers-color-scheme:dark){body{color:#e8e8e8;background:#161616}th,td{border-color:#444}.leak{color:#ff6b81}}
"""
_WIDE, _HIGH, _NAME = 640, 22, 150


def page(found: Evaluation) -> str:
    """Return the page, which needs nothing from elsewhere."""
    parts = "\n".join(_parts(found))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>roomlore eval</title>'
    return f"<!doctype html>\n<html lang=en><head>{head}<style>{_STYLE}</style></head><body>\n{parts}\n</body></html>\n"


def _parts(found: Evaluation) -> Iterator[str]:
    yield "<h1>How well roomlore does on these rooms</h1>"
    yield (
        "<p>Platform replies were hidden one at a time. A context counts if it still holds the message that was "
        f"answered. Seed {found.seed}, {found.seconds:.1f} s. In brackets: the interval that holds the share of "
        "all replies 19 times of 20.</p>"
    )
    if few := caution(found):
        yield f'<p class="leak">{_text(few)}</p>'
    yield bars([("roomlore", found.found), ("last 20 messages", found.window)])
    yield f"<p>Tokens of the contexts: {found.tokens:,}; of the last 20 messages: {found.window_tokens:,}.</p>"
    yield _table(found.rooms)
    if found.asked:
        yield from _questions(found.asked)
    if found.forbidden:
        yield f"<h2>Forbidden texts</h2><p>{found.forbidden} were looked for, {len(found.leaks)} are shown.</p>"
        for leak in found.leaks:
            yield f'<p class="leak">{_text(leak.viewer)} is shown “{_text(leak.text)}” ({_text(leak.where)}).</p>'


def _questions(asked: QuestionScore) -> Iterator[str]:
    yield "<h2>Questions</h2>"
    yield bars([(f"within the first {rank}", share) for rank, share in asked.recall.items()])
    yield f"<p>{asked.ms:.0f} ms a search; {asked.tokens:.0f} tokens of hits on average.</p>"
    if asked.contexts.cases:
        yield bars([("context of the message", asked.contexts)])
        yield f"<p>{asked.context_tokens:.0f} tokens of a context on average.</p>"
    if asked.missed:
        yield f"<ul>{''.join(f'<li>{_text(one)}</li>' for one in asked.missed)}</ul>"


def _table(rooms: tuple[RoomScore, ...]) -> str:
    heads = ("messages", "replies", "tried", "held", "in the last 20", "size")
    head = "".join(f'<th class="n">{name}</th>' for name in heads)
    return f"<table><tr><th>room</th>{head}</tr>{''.join(map(_row, rooms))}</table>"


def _row(room: RoomScore) -> str:
    cells = (
        f"{room.messages:,}",
        f"{room.replies:,}",
        f"{room.found.cases:,}",
        str(room.found),
        str(room.window),
        f"{room.size:.1f}",
    )
    return f"<tr><td>{_text(room.room_id)}</td>{''.join(f'<td class=n>{cell}</td>' for cell in cells)}</tr>"


def bars(rows: list[tuple[str, Share]]) -> str:
    """Return a picture of shares as bars, each with its margin."""
    drawn = "".join(_bar(place, name, share) for place, (name, share) in enumerate(rows))
    high = len(rows) * (_HIGH + 8)
    told = "; ".join(f"{name}: {share}" for name, share in rows)
    return f'<svg viewBox="0 0 {_WIDE} {high}" role="img" aria-label="{_text(told)}" fill="currentColor">{drawn}</svg>'


def _bar(place: int, name: str, share: Share) -> str:
    top, middle = place * (_HIGH + 8), place * (_HIGH + 8) + 16
    room = _WIDE - _NAME - 120
    low, high = share.interval or (0.0, 0.0)
    wide = (share.value or 0.0) * room
    return (
        f'<text x="0" y="{middle}" font-size="14">{_text(name)}</text>'
        f'<rect x="{_NAME}" y="{top}" width="{wide:.1f}" height="{_HIGH}" fill="#2f6fde"/>'
        f'<line x1="{_NAME + low * room:.1f}" x2="{_NAME + high * room:.1f}" y1="{top + 11}" y2="{top + 11}" '
        f'stroke="currentColor" stroke-width="2"/>'
        f'<text x="{_NAME + room + 8}" y="{middle}" font-size="14">{share}</text>'
    )


def _text(text: str) -> str:
    return escape("".join(one if one.isprintable() else "\ufffd" for one in text))
