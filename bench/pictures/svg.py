"""A sheet to draw on: an SVG with its own background, for light and dark surroundings, that says in words what it
shows."""

import unicodedata
from collections.abc import Mapping
from html import escape

from roomlore.core.text import graphemes, truncate

Colours = Mapping[str, str]

LIGHT: Colours = {
    "back": "#fbfaf7", "band": "#eeece5", "ink": "#1d2226", "soft": "#566068", "line": "#c4c2ba",
    "strong": "#1f5f5b", "grave": "#9c2a1c",
    "c0": "#1769aa", "c1": "#b3470a", "c2": "#2b7a36", "c3": "#9a2a86", "c4": "#7a6200", "c5": "#0a6f6f",
}  # fmt: skip
DARK: Colours = {
    "back": "#14181b", "band": "#252c31", "ink": "#e9ebea", "soft": "#a9b3b8", "line": "#4a545b",
    "strong": "#7fd0c6", "grave": "#ff9c8c",
    "c0": "#66b5f5", "c1": "#ff9a5c", "c2": "#77cf83", "c3": "#ec8bd8", "c4": "#dcc04a", "c5": "#5fd0d0",
}  # fmt: skip
WRITTEN = ("ink", "soft", "strong", "grave", "c0", "c1", "c2", "c3", "c4", "c5")
"""The colours that texts are written in, on `back` and `band`."""

WIDTH = 720
SMALL, PLAIN, LARGE = 13, 14, 17
"""Sizes of text: at 700 pixels in width the smallest is still above 12."""

_FONTS = "system-ui, 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"


class Sheet:
    """A drawing; shapes drawn first lie below. Measures are in units of which the sheet is `WIDTH` wide; colours are
    names."""

    def __init__(self, height: float, *, title: str, alternative: str) -> None:
        self._height = height
        self._title = title
        self._told = alternative
        self._parts: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, edge: str = "", round_by: float = 0
    ) -> None:
        edged = f' stroke="var(--{edge})" stroke-width="1.5"' if edge else ""
        rounded = f' rx="{_n(round_by)}"' if round_by else ""
        self._add(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"{rounded} '
            f'fill="{_fill(fill)}"{edged}/>'
        )

    def circle(self, x: float, y: float, radius: float, fill: str, *, edge: str = "back") -> None:
        self._add(
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{_fill(fill)}" stroke="var(--{edge})" '
            'stroke-width="2"/>'
        )

    def path(self, drawn: str, colour: str, *, width: float = 2, opacity: float = 1, dashed: bool = False) -> None:
        """`drawn`: as the attribute `d` of a path."""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        faint = f' opacity="{_n(opacity)}"' if opacity < 1 else ""
        self._add(
            f'<path d="{drawn}" fill="none" stroke="var(--{colour})" stroke-width="{_n(width)}"{dashes}{faint} '
            'stroke-linecap="round"/>'
        )

    def line(
        self, x: float, y: float, to_x: float, to_y: float, colour: str, *, width: float = 2, dashed: bool = False
    ) -> None:
        self.path(f"M{_n(x)} {_n(y)}L{_n(to_x)} {_n(to_y)}", colour, width=width, dashed=dashed)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = PLAIN,
        colour: str = "ink",
        bold: bool = False,
        struck: bool = False,
        anchor: str = "start",
        room: float | None = None,
    ) -> None:
        """`y`: of the base line. `room`: what is wider is cut."""
        shown = words if room is None else cut(words, size, room)
        more = ' font-weight="650"' if bold else ""
        more += ' text-decoration="line-through"' if struck else ""
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._add(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{size}" fill="var(--{colour})"{more}>{escape(shown)}</text>'
        )

    def said(self, x: float, y: float, who: str, words: str, *, colour: str = "ink", room: float) -> None:
        """Draw what somebody says, on one line, after the name."""
        shown = cut(words, PLAIN, room - wide(who, PLAIN) * 1.12 - 10)
        self._add(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{PLAIN}" fill="var(--ink)"><tspan font-weight="650">'
            f'{escape(who)}</tspan><tspan dx="8" fill="var(--{colour})">{escape(shown)}</tspan></text>'
        )

    def drawn(self) -> str:
        """The whole as a document."""
        size = f'viewBox="0 0 {WIDTH} {_n(self._height)}" width="{WIDTH}" height="{_n(self._height)}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title told" '
                f'font-family="{_FONTS}">',
                f'<title id="title">{escape(self._title)}</title>',
                f'<desc id="told">{escape(self._told)}</desc>',
                f"<style>{_style()}</style>",
                f'<rect width="{WIDTH}" height="{_n(self._height)}" rx="10" fill="var(--back)"/>',
                *self._parts,
                "</svg>\n",
            ]
        )

    def _add(self, part: str) -> None:
        self._parts.append(part)


def cut(words: str, size: float, room: float) -> str:
    """The words on one line, shortened with an ellipsis to about `room`."""
    flat = " ".join(words.split())
    if wide(flat, size) <= room:
        return flat
    count = graphemes(flat)
    while count and wide(truncate(flat, count) + "…", size) > room:
        count -= 1
    return truncate(flat, count).rstrip() + "…"


def wide(words: str, size: float) -> float:
    """About how wide the words are, on the safe side: fonts differ."""
    return size * sum(_em(word) for word in words)


def _em(character: str) -> float:
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0.0
    if unicodedata.east_asian_width(character) in "WF" or ord(character) > 0x1F000:
        return 1.0 if ord(character) < 0x1F000 else 1.35
    if character in "iljtfrI.,:;'|!()[] ":
        return 0.37
    return 0.9 if character in "mwMW@%" else 0.7 if character.isupper() else 0.61


def _style() -> str:
    return f"svg{{{_variables(LIGHT)}}}@media(prefers-color-scheme:dark){{svg{{{_variables(DARK)}}}}}"


def _variables(colours: Colours) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def _fill(name: str) -> str:
    return "none" if name == "none" else f"var(--{name})"


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
