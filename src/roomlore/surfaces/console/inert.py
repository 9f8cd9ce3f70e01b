"""Chat text that cannot steer a page: characters that hide, reorder or pile up are written out."""

import unicodedata

import regex

LONGEST = 2_000
_ODD = regex.compile(
    r"(?P<one>(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\u2028\u2029\u115f\u1160\u3164\uffa0\u2800])(?P=one)*"
)
_PILED = regex.compile(r"(\p{M}{4})\p{M}+")
_JOINERS = frozenset("\u200c\u200d")
_LATIN_ENDS = 0x2FF


def visible(text: str) -> str:
    """The text with control, direction, zero-width and unassigned characters as ⟨U+202E⟩, repeated ones as ⟨U+202E×9⟩,
    and at most four marks on a character. Joiners inside emoji and other scripts stay."""
    if text.isascii() and text.isprintable():
        return text
    return str(_PILED.sub(r"\1", _ODD.sub(_written, text)))


def clipped(text: str, longest: int = LONGEST) -> str:
    """As `visible`, of the first `longest` characters; `…` where it goes on."""
    return visible(text) if len(text) <= longest else f"{visible(text[:longest])}…"


def _written(found: "regex.Match[str]") -> str:
    one, count = str(found["one"]), len(found[0])
    if one in _JOINERS and count == 1 and _joins(found.string, found.start()):
        return one
    times = f"×{count}" if count > 1 else ""
    return f"⟨U+{ord(one):04X}{times}⟩"


def _joins(text: str, at: int) -> bool:
    """Whether a joiner has something on both sides that can be joined."""
    if not 0 < at < len(text) - 1:
        return False
    before, after = text[at - 1], text[at + 1]
    return all(ord(one) > _LATIN_ENDS and unicodedata.category(one)[0] not in "CZ" for one in (before, after))
