"""Facts that must not be missed: allergies, medication, what must never be done. Recognised in both languages."""

import re
from collections.abc import Sequence

from roomlore.core.text import asks, head

CATEGORY = "safety"
PINNED = "pinned"
"""The tag or category of a fact that is always shown first."""

# Declared or recognised: an allergy, an intolerance, a grave condition, medication that is taken, a prohibition.
_GRAVE = re.compile(
    r"\ballerg|\bintoleran|\banaphyla|\bepi-?pens?\b|\bc(?:o)?eliac|\bg6pd\b|\bepilep|\bseizure|\bpacemaker|\bhaemophil|\bhemophil"
    r"|\basthma|\bglaucoma|\bdiabet|\bpregnan|\bimmuno(?:suppress|compromis)"
    r"|(?<![不没沒無无])[过過]敏|不耐受|耐受不[良了]|休克|起搏器|癫痫|癲癇|哮喘|青光眼|蚕豆病|蠶豆病"
    r"|糖尿病|血友病|[怀懷]孕|孕妇|孕婦|乳糜泻|忌口"
)
_DRUG = (
    r"warfarin|lithium|insulin|metformin|aspirin|morphine|inhaler|statins?"
    r"|[a-z]{3,20}(?:olol|pril|sartan|statin|mycin|cillin|azole|pine|pam|oxetine|formin|xaban)"
)
_TAKEN = re.compile(
    r"\b(?:takes?|taking|prescribed|injects?|gets?|needs?)\b.{0,40}?"
    rf"\b(?:\d{1, 6} ?(?:mg|mcg|ml|units?)|tablets?|pills?|puffs?|drops|(?:once|twice|times) (?:daily|a day)|{_DRUG})\b"
    r"|(?:正在|每[天日]|长期|長期|一直)(?:服用|[吃用打])|服用|[药藥].{0,6}(?:每[天日次]|一[天日次])",
)
_DOSE = re.compile(rf"\d ?(?:mg\b|mcg\b|毫克|毫升|单位|單位)|\d[^\n]{{0,20}}?\b(?:{_DRUG})\b")
_ACTION = (
    r"(?:use|eat|drink|take|touch|open|mix|give(?! up)|feed|leave|lift|run|move|merge|deploy|enter|drive|plug|turn|push"
    r"|delete|restart|call|bring|serve|store|share|send|sell|buy|order|put|wear|climb|swim|smoke|connect|remove|unplug"
    r"|change)\b"
)
_FORBIDDEN = re.compile(
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
    "prescri",
    "inject",
    "get",
    "need",
    "mg",
    "mcg",
    "服用",
    "正在",
    "每",
    "长期",
    "長期",
    "一直",
    "药",
    "藥",
    "毫",
    "单位",
    "單位",
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
