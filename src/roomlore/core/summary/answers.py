"""Make a language model's summary fit for use: no refusal, no repeated prompt, and nothing lost that must not be."""

import re
from collections.abc import Collection, Sequence

import regex

from roomlore.core.errors import BadModelOutput
from roomlore.core.summary.importance import SAFETY, Coverage, importance
from roomlore.core.summary.select import Count, by_worth, cut_at_sentence, fitting, rendered, sentence_parts
from roomlore.core.summary.sentences import SpeakerText, Unit, speaker_weight, units, worth
from roomlore.core.text import HAN, graphemes, head, sentences

_MIN = 5
_FENCE = re.compile(r"\s*```[^\n`]*\n")
_LABEL = re.compile(
    r"\A\s*(?:#{1,6}\s*)?(?:\*\*|__)?(?:(?:conversation |updated |new )?summary"
    r"|(?:历史|歷史|对话|對話|会话|會話)?摘要|总结|總結)(?:\*\*|__)?\s*(?:[:：](?:\*\*|__)?|\n)",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"[\s\W_]*(?:无有效记忆|無有效記憶|no[ _]memory)[\s\W_]*", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\A\W*(?:(?:i['’]m |i am )?(?:very |so |really |terribly )?(?:sorry|afraid)\b|(?:my )?apologies"
    r"|unfortunately|i apologi[sz]e)[^.!?\n]{0,60}"
    r"\b(?:can(?:no|['’])t|unable|not able|won['’]t|could(?: not|n['’]t))\b"
    r"|\A\W*i (?:can(?:no|['’])t|am (?:unable|not able)|won['’]t) (?:\w+ )?(?:help|assist|summari|provide"
    r"|process|comply|do that|continue|share|fulfil)"
    r"|\bas an? (?:ai|artificial|large|language)\b[^.!?\n]{0,60}\b(?:can(?:no|['’])t|unable|not able|do(?: not"
    r"|n['’]t))\b"
    r"|\A\W*(?:非常|很)?(?:抱歉|对不起|對不起|不好意思|遗憾|遺憾)[^。！？\n]{0,40}(?:无法|無法|不能|不便|没有"
    r"|沒有|没法|沒法)"
    r"|\A\W*我(?:无法|無法|不能|没法|沒法)(?:为您|為您|帮|幫|提供|处理|處理|总结|總結|协助|協助|回答|完成)"
    r"|[作做][为為](?:一个|一個)?(?:ai|人工智能|语言模型|語言模型|大模型)[^。！？\n]{0,30}(?:无法|無法|不能)"
    r"|(?:还有|還有)什[么麼](?:可以|能)[帮幫為为][您你]|how (?:else )?can i help|anything else i can (?:help"
    r"|do)|(?:请|請)(?:提供|输入|輸入|粘贴)[^。！？\n]{0,12}(?:对话|對話|内容|內容|文本)"
    r"|\bplease (?:provide|paste|share|send) (?:me )?(?:with )?the (?:conversation|text|messages|content)"
)
_READ = 20_000
_REFUSED_IN = 2
"""Sentences from the beginning in which a model refuses."""
_SHORT = 400
"""Characters of an answer in which its last sentence is read too."""
_WORD = regex.compile(rf"[{HAN}]|[\p{{L}}\p{{N}}]+")
_RUN = 8
"""Words in a row that only one who copies has in common with a prompt."""
_ECHOED = 0.3
"""The share of an answer's runs from which it repeats the prompt."""
_LINES = 0.5
"""The share of the tokens that lines added to a model's summary get, if it leaves no more."""


def says_nothing(text: str) -> bool:
    """Return True if an answer is only the mark, or the words, that nothing is worth keeping."""
    return _NOTHING.fullmatch(text) is not None


def accepted(answer: str, *, max_tokens: int, count: Count) -> str:
    """Return the summary in a model's answer: without fences and a leading label, and in at most `max_tokens` tokens; a
    longer one without its sentences of least weight.

    Raise `BadModelOutput` if it is shorter than 5 characters, cut or not, refuses, or says that nothing is worth
    keeping.
    """
    summary = _bare(answer)
    if says_nothing(summary):
        raise BadModelOutput("The model says that nothing is worth keeping; the conversation needs another summary.")
    if refuses(summary):
        raise BadModelOutput("The model refuses to summarise; ask another model.")
    summary = shortened(summary, max_tokens, count)
    if graphemes(summary) < _MIN:
        raise BadModelOutput(f"The model's summary is shorter than {_MIN} characters; ask again or another model.")
    return summary


def refuses(answer: str) -> bool:
    """Return True if an answer is no summary but an apology, a refusal, or an offer of help."""
    told = sentences(head(answer[:_READ]))
    read = told[:_REFUSED_IN] + (told[-1:] if len(answer) <= _SHORT else [])
    return any(_REFUSAL.search(sentence) for sentence in read)


def echoes(answer: str, instructions: str) -> bool:
    """Return True if an answer repeats the instructions that asked for it."""
    said, asked = _runs(answer), _runs(instructions)
    return bool(said) and len(said & asked) >= _ECHOED * len(said)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(head(text))
    return {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}


def shortened(summary: str, max_tokens: int, count: Count) -> str:
    """Return a summary in at most `max_tokens` tokens: the sentences of most weight as they stand; if not even one
    fits, the longest beginning."""
    if count([summary])[0] <= max_tokens:
        return summary
    parts = sentence_parts(summary)
    weights = [worth(part) + importance(part) for part in parts]
    order = sorted(range(len(parts)), key=lambda at: (-weights[at], at))
    text, fits, beyond = "", 0, len(order) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        tried = _joined(parts, set(order[:middle]))
        if count([tried])[0] <= max_tokens:
            text, fits = tried, middle
        else:
            beyond = middle
    return text if graphemes(text) >= _MIN else cut_at_sentence(summary, max_tokens, count)


def _joined(parts: Sequence[str], kept: Collection[int]) -> str:
    """Return the parts at these places as they stand, with the space before what is left out between two of them."""
    told, gap = list[str](), ""
    for at, part in enumerate(parts):
        if at in kept:
            told.append(part if part[:1].isspace() else gap + part)
            gap = ""
        else:
            gap = gap or part[: len(part) - len(part.lstrip())]
    return "".join(told).strip()


def completed(summary: str, previous: str, said: Sequence[SpeakerText], *, max_tokens: int, count: Count) -> str:
    """Return a model's summary with the sentences it lacks of those that must not be lost, in at most `max_tokens`
    tokens.

    `previous`, `said`: what it summarises. What is added stands below it, under its speakers' labels.
    """
    lacking = _lacking(summary, units(previous, said), max_tokens, count)
    room = max_tokens - count([f"{summary}\n"])[0]
    grave = [unit for unit in lacking if unit.importance >= SAFETY]
    added = fitting(grave, max_tokens, count)
    others = [unit for unit in lacking if unit.importance < SAFETY]
    spent = count([rendered(added)])[0] if added else 0
    added = fitting([*added, *others], max(spent, room, int(_LINES * max_tokens)), count) if others else added
    if not added:
        return summary
    lines = rendered(added)
    left = max_tokens - count([f"\n{lines}"])[0]
    while left >= _MIN:
        text = f"{shortened(summary, left, count)}\n{lines}"
        over = count([text])[0] - max_tokens
        if over <= 0:
            return text
        left -= over
    return lines


def _lacking(summary: str, found: Sequence[Unit], max_tokens: int, count: Count) -> list[Unit]:
    """Return the sentences that must not be lost and that the summary does not stand for, best first."""
    wholes = {unit.place: unit for unit in reversed(found)}.values()
    held = Coverage(sentences(summary), [unit.text for unit in wholes])
    needed = [
        unit
        for unit in wholes
        if unit.importance and (unit.importance >= SAFETY or speaker_weight(unit.label) == 0) and unit.text not in held
    ]
    lacking = []
    for unit in by_worth(needed, max_tokens, count):
        if unit.text not in held:
            lacking.append(unit)
            held.add(unit.text)
    return lacking


def without_label(summary: str) -> str:
    """Return a summary without the labels before it ('Summary:', '历史摘要：', '**Summary:**', one or several)."""
    bare = summary.strip()
    while found := _LABEL.match(bare):
        bare = bare[found.end() :].strip()
    return bare


def _bare(answer: str) -> str:
    """Return the answer without a label and a fence, in either order."""
    for _ in range(2):
        fence = _FENCE.match(answer)
        inside = answer[fence.end() :].rstrip().removesuffix("```").rstrip() if fence else answer
        answer = _LABEL.sub("", inside, count=1)
    return answer.strip()
