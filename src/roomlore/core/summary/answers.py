"""A language model's summary, made fit for use."""

import re
from collections.abc import Callable, Sequence

from roomlore.core.errors import BadModelOutput
from roomlore.core.summary.cutting import cut_at_sentence
from roomlore.core.text import graphemes

_LEAST = 5
_FENCE = re.compile(r"\s*```[^\n`]*\n")
_LABEL = re.compile(
    r"\A\s*(?:#{1,6}\s*)?(?:\*\*|__)?(?:(?:conversation |updated |new )?summary"
    r"|(?:历史|歷史|对话|對話|会话|會話)?摘要|总结|總結)(?:\*\*|__)?\s*(?:[:：](?:\*\*|__)?|\n)",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"[\s\W_]*(?:无有效记忆|無有效記憶|no[ _]memory)[\s\W_]*", re.IGNORECASE)


def accepted(answer: str, *, max_tokens: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """The summary in a model's answer: without fences and a leading label, cut at the end of a sentence (else between
    two characters) to `max_tokens` tokens.

    Raises `BadModelOutput` where it is shorter than 5 characters, cut or not, or says that nothing is worth keeping.
    """
    summary = _bare(answer)
    if _NOTHING.fullmatch(summary):
        raise BadModelOutput("The model says that nothing is worth keeping; the conversation needs another summary.")
    summary = cut_at_sentence(summary, max_tokens, count)
    if graphemes(summary) < _LEAST:
        raise BadModelOutput(f"The model's summary is shorter than {_LEAST} characters; ask again or another model.")
    return summary


def without_label(summary: str) -> str:
    """A summary without the labels before it ('Summary:', '历史摘要：', '**Summary:**', one or several)."""
    bare = summary.strip()
    while found := _LABEL.match(bare):
        bare = bare[found.end() :].strip()
    return bare


def _bare(answer: str) -> str:
    """Without a label and a fence, whichever stands outside."""
    for _ in range(2):
        fence = _FENCE.match(answer)
        inside = answer[fence.end() :].rstrip().removesuffix("```").rstrip() if fence else answer
        answer = _LABEL.sub("", inside, count=1)
    return answer.strip()
