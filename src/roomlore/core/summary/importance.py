"""Weigh the sentences that a summary must keep: safety, doses, orders to stop or avoid, decisions, corrections,
dates."""

import itertools
import re
from collections.abc import Sequence

from roomlore.core.safety import forbids, is_grave, is_medication
from roomlore.core.text import asks, greets, head, rarity, roots

SAFETY, DECISION, DATE = 2.5, 0.3, 0.05
"""Log-odds of being needed, beside those of any other sentence."""

_STOP = re.compile(
    r"(?:^|[.;:,!(] {0,3}|\bplease |\bnow |\bshould )(?:stop (?!by\b|in\b|and\b|you\b|me\b)|hold off\b"
    r"|keep (?:off|out|away)\b|stay (?:off|out|away)\b|avoid (?!\w+ing\b))"
    r"|\bnobody (?:is to )?[a-z]{2,12}s?\b(?! (?:cares?|knows?))|\bnone (?:at all|anywhere)"
    r"|\bno [a-z]{2,20} (?:at all|anywhere|until|over|before)\b"
    r"|\b(?:took|take[ns]?) (?:me|him|her|them|it)? ?off\b|\bnot to be\b|\bdon['’]t (?:use|touch|eat|give(?! up))\b"
    r"|(?<![不没沒])停(?:掉|用|了|药|藥|服|蛋|奶|止)|全部停|立刻停|先停|[暂暫]停|[别別](?:碰|去|再|上|放|用|吃"
    r"|[给給]|[动動]|[让讓])|不要(?![紧緊钱錢脸臉担擔害怕让讓放错錯太忘])"
    r"|[谁誰]都[别別不]|不[准許许让讓]|不打"
)
_DOSE = re.compile(
    r"\b(?:\d[\d.]{0,8}|one|two|three|half a) ?(?:mg|mcg|ml|units?|puffs?|tablets?|pills?|drops|capsules?)\b"
    r"|[\d一二两兩三四五六七八九十半][\d.]{0,6} ?(?:毫[升克]|片|粒|滴|单位|單位|[喷噴])"
    r"|一[天日][一二两兩三四\d]次|[饭飯][前后後]"
    r"|一定先?(?:[测測]|做|吃|打)|低[于於]\d|高[于於]\d|空腹"
)
_DECIDED = re.compile(
    r"\b(?:decided|decision|agreed|final|settled|from (?:now|tomorrow|today|monday|next) ?(?:on|week)?|as of"
    r"|the rule is)\b"
    r"|定[了案下]|[决決]定|一律|今天起|[从從].{1,6}起|以后都|以後都|必[须須]|[为為][准準]|[规規]定|[统統]一"
    r"|最[终終后後]|[红紅死底][线線]"
)
_CHANGED = re.compile(
    r"\b(?:correction|corrected|ignore what|instead|moved (?:it|to)|cancel[a-z]{0,6}|postponed|no longer"
    r"|changed? to|called off)\b"
    r"|更正|改[成到为為]|[换換]成|取消|推[迟遲到]|延[到后後期]|提前|挪到|作[废廢]"
)
_WHEN = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\btomorrow\b|\bnext (?:week|month|year)\b|\b\d{1,2}(?:st"
    r"|nd|rd|th)\b|\b\d{1,2}:\d\d\b"
    r"|\b\d{1,2} ?[ap]m\b|\bdeadline\b|\b\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"|\bhalf (?:past )?(?:seven|eight|nine|ten|six|five|four|three|two|one)\b"
    r"|(?<!上)(?:周|週|星期|[礼禮]拜)[一二三四五六日天]|[明][天晚早]|[后後]天"
    r"|[\d一二三四五六七八九十]{1,3}[号號日点點](?![场場楼樓线線机機])|截止"
)
_QUESTION = re.compile(r"[?？]|[吗嗎][\s。！]*\Z")
_COVERED = 0.5
"""The share of a sentence's rare words that the summary must have to stand for it."""
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*")


def importance(text: str) -> float:
    """Return the log-odds by which a sentence must not be lost; 0 if nothing in it says so."""
    folded = head(text)
    if _QUESTION.search(folded):
        return 0.0
    if is_grave(folded) or is_medication(folded) or forbids(folded) or _STOP.search(folded) or _DOSE.search(folded):
        return SAFETY
    if asks(folded) or greets(folded):
        return 0.0
    if _DECIDED.search(folded) or _CHANGED.search(folded):
        return DECISION
    return DATE if _WHEN.search(folded) else 0.0


class Coverage:
    """The sentences that a summary stands for. `among`: the sentences by which the rarity of a word is known."""

    def __init__(self, summary: Sequence[str], among: Sequence[str]) -> None:
        held = [_told(sentence) for sentence in summary]
        pairs = [first | second for first, second in itertools.pairwise(held)]
        self._held = [*held, *pairs]
        self._having: dict[str, int] = {}
        for sentence in among:
            for word in _told(sentence):
                self._having[word] = self._having.get(word, 0) + 1
        self._sentences = max(1, len(among))

    def add(self, sentence: str) -> None:
        """Count a sentence as one of the summary."""
        self._held.append(_told(sentence))

    def __contains__(self, sentence: object) -> bool:
        """Return True if a sentence of the summary, or two neighbours, has the numbers and most rare words."""
        told = _told(str(sentence))
        needed = {word for word in told if _NUMBER.fullmatch(word)}
        whole = self._weight(told)
        return any(needed <= one and self._weight(told & one) >= _COVERED * whole for one in self._held)

    def _weight(self, told: frozenset[str]) -> float:
        return sum(rarity(self._having.get(word, 0), self._sentences) for word in told)


def _told(sentence: str) -> frozenset[str]:
    return frozenset((*roots(sentence), *_NUMBER.findall(head(sentence))))
