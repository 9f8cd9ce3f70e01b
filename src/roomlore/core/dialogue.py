"""Questions that are a piece of dialogue: lines that each begin with who says them."""

import re
from typing import NamedTuple

from roomlore.core.text import HAN

# Possessive, since what surrounds a name holds none of its characters but blanks: no line is read twice over.
_SPEAKER = re.compile(
    r"[\s<\[【（(*]*+(?P<name>[^\s<>:：\"“”\[\]【】()（）*][^<>:：\"“”\[\]【】()（）*\n]{0,31}?)[\s>\]】）)*]*+[:：]"
)
_OPENING, _CLOSING = tuple('"“”「『'), tuple('"“”」』')
_AGENT = re.compile(
    rf"assistant|gpt(?![a-z])|助手|助理|机器人|機器人|(?<![a-z])(?:[a-z]+[-_ ]|help|chat|support)?bots?(?![a-z])"
    rf"|(?<![a-z])(?:ai|agent)(?=$|[{HAN}])",
    re.IGNORECASE,
)


class Utterance(NamedTuple):
    speaker: str
    said: str


def utterances(text: str) -> tuple[Utterance, ...]:
    """Who says what, line by line; empty unless nearly all lines say whose they are and speakers come again."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = [line for line in map(_utterance, lines) if line]
    speakers = {line.speaker for line in found}
    if len(lines) < 2 or 5 * len(found) < 4 * len(lines) or len(speakers) > max(2, len(lines) // 2):
        return ()
    return tuple(found)


def _utterance(line: str) -> Utterance | None:
    speaker = _SPEAKER.match(line)
    if speaker is None:
        return None
    said = line[speaker.end() :].strip()
    said = said[1:] if said.startswith(_OPENING) else said
    return Utterance(speaker["name"], said[:-1] if said.endswith(_CLOSING) else said)


def sounds_like_agent(name: str) -> bool:
    """Whether a name is one that bots go by: "assistant", "helpbot", "AI伴侣", 客服机器人."""
    return bool(_AGENT.search(name))
