"""How likely a sentence is to be asked for later, by its outer signs: odds, of which only the ratios count.

The weights were read off logistic regressions over six labelled sets of conversations and rounded where these agreed;
docs/explanation/summaries.md has the regressions and what the rounding costs on a set left out.
"""

import re
from typing import NamedTuple

from roomlore.core.text import HAN, asks, greets, head, language


class Cue(NamedTuple):
    weight: float
    sign: re.Pattern[str]


def _cue(weight: float, english: str, other: str) -> Cue:
    return Cue(weight, re.compile(rf"\b(?:{english})\b|{other}"))


_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
# What was otherwise before, and what is settled.
CHANGED = re.compile(
    r"\b(?:instead|no longer|actually|change of plans?|cancel[a-z]*|postponed?|rescheduled|switched to|decided on"
    r"|changed to|(?:moved|brought|put) (?:[a-z]+ ){0,4}(?:to|back|forward) (?:the )?"
    rf"(?:\d|next|noon|{_DAYS}|{_MONTHS}))\b"
    r"|[改换換][到成为為在]|不[来來去](?:了|啦)|取消|推[迟遲]|最[后後终終][决決]定|[还還]是[选選]|定下[来來]|不再",
    re.IGNORECASE,
)
_PHONE = re.compile(
    r"(?<![a-z\d./-])(?!(?:19|20)\d\d[ -])\+?\(?\d{2,4}\)?(?:[ -]?\d{3,4}){1,4}(?<=\d{4})(?![a-z\d]|[.,/-]\d)"
)
_CUES = (
    # who speaks of themselves, and of what befell them
    _cue(0.5, r"i|i['’](?:m|ve|d|ll)|my|me|mine|we|we['’](?:re|ve|d|ll)|our|us", "[我咱]"),
    _cue(
        0.3,
        r"was|were|went|had|did|got|took|made|came|bought|found|met|saw|gave|won|lost|left|told|said|tried|been"
        r"|[a-z]{3,}ed",
        "[了过過]",
    ),
    # when
    _cue(
        0.6,
        r"today|yesterday|tonight|tomorrow|ago|since|recently|deadline|birthday|christmas|every (?:day|week|month|year)"
        rf"|(?:last|next|this|past) (?:week|month|year|night|weekend|summer|winter|fall|autumn|spring|few|{_DAYS})"
        rf"|{_DAYS}|{_MONTHS}",
        r"[今昨前明后後去]天|[今去明前]年|[上下这這]周|[上下这這]个?月|[上下]次|[昨今]晚|周[一二三四五六日末]"
        r"|星期|最近|生日|小[时時]候|\d[月日号號年]",
    ),
    # how many
    _cue(
        0.1,
        r"two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|once|twice",
        r"[0-9]|[一二三四五六七八九十百千万萬两兩几幾半][个個只隻条條本年岁歲块塊元次位部首]",
    ),
    # what they like, and mean to do
    _cue(
        0.2,
        r"love|loves|loved|enjoy[a-z]*|prefer[a-z]*|favou?rite|hate[a-z]*|fan of|passion[a-z]*|hobby|hobbies",
        "喜[欢歡]|最[爱愛]|[爱愛]好|[热熱][爱愛]|[讨討][厌厭]|感[兴興]趣",
    ),
    _cue(
        0.2,
        r"plan[a-z]*|going to|gonna|decid[a-z]+|want[a-z]*|wanna|promise[a-z]*|goal|start(?:ed|ing)?|signed up"
        "|working on",
        "打算|[决決]定|[计計][划劃]|准备|準備|答[应應]|[约約]好|目[标標]|[开開]始",
    ),
    # their people, and the course of their lives
    _cue(
        0.15,
        r"mom|mum|mother|dad|father|parents?|wife|husband|son|daughter|sister|brother|kids?|child(?:ren)?|grand[a-z]+"
        r"|uncle|aunt|cousin|boyfriend|girlfriend|partner|dog|cat|pets?|boss|colleague|roommate|neighbou?r",
        "[妈媽]{2}|爸爸|[母父][亲親]|父母|妻子|丈夫|老[公婆]|[儿兒]子|女[儿兒]|[姐妹哥弟爷爺奶]{2}|孩子|同事|[男女]友"
        "|[宠寵]物",
    ),
    _cue(
        0.3,
        r"work(?:s|ed)? (?:at|as|for)|my (?:job|name)|college|university|degree|born|live[sd]? in|moved|from|hospital"
        r"|pregnan[a-z]+|married|divorced|engaged|hometown|salary|budget",
        "医院|醫院|[结結離离]婚|[毕畢]业|職業|职业|公司|住在|老家|搬家|[来來]自|我叫|名字",
    ),
    # what does harm when it is forgotten
    _cue(
        0.8,
        r"allerg[a-z]+|intoleran[a-z]+|diagnos[a-z]+|medication|medicine|surgery|diabet[a-z]+|asthma|vegan|vegetarian"
        r"|never (?:call|contact|mention|use|send)",
        "[过過]敏|忌口|吃素|[诊診][断斷]|手[术術]|[药藥]|糖尿病|高血[压壓]|哮喘",
    ),
    # what puts right what was said before
    Cue(0.3, CHANGED),
    # what is to be kept, by the speaker's own word
    _cue(
        0.6,
        r"(?<!\bi )(?<!\byou )remember|remind me|note (?:that|down)|don['’]t forget",
        "[记記](?:一下|住|得)|提醒|[别別]忘",
    ),
    Cue(0.8, _PHONE),
    # what people say to be kind, or to close a long answer
    _cue(
        -0.5,
        r"great|awesome|cool|amazing|nice|wonderful|fantastic|lovely|good luck|congrat[a-z]*|proud of you|sounds|glad"
        r"|so true|agree|thanks?|thank you|sorry|keep (?:it )?up|can['’]t wait|take care",
        "不[错錯]|真棒|太棒|太好了|加油|祝你|[谢謝]{2}|[没沒]问题|希望你|很高[兴興]|好的|[当當]然|[听聽]起[来來]|同意",
    ),
    _cue(
        -0.3,
        r"let me know|feel free|here(?:['’]s| is| are)|hope this|certainly|absolutely|would you like|you can"
        r"|if you (?:have|need|want)|make sure|consider|ensure",
        "如果你|你可以|建[议議]你|[随隨][时時]|以下",
    ),
    _cue(-0.15, r"you|your|yours|you['’](?:re|ve|d|ll)", "[你您]"),
    Cue(-0.8, re.compile(r"[{}<>=]|\(\)|^[#|`]")),
)
_NAME = re.compile(
    rf"(?<=[a-z,;:'\"] )(?!I\b)[A-Z][A-Za-z]+|《[^《》]+》|(?<=[{HAN}])[A-Za-z]{{2,}}|[“「][^”」]{{2,30}}[”」]"
)
_NAMES, _MOST_NAMES = 0.25, 2
# It says little without what stands before it.
_VAGUE = re.compile(
    r"\A(?:it|they|these|those|that|this)\b"
    r"|\b(?:it|them|these|those)(?=[\s.,!?]*\Z|,|\s+(?:for|to|at|on|in|with|from|by|too|again|yesterday|today)\b)"
    r"|\A[这這那](?:[个個些]|是|$)|\A[它]|把(?:[它这這那])|[这這那][个個些](?=[\s。，,.!?！？]|\Z)"
)
_SIZE = re.compile(rf"[{HAN}]|[a-z]+(?:['’][a-z]+)?|\d+(?:[.,:]\d+)*")
_SHORT, _FEW_HAN, _FEW = -0.7, 8, 5
_POINTING, _POINTING_UPTO = -0.3, 1.6
_QUESTION, _GREETING, AGENT, CROWD = -0.5, -0.8, -0.8, -0.5


def worth(text: str) -> float:
    """The logarithm of the odds of a sentence or a part of one, whoever said it."""
    folded = head(text)
    total = sum(cue.weight for cue in _CUES if cue.sign.search(folded))
    total += _NAMES * min(_MOST_NAMES, len(_NAME.findall(text)))
    total += _fragment(folded)
    if asks(folded):
        total += _QUESTION
    return total + _GREETING if greets(folded) else total


def _fragment(folded: str) -> float:
    """What a short text, and one that points to what stands elsewhere, is worth less."""
    size = len(_SIZE.findall(folded)) / (_FEW_HAN if language(folded) == "zh" else _FEW)
    if size >= _POINTING_UPTO:
        return 0.0
    return (_SHORT if size < 1 else 0.0) + (_POINTING if _VAGUE.search(folded) else 0.0)
