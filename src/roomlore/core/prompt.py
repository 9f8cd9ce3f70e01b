"""A prompt: a template with placeholders, identified by the hash of its text.

The values are untrusted text. `neutral` keeps them from imitating a part of the prompt.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roomlore.core.errors import InvalidInput
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import fold

KEPT_ELSEWHERE = ("memory_evolve", "user_facts", "people_facts")
"""The prompts that may be stored elsewhere, such as in a prompt server."""

# A place of a template: {{ name }}.
_PLACE = lazy_pattern(r"\{\{\s*(\w+)\s*\}\}")

LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
"""The line ends, for a character class of a regular expression."""
_UNSEEN = (
    "\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f"
    "\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\U000e0000-\\U000e0fff"
)
INVISIBLE = lazy_pattern(f"[{_UNSEEN}]")
"""Invisible characters other than white space."""
# What the name of a label or a tag may have besides letters and figures.
_NOISE = lazy_pattern(rf"[^\w‹›]|[_{_UNSEEN}]")
_LABELS = frozenset(
    {
        "system", "systemprompt", "systemmessage", "assistant", "user", "human", "ai", "developer", "tool", "summary",
        "系统", "系統", "系统提示", "系统提示词", "系统消息", "助手", "助理", "用户", "用戶", "人类", "人類", "开发者",
        "開發者", "工具", "历史摘要", "歷史摘要", "对话摘要", "對話摘要",
    }
)  # fmt: skip
_TAGS = frozenset(("memory", "memorycontext", "memories", "messages", "conversation", "previous"))
_LONGEST_TAG = max(map(len, _TAGS))
_TAG = lazy_pattern(
    r"(?P<header>#[ \t]{0,9}include[ \t]{0,9}<memory>)"
    rf"|(?P<signs>[<＜﹤](?:\W|_)*+)(?P<name>[\w{_UNSEEN}]*+)"
)
"""`header` is the C++ header, which is not a tag."""
# The beginning of a control token of a model, such as <|im_start|>.
_TOKEN = lazy_pattern(r"[<＜﹤][|｜]_")
_OPENERS = str.maketrans("<＜﹤", "‹‹‹")
_ENDS_A_LABEL = r":：﹕︓∶ː꞉\])}>］）】〕」』＞｝"
# What ends a label.
_LABEL_END = lazy_pattern(f"[{_ENDS_A_LABEL}]")
_LABEL = lazy_pattern(
    rf"(?:\A|(?<=[{LINE_ENDS}]))(?P<before>(?:[^\w‹{LINE_ENDS}]|_)*+)"
    r"(?=[a-z]|[^\x00-\x7f])(?!(?<=\[)user:\S)"
    rf"(?P<label>[^{LINE_ENDS}{_ENDS_A_LABEL}]*+)(?=[{_ENDS_A_LABEL}])",
    re.IGNORECASE,
)
"""A scope in brackets, such as `[user:anna]`, is not a role."""


def neutral(text: str) -> str:
    """Return the text changed so that no part of it can imitate the structure of a prompt.

    A line that begins with the label of a role, such as `System:` or `【系统】`, gets marks around it: `‹System›:`.
    A tag of roomlore, such as `<memory>` or `</memory>`, or a special token, such as `<|im_end|>`, starts with `‹`.
    Case, width and invisible characters make no difference. All else stays as it is, and so does a text that is
    neutral already. Takes time in proportion to the length.
    """
    if "<" in text or "＜" in text or "﹤" in text:
        text = _TAG.sub(_untagged, text)
    # Most texts have no character that ends a label. Looking for one takes a seventh of the time of the substitution.
    return _LABEL.sub(_unlabelled, text) if _LABEL_END.search(text) else text


def is_label(name: str) -> bool:
    """Return True if the name could be read as the label of a role."""
    return _bare(name) in _LABELS


def _untagged(match: re.Match[str]) -> str:
    """Neutralise tags, and special tokens such as `<|im_end|>` or `<｜User｜>`, which some servers read in any text."""
    signs, name = match["signs"], match["name"]
    visible = INVISIBLE.sub("", signs or "")
    token = (name and visible.endswith(("|", "｜"))) or _TOKEN.search(visible)
    if match["header"] or not (token or _begins_with_tag(name)):
        return match[0]
    return signs.translate(_OPENERS) + name


def _begins_with_tag(name: str) -> bool:
    """Return True if the name, or what stands before an invisible character in it, is that of a tag."""
    read = ""
    for part in INVISIBLE.split(name):
        read += _bare(part)
        if read in _TAGS:
            return True
        if len(read) > _LONGEST_TAG:
            return False
    return False


def _unlabelled(match: re.Match[str]) -> str:
    label = match["label"]
    if not is_label(label):
        return match[0]
    end = len(label)
    while not label[end - 1].isalnum():
        end -= 1
    return f"{match['before']}‹{label[:end]}›{label[end:]}"


def _bare(name: str) -> str:
    """Return the visible name, without the marks around and between its letters."""
    return _NOISE.sub("", fold(name))


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. `version`: assigned by a prompt server, '' for a built-in one."""

    name: str
    text: str
    version: str = ""

    @property
    def hash(self) -> str:
        """The SHA-256 of the text, 64 hex digits."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def places(self) -> frozenset[str]:
        """The names of the placeholders."""
        return frozenset(_PLACE.findall(self.text))

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with all placeholders filled at once: what looks like one inside a value stays as it is.

        Raises `InvalidInput` if a value is missing.
        """
        missing = sorted(self.places - values.keys())
        if missing:
            raise InvalidInput("prompt_place_unknown", name=repr(self.name), places=", ".join(missing))
        return _PLACE.sub(lambda place: values[place[1]], self.text)

    def with_places_of(self, shipped: "Prompt") -> "Prompt":
        """Return the prompt with every place of the shipped one that it lacks: the block or the line in which that one
        has it is added at the end."""
        lines = shipped.text.splitlines()
        added: list[str] = []
        for at, line in enumerate(lines):
            if frozenset(_PLACE.findall(line)) - self.places:
                added.append("\n".join(lines[at - 1 : at + 2]) if _is_block(lines, at) else line.strip())
        return replace(self, text="\n\n".join((self.text.rstrip(), *added))) if added else self


def _is_block(lines: Sequence[str], at: int) -> bool:
    """Return True if a line is all that a tag holds."""
    around = lines[max(at - 1, 0)], lines[min(at + 1, len(lines) - 1)]
    return around[0].startswith("<") and around[1] == f"</{around[0][1:]}"
