"""Questions that are a piece of dialogue: lines that each begin with who says them."""

import re
from typing import NamedTuple

from roomlore.core.text import HAN

_LINE = re.compile(
    r"[\s<\[【（(*]*(?P<speaker>[^\s<>:：\"“”\[\]【】()（）*][^<>:：\"“”\[\]【】()（）*\n]{0,31}?)[\s>\]】）)*]*[:：]\s*"
    r"[\"“”「『]?(?P<said>.*?)[\"“”」』]?\s*"
)
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
    found = [match for match in map(_LINE.fullmatch, lines) if match]
    speakers = {match["speaker"] for match in found}
    if len(lines) < 2 or 5 * len(found) < 4 * len(lines) or len(speakers) > max(2, len(lines) // 2):
        return ()
    return tuple(Utterance(match["speaker"], match["said"]) for match in found)


def sounds_like_agent(name: str) -> bool:
    """Whether a name is one that bots go by: "assistant", "helpbot", "AI伴侣", 客服机器人."""
    return bool(_AGENT.search(name))
