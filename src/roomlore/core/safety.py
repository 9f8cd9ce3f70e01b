"""Sentences that must not be lost: statements about safety, and how much a summary needs a sentence (doses, orders to
stop or avoid, decisions, corrections, dates)."""

import itertools
import re
from collections.abc import Sequence

from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import asks, greets, head, rarity, roots

CATEGORY = "safety"
PINNED = "pinned"
"""The tag or category of a fact that is always shown first."""

# Declared or recognised: an allergy, an intolerance, a grave condition, medication that is taken, a prohibition.
_GRAVE = lazy_pattern(
    r"\ballerg|\bintoleran|\banaphyla|\bepi-?pens?\b|\bc(?:o)?eliac|\bg6pd\b|\bepilep|\bseizure|\bpacemaker|\bhaemophil|\bhemophil"
    r"|\basthma|\bglaucoma|\bdiabet|\bpregnan|\bimmuno(?:suppress|compromis)"
    r"|(?<![不没沒無无])[过過]敏|不耐受|耐受不[良了]|休克|起搏器|癫痫|癲癇|哮喘|青光眼|蚕豆病|蠶豆病"
    r"|糖尿病|血友病|[怀懷]孕|孕妇|孕婦|乳糜泻|忌口"
)
_DRUG = (
    r"warfarin|lithium|insulin|metformin|aspirin|morphine|inhaler|statins?"
    r"|[a-z]{3,20}(?:olol|pril|sartan|statin|mycin|cillin|azole|pine|pam|oxetine|formin|xaban)"
)
_UNIT = r"(?:mg|mcg|[uμ]g|ml|iu|i\.u\.|units?)(?!\w)"
_TAKEN = lazy_pattern(
    r"\b(?:takes?|taking|prescribed|injects?|gets?|needs?)\b.{0,40}?"
    rf"\b(?:tablets?|pills?|puffs?|drops|(?:once|twice|times) (?:daily|a day)|{_DRUG})\b"
    rf"|\b(?:takes?|taking|took|prescribed|inject(?:s|ed|ing)?|gets?|given|needs?|uses?|is on)\b.{{0,40}}?\d ?{_UNIT}"
    r"|(?:正在|每[天日]|长期|長期|一直)(?:服用|[吃用打])|服用|[药藥].{0,6}(?:每[天日次]|一[天日次])",
)
_DOSE = lazy_pattern(
    r"\d ?(?:mc?g\b|[uμ]g\b|iu\b|[毫微]克|毫升|(?:国际|國際)?[单單]位)"
    rf"|\d[^\n]{{0,20}}?\b(?:{_DRUG})\b|\b(?:{_DRUG})\b[^\n]{{0,20}}?\d ?{_UNIT}"
    rf"|\d ?{_UNIT} (?:at (?:night|noon|bed)|(?:every|each|in the) (?:morning|evening|night)"
    r"|(?:before|after|with) (?:bed|meals?|food|breakfast|lunch|dinner|supper)|(?:twice|times) (?:daily|a day))"
    r"|(?:打|注射)[^\n]{0,6}?[\d一二两兩三四五六七八九十] ?[个個]?(?:国际|國際)?[单單]位"
)
_ACTION = (
    r"(?:use|eat|drink|take|touch|open|mix|give(?! up)|feed|leave|lift|run|move|merge|deploy|enter|drive|plug|turn|push"
    r"|delete|restart|call|bring|serve|store|share|send|sell|buy|order|put|wear|climb|swim|smoke|connect|remove|unplug"
    r"|change)\b"
)
_FORBIDDEN = lazy_pattern(
    rf"(?:^|[.;:,!(] {{0,3}}|\bplease )(?:never|do not|don['’]t) {_ACTION}"
    rf"|\b(?:must|should|can|may|to) (?:not|never) {_ACTION}|\bmust (?:not|never)\b|\bmustn['’]t\b"
    r"|\b(?<!i )never (?:give(?! up)|mix|feed|leave|lift|touch)\b"
    r"|\bnot allowed\b|\bforbidden\b|\bprohibited\b|\bstrictly no\b|\bno nsaids?\b"
    r"|\bcan(?:['’]t|not) (?:have|eat|drink|take) (?!a\b|the\b|it\b|this\b|any)"
    r"|[绝絕][对對]?不[能可要得许許准]|[严嚴]禁|禁[止用忌食]|忌[用食]|不[准許许得](?![不了已意])|千[万萬](?:不|别|別)"
    r"|不能[吃喝用碰给給打做停超再下闻聞]|不[让讓][用吃喝跑做打]|只能[吃喝用打]|[谁誰]都(?:别|別|不)|一定不[能要]|不要超过"
)


# What a text must contain for a pattern to match: looking for it is many times as fast as the pattern.
_GRAVE_HINTS = [
    "allerg",
    "intoleran",
    "anaphyla",
    "epi",
    "eliac",
    "g6pd",
    "seizure",
    "pacemaker",
    "mophil",
    "asthma",
    "glaucoma",
    "diabet",
    "pregnan",
    "immuno",
    "敏",
    "耐受",
    "休克",
    "起搏",
    "癫",
    "癲",
    "哮喘",
    "青光",
    "蚕豆",
    "蠶豆",
    "糖尿",
    "血友",
    "孕",
    "乳糜",
    "忌口",
]
_TAKEN_HINTS = [
    "take",
    "taking",
    "took",
    "prescri",
    "inject",
    "get",
    "given",
    "need",
    "use",
    "is on",
    "服用",
    "正在",
    "每",
    "长期",
    "長期",
    "一直",
    "药",
    "藥",
]
_FORBIDDEN_HINTS = [
    "never",
    "not",
    "n't",
    "n’t",
    "forbid",
    "prohibit",
    "strictly",
    "nsaid",
    "绝",
    "絕",
    "严",
    "嚴",
    "禁",
    "忌",
    "不",
    "千",
    "只能",
    "都",
]


def _matches(pattern: re.Pattern[str], hints: Sequence[str], folded: str) -> bool:
    return any(hint in folded for hint in hints) and bool(pattern.search(folded))


def is_declared(category: str) -> bool:
    """Return True if the category, as a caller gave it, says that a fact must not be missed."""
    return category.strip().casefold() == CATEGORY


def is_safety(text: str) -> bool:
    """Return True if a statement says what must not be missed: an allergy, medication, what must never be done."""
    folded = head(text)
    return (is_grave(folded) or is_medication(folded) or forbids(folded)) and not asks(folded)


def is_grave(folded: str) -> bool:
    """Return True if a folded text names an allergy, an intolerance or a condition that is dangerous to forget."""
    return _matches(_GRAVE, _GRAVE_HINTS, folded)


def is_medication(folded: str) -> bool:
    """Return True if a folded text says which medicine somebody takes, or a dose."""
    return _matches(_TAKEN, _TAKEN_HINTS, folded) or bool(_DOSE.search(folded))


def forbids(folded: str) -> bool:
    """Return True if a folded text says what must never be done."""
    return _matches(_FORBIDDEN, _FORBIDDEN_HINTS, folded)


SAFETY, DECISION, DATE = 2.5, 0.3, 0.05
"""Log-odds of being needed, beside those of any other sentence."""

_STOP = lazy_pattern(
    r"(?:^|[.;:,!(] {0,3}|\bplease |\bnow |\bshould )(?:stop (?!by\b|in\b|and\b|you\b|me\b)|hold off\b"
    r"|keep (?:off|out|away)\b|stay (?:off|out|away)\b|avoid (?!\w+ing\b))"
    r"|\bnobody (?:is to )?[a-z]{2,12}s?\b(?! (?:cares?|knows?))|\bnone (?:at all|anywhere)"
    r"|\bno [a-z]{2,20} (?:at all|anywhere|until|over|before)\b"
    r"|\b(?:took|take[ns]?) (?:me|him|her|them|it)? ?off\b|\bnot to be\b|\bdon['’]t (?:use|touch|eat|give(?! up))\b"
    r"|(?<![不没沒])停(?:掉|用|了|药|藥|服|蛋|奶|止)|全部停|立刻停|先停|[暂暫]停|[别別](?:碰|去|再|上|放|用|吃"
    r"|[给給]|[动動]|[让讓])|不要(?![紧緊钱錢脸臉担擔害怕让讓放错錯太忘])"
    r"|[谁誰]都[别別不]|不[准許许让讓]|不打"
)
_AMOUNT = lazy_pattern(
    r"\b(?:\d[\d.]{0,8}|one|two|three|half a) ?(?:mg|mcg|ml|units?|puffs?|tablets?|pills?|drops|capsules?)\b"
    r"|[\d一二两兩三四五六七八九十半][\d.]{0,6} ?(?:毫[升克]|片|粒|滴|单位|單位|[喷噴])"
    r"|一[天日][一二两兩三四\d]次|[饭飯][前后後]"
    r"|一定先?(?:[测測]|做|吃|打)|低[于於]\d|高[于於]\d|空腹"
)
_DECIDED = lazy_pattern(
    r"\b(?:decided|decision|agreed|final|settled|from (?:now|tomorrow|today|monday|next) ?(?:on|week)?|as of"
    r"|the rule is)\b"
    r"|定[了案下]|[决決]定|一律|今天起|[从從].{1,6}起|以后都|以後都|必[须須]|[为為][准準]|[规規]定|[统統]一"
    r"|最[终終后後]|[红紅死底][线線]"
)
_CHANGED = lazy_pattern(
    r"\b(?:correction|corrected|ignore what|instead|moved (?:it|to)|cancel[a-z]{0,6}|postponed|no longer"
    r"|changed? to|called off)\b"
    r"|更正|改[成到为為]|[换換]成|取消|推[迟遲到]|延[到后後期]|提前|挪到|作[废廢]"
)
_WHEN = lazy_pattern(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\btomorrow\b|\bnext (?:week|month|year)\b|\b\d{1,2}(?:st"
    r"|nd|rd|th)\b|\b\d{1,2}:\d\d\b"
    r"|\b\d{1,2} ?[ap]m\b|\bdeadline\b|\b\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"|\bhalf (?:past )?(?:seven|eight|nine|ten|six|five|four|three|two|one)\b"
    r"|(?<!上)(?:周|週|星期|[礼禮]拜)[一二三四五六日天]|[明][天晚早]|[后後]天"
    r"|[\d一二三四五六七八九十]{1,3}[号號日点點](?![场場楼樓线線机機])|截止"
)
_QUESTION = lazy_pattern(r"[?？]|[吗嗎][\s。！]*\Z")
_COVERED = 0.5
"""The share of a sentence's rare words that the summary must have to stand for it."""
_NUMBER = lazy_pattern(r"\d+(?:[.:]\d+)*")


def importance(text: str) -> float:
    """Return the log-odds by which a sentence must not be lost; 0 if nothing in it says so."""
    folded = head(text)
    if _QUESTION.search(folded):
        return 0.0
    if is_grave(folded) or is_medication(folded) or forbids(folded) or _STOP.search(folded) or _AMOUNT.search(folded):
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
