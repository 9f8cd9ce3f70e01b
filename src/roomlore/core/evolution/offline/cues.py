"""Read from its cues, in both languages, if a sentence decides, rules, appoints, plans, cancels or prefers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from roomlore.core.evolution.offline.reading import keys_of
from roomlore.core.patterns import lazy_pattern
from roomlore.core.safety import is_safety
from roomlore.core.text import HAN, asks, fold, greets, thanks

Purpose = Literal["change", "cancellation", "decision", "rule", "habit", "role", "person", "plan"]


class _Cue(NamedTuple):
    purpose: Purpose
    weight: float
    english: re.Pattern[str]
    chinese: re.Pattern[str]


def _cue(purpose: Purpose, weight: float, english: str, chinese: str) -> _Cue:
    return _Cue(purpose, weight, lazy_pattern(rf"\b(?:{english})\b"), lazy_pattern(chinese))


_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_ZH_DAY = r"(?:周|週|星期|礼拜|禮拜)[一二三四五六日天末]"
_ZH_NUMBER = "[0-9一二两兩三四五六七八九十]"
CLOCK = lazy_pattern(
    r"(?<![\d.:])\d{1,2}(?::\d\d|\.\d\d(?= ?[ap]m))? ?(?:[ap]m\b|o['’]clock)|(?<![\d.:])\d{1,2}:\d\d(?![\d:])"
    r"|\b(?:at|by|till?|until|from|after|before) \d{1,2}\b(?![:.\d%])"
    rf"|\b(?:noon|midnight)\b|{_ZH_NUMBER}{{1,3}}(?:点|點)(?!钱|个|一|点)"
)
DAY = lazy_pattern(
    rf"\b(?:{_WEEKDAY}s?|(?:mon|tue|wed|thu|fri|sat|sun)|tomorrow|tonight|weekends?|next (?:week|month|year|term)"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?|the \d{{1,2}}(?:st|nd|rd|th)"
    r"|(?:in|from|of|by|until|since) "
    rf"{_MONTH})\b|{_ZH_DAY}|明[天晚早]|后天|後天|大后天|今晚|下[个個]?[周週月]|月底|月初|{_ZH_NUMBER}{{1,3}}[月号號]"
)
_CUES = (
    _cue(
        "change",
        1.0,
        r"from now on|going forward|as of|starting (?:from |on |in |next |this )?\w+|new rule|no longer"
        r"|not any ?more|any ?more(?= *(?:[.,;!]|$))|instead"
        r"|(?:is|are|has|have|was|were|been|gets?) (?:now )?(?:moved|changed|switched|replaced|pushed|shifted"
        r"|rescheduled|postponed)"
        r"|(?:moves?|moved|moving|slides?|slips?|slipped|changes?|changed|switch(?:es|ed|ing)?|pushed|push|shift(?:ed)?"
        r"|rescheduled) (?:[\w']+ ){0,4}?(?:to|from|till|until)"
        r"|postponed|rescheduled|brought forward|put back|(?:goes?|went|going) (?:up|down) to"
        rf"|it['’]s (?:now )?(?:on )?(?:{_WEEKDAY}|at)(?: now)?|{_WEEKDAY} now|now (?:at|on|in|we|meets?|shuts?"
        r"|opens?|costs?)"
        r"|we (?:now|do it|will now)|(?:shuts?|closes?|opens?|starts?|begins?|ends?) (?:at|with|on|from|in)"
        r"|from (?:today|now|tomorrow|next|this)|actually|my mistake|i meant|you['’]re right|not \d{1,2}"
        rf"|goes? to (?:the )?(?:{_WEEKDAY}|\d)|(?:an|us an) extension|extended (?:to|until|till|by)|(?:going"
        rf"|went) (?:up|down)"
        r"|(?:dropped|cut|raised|lowered|put up) (?:the|their|its|our) (?:price|fee|rate|rent)s?"
        r"|so it['’]s (?:now )?[£$€]?\d"
        r"|(?:fine|okay|ok|open|working|allowed) again|back to normal|becomes|from here on|correction"
        r"|new (?:\w+ )?(?:address|number|password|code|time|date|place|venue|room|price|link|key)",
        r"以[后後](?!再|就知|有机会|可能)|今[后後]|往[后後](?!推)|从.{1,8}?(?:起|开始)|從.{1,8}?(?:起|開始)|新规"
        r"|新規|即日起|不再|(?:[这這下][个個]?[月周週]|[今明後后]天|月)(?:起|[开開]始)|不用.{1,10}?了|应该是"
        r"|應該是"
        rf"|[改换換調调挪移延][成为為到至在由用期](?!变)|[顺順]延|[推拖]到|改[走坐停从從吃](?!开)"
        rf"|恢[复復]|可以正常|(?:[用开開放延]|[营營][业業])到(?=\d|{_ZH_NUMBER}|{_ZH_DAY}|月|年)|改(?={_ZH_DAY}|[下上晚早明后後中]|\d"
        r"|[一二三四五六七八九十]|线上|線上)"
        r"|[换換][了成](?!衣)|[推提延][迟遲前后後期](?:到|至|[一二两三四五六七八九十\d])|搬[到去]|[涨漲降升]到"
        r"|作[为為]准|更正|说错|說錯|重[发發]",
    ),
    _cue(
        "cancellation",
        1.2,
        r"cancel(?:l?ed|ling|s)?|called off|scrapped|not happening|(?:is|are|'s|’s) off(?= *(?:[.,;!]|$|then|for"
        r"|this|next|on|so|we|until))"
        rf"|no \w+(?: \w+)? (?:on |this |next |in )(?:the )?(?:{_WEEKDAY}|week|month|{_MONTH}|\d{{1,2}}(?:st|nd|rd"
        rf"|th)?)"
        r"|(?:won['’]t|will not|not|isn['’]t) (?:go(?:ing)? ahead)|won['’]t (?:happen|take place|be (?:any|a))",
        r"取消|不[去搞办辦开開组組停做弄收来來].{0,6}?了|另(?:行)?通知|泡[汤湯]|作[废廢]|停[办辦办課课]|黄了|[计計][划劃]有[变變]",
    ),
    _cue(
        "decision",
        0.9,
        r"let['’]s(?! (?:see|hope|say|not forget|face))|decided|we agreed|agreed(?: on| to| that)|settled"
        r"|conclusion|final(?:ly|ised|ized)?(?= (?:decision|answer|date|time|call))"
        r"|confirmed|we['’](?:ll|re going to)|we (?:will|are going to|have decided)|going with|we go with|voted"
        r"|(?:committee|board|council|majority|meeting) (?:met|decided|says|said|agreed|voted|chose)|(?:took|had"
        r"|held) a vote"
        r"|it['’]s a deal|booked|signed up",
        r"定了|就定|[决決]定|[结結][论論]|[说說]好|敲定|[确確]定(?!吗|嗎|不)|拍板|投票|投完|就[这這][么麼样樣]"
        r"|[这這][样樣]吧|想好了|商量好|[订訂][好了]|批[准了下]"
        rf"|定在|定(?={_ZH_DAY}|每|下|明|了|为|為|的)|咱们?就|我们就|我們就|那就(?!好|行|是)",
    ),
    _cue(
        "rule",
        0.8,
        r"must|always|never|not allowed|forbidden|no exceptions?|mandatory|(?:has|have|need|needs|got) to (?:be|go"
        r"|have|come|pay|sign|bring|wear|book|text|ask)"
        r"|please (?:don['’]t|do not|no|use|keep|bring|put|leave|text|send|write|post|tell|check|lock|close|ask"
        r"|sign|wear|book|pay|return|label|mark|reply|stop|let|remember|make)"
        r"|(?:do not|don['’]t) (?:use|put|leave|post|touch|bring|feed|park|open|send|write|call|lock|forget to"
        r"|merge|push|deploy|throw|let|give|share|come|pay)"
        r"|no [\w-]+(?: [\w-]+){0,2} (?:on|in|at|after|before|near|without|during|for|inside|over|please|until)"
        r"|(?:is|are) (?:a )?(?:rule|banned|compulsory|required|off limits)"
        r"|(?:is|are) not to|every [\w-]+ (?:needs?|must|has|gets)|gets? (?:\w+ed|two|three)|costs?|only (?:use|if"
        r"|on|for|with|the|after|one)|every (?:load|time|one|pr|order|room|member)|(?:new|house|club|group"
        r"|team) rules?|(?:nobody|no one|no-one) (?!cares|knows|asked|told|said|likes)[a-z]{3,12}s|(?:before"
        r"|after) (?:each|every)"
        r"|[a-z]{3,20} only(?= *(?:[,.;!]|$))|loans? (?:is|are)|only [a-z]+ (?:out )?(?:to|for|with|after|if|when)"
        r"|(?:is|are) due (?:at|by|on|in|before)",
        r"必[须須]|禁止|不准|不[许許]|[严嚴]禁|只[能准许給给收]|一律|[统統]一|每次|都要|[务務]必|[规規]矩|[规規]定"
        r"|[规規][则則]|[别別](?![人的说說提墅担想])(?=.{2})|不要(?!紧|緊|了|啊|钱)"
        r"|[罚罰][款钱]|要[罚罰]|之前必|才[能可]以?|不能(?!再说)|直接不|得先|[请請](?!问|假|客|吃|喝|你)"
        r"|[记記]得(?!吗|嗎|不)|[没沒](?:得)?商量|所有.{1,14}?(?:都|要|须|須|在[场場])|收[费費](?!吗|嗎)|不[参參][与與]|不[给給]?[补補]"
        r"|按.{1,6}?(?:分配|[计計]算|排[队隊])|分配按|每人.{0,3}?[收交出]",
    ),
    _cue(
        "habit",
        0.9,
        rf"every (?:other )?(?:day|week|month|morning|evening|night|year|{_WEEKDAY}|first|second|last|two|three)"
        rf"|each (?:week|month|day|{_WEEKDAY})|{_WEEKDAY}s"
        r"|weekly|monthly|fortnightly|daily|(?:odd|even) (?:weeks|days)|(?:a|per) (?:month|week|year)|as (?:ever"
        r"|usual|always)|once a|twice a|on weekdays",
        r"每(?:[天日周週月年晚早隔]|[个個](?:周|週|星期|礼拜|月)|两|兩|星期|礼拜|季)|逢|[单單双雙][周週日月]"
        r"|例[会會]|老[时時]间|老[地规規]|[一二三四五六]个?(?:周|月)一次",
    ),
    _cue(
        "role",
        0.9,
        r"(?:i['’]ll|i will|i can|will|i['’]m|is|are) (?:now )?(?:run(?:ning)?|tak(?:e|ing) over|handl(?:e|ing)"
        r"|organis(?:e|ing)|organiz(?:e|ing)|look(?:ing)? after|cover(?:ing)?|lead(?:ing)?|do(?:ing)? the|take the"
        r"|be the|be our"
        r"|coordinat(?:e|ing)|manag(?:e|ing)|in charge|responsible)|in charge of|responsible for|i (?:keep|hold"
        r"|look after)|takes? over|took over|covers?|handles?|looks after|(?:takes?|does|runs|drives|keeps"
        r"|has) (?:the )?(?=[a-z]{3})"
        r"|on[- ]call|on duty|rota|(?:to|with) me(?= (?:from|please|for|until)|[.,!]|$)|(?:text|ask|tell|email"
        r"|message|ring|call|ping|contact|dm) (?:me|him|her|us|[a-z]+) (?:by|if|for|before|about|when|instead"
        r"|first|a)"
        r"|(?:queries|questions|requests|bookings|orders|complaints|enquiries|payments?|keys) (?:(?:go|goes) )?(?:to"
        r"|through|via)"
        r"|(?:is|are|be) me(?= *[,.;!]|$| and)|stands? by|treasurer|captain|secretary|lead|chair(?:man|woman|person)?"
        r"|in goal|stands? in|deput(?:y|ise|ize)",
        r"[负負][责責]|接手|接替|接[管任]|顶替|頂替|代班|代[课課]|由.{1,8}?(?:来|來|管|做|[担擔]任|[带帶])"
        r"|[归歸].{1,10}?管|找.{1,6}?(?:拿|要|[领領]|[报報]|登[记記]|[签簽]|取|[换換]|问|問)"
        r"|值班|值日|[轮輪][到流值]|管[钱錢账帳]|接口人|[对對]接|交[给給]|[担擔]任|[当當](?=.{0,4}(?:[组組]长"
        r"|[队隊]长|委|主|[管负負]))|放.{1,4}?[那這这處处里家]"
        r"|以[后後](?:找|[问問]|[报報]|交)|私聊|[转轉][给給]我|我(?:来)?[顶頂]上?|我[来來](?![了晚看吃说說个個])|是我(?=[，,。]|$)|.{1,8}?一直是",
    ),
    _cue(
        "person",
        0.9,
        r"(?:i['’]m|i am|i['’]ll be|[a-z]+ is|we['’]re|she['’]s|he['’]s) (?:now )?(?:away|off|out of|on leave"
        r"|on holiday|vegetarian|vegan|allergic|fasting|pregnant|gluten|lactose|leaving|moving|back (?:on|in"
        r"|from) (?=\d|the \d|next|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
        r"|not (?:available|around|free|here))"
        r"|i (?:don['’]t|do not|can['’]t|cannot|won['’]t|never|only|no longer) (?:eat|drink|do|have|take|work"
        r"|drive|come|make|be|use|read|sing|join|answer|pick)"
        r"|(?:has|carries|wears|needs) (?:an? |his |her |their )?(?:new )?(?:inhaler|epi-?pen|insulin|pacemaker"
        r"|hearing aid)"
        r"|i prefer|i['’]d rather|for (?:me|him|her) (?:at |please|until|until|any)|allerg\w+|not for me"
        r"|my (?:number|address|birthday|email|name|shift|days?) (?:is|are)|doctor|clinic"
        r"|please know|side pocket|i (?:need|have) (?:my|a|an) \w+ (?:at|every|by|when)",
        r"我.{0,12}?(?:[过過]敏|不吃|不能|吃素|忌口|[怀懷]孕|[请請]假|出差|不在|戒|不喝|受不了|休[产產假]|[调調]班"
        r"|住院|不方便|没空|要接|要带|只[吃喝能用]|不[会會]来|来不了)"
        r"|我.{0,4}?(?:喜[欢歡]|最[爱愛]|[讨討][厌厭]|[习習][惯慣]|偏好|[爱愛]吃)|[过過]敏|[叫称稱]我"
        r"|我.{0,8}?(?:前|底|[号號]|[周週]|月|起).{0,4}?(?:都|[会會]|只能)?在(?![家线線吗])[^\s，。]{2}"
        r"|我(?:的)?.{0,6}?(?:被盗|被盜)|我的?(?:手[机機]|[电電][话話]|生日|地址|班)|我.{0,8}?(?:[点點號号月]).{0,6}?(?:以[后後]|之[后後]"
        r"|前).{0,4}?(?:不|停|没)"
        r"|我(?:下[个個]?[周週月]|[从從]|明天|[这這][周週]|七月|八月).{0,14}?(?:去|回|不|停|搬|[离離]|休)",
    ),
    _cue(
        "plan",
        0.3,
        r"we(?:['’]re| are) \w+ing|we (?:meet|play|leave|go|start|travel|fly)|match|meeting"
        r"|appointment|deadline|party|trip",
        r"我[们們].{0,12}?[去到在开開]|咱.{0,12}?[去到在开開]|[开開][会會]|集合|截止|截稿|出[发發]"
        r"|聚餐|[团團]建|体检|手[术術]|比[赛賽]",
    ),
)
_ANNOUNCED = lazy_pattern(
    r"\b(?:all|everyone|everybody|folks|heads[- ]up|reminder|fyi|note|noting|announcement|update|while i'm here"
    r"|just so (?:you|everyone)|psa|please)\b"
    r"|跟大家|[说說](?:一下|下|一声|一聲)|通知|各位|大家|提醒|注意|[宣公][布告]|打[个個]招呼|@所有人|同步|先[说說]"
    r"|[兄弟姐]{2}们"
)
_JOKES = lazy_pattern(
    r"\b(?:lol|lmao|rofl|haha\w*|hehe\w*|jk|just kidding|kidding|joking|i swear|ponies|pony|lottery|unicorns?"
    r"|true story|world domination|president|emperor|queen of)\b|[😂🤣💀😜🤡😝🙃]"
    r"|哈哈|笑死|[开開]玩笑|玩笑|[梦夢][见見到]|狗[头頭]|hhh|233|做[梦夢]|吹[个個]?牛|谁.{2,8}谁是|中了?(?:彩票"
    r"|大奖)|[国國]家主席|皇帝|外星"
)
_SUPPOSED = lazy_pattern(
    r"\bif (?:i|we|you|they|he|she|it|that|this)\b.{2,60}?(?:['’]ll|['’]d|['’]m|\bwould\b|\bwill\b|\bshall\b)"
    r"|\b(?:would|could|might|maybe|perhaps|wish|imagine|probably|what if|should we|shall we|how about|not sure"
    r"|thinking (?:of|about)|tempted|wonder(?:ing)?|i think|i guess|someday|one day)\b"
    r"|要是|如果|假如|[万萬]一|就好了|[说說]不定|可能|也[许許]|估[计計]|好像|大概|真想|好想|要不(?!然)|想不想"
    r"|考[虑慮]|不如|干脆|早知|打算(?!好)|有空"
)
_HEARSAY = lazy_pattern(
    r"\b(?:i heard|apparently|rumou?r\w*|supposedly|they say|allegedly|someone said|read somewhere)\b"
    r"|[听聽据據][说說闻聞]|[传傳][说說闻聞言]|网上|網上|小道"
)
_PAST = lazy_pattern(
    r"\b(?:yesterday|last (?:night|week|month|year|time)|ago|was|were|went|ate|saw|took|lost|won|forgot|found"
    r"|bought|spent|slept|just (?:got|had|saw|found|did)|used to|once|been|did|had|got|thought|tried|made|left)\b"
    r"|昨[天晚日]|[刚剛](?:才|[刚剛]|到|回|吃|看)|上[次周週]|以前|[曾][经經]|小[时時]候|去年|[过過]了"
    r"|了一[天晚上整]|来了$|到了$"
)
_AGREES = lazy_pattern(
    r"\b(?:ok(?:ay)?|noted|got it|will do|fine|agreed?|same|yes|yep|yup|yeah|sure|works|deal|copy|understood|done"
    r"|absolutely|count me in|in|sounds good|perfect|good idea|no problem|\+1|happy to|great|love it|ack|cool"
    r"|noted|thank(?:s| you)|confirmed|here for it"
    r"|of course|makes sense|fair|sensible|roger|finally|lovely|on it)\b"
    r"|👍|👌|✅|🙏|🫡|\+1|收到|同意|[没沒]意[见見]|支持|好的|好[呀啊嘞滴哒]|^好$|^行|可以|[记記]住了|明白|知道了"
    r"|[没沒][问問]題|[没沒]问题|[赞贊][成同]|懂了|^嗯|[听聽]到了|了解|算我|我[来來]|^中$|好耶|安排|OK|感[谢謝]|[谢謝]{2}|辛苦"
)
_REFUSES = lazy_pattern(r"\b(?:no|nope|nah|don['’]t|can['’]t|not)\b|不行|不要|反[对對]|不同意|算了|不可以")
_MACHINE = lazy_pattern(
    r"[{}<>|\\]|\(\)|::|\A\W*(?:error|warn(?:ing)?|info|debug|exception|traceback|caused by|at \w+\.)\b|\A[$#]"
    r"|\A[!-~]+\Z|\A\[[^\]]{1,8}\]\Z"
)
_POINTING = lazy_pattern(
    r"^(?:\w+ ){0,4}(?:it|it['’]s|that|that['’]s|this|they|them)\b|\b(?:it['’]s|do it|make it|move it"
    r"|ignore the)\b|^(?:那|就|咱|先|们|們){0,3}[改挪换換推延]|[这這那]个|它"
)
_HAN_RUN = lazy_pattern(f"[{HAN}]")
_WORDS = lazy_pattern(rf"[{HAN}]|[a-z0-9'’]+")
_ECHOES = lazy_pattern(
    r"^(?:ok(?:ay)?|noted|got it|fine|yes|yep|yeah|sure|understood|copy|will do|agreed)\b|^(?:收到|记住了|記住了"
    r"|好的?|行|可以|嗯|明白|知道了)"
)
_FIRM = frozenset(("change", "cancellation"))
_LASTING = frozenset(("change", "cancellation", "decision", "role", "habit", "person"))
_FEWEST, _SHORT, _SHORT_HAN, _BRIEF = 4, 6, 8, 0.4
_MIN = 0.8
_SAFETY, _ANNOUNCEMENT, _NUMBER, _FIXED, _TIMED = 1.2, 0.4, 0.2, 0.7, 0.4
_JOKE, _SUPPOSITION, _QUESTION, _RUMOUR, _STORY, _BARE = 1.6, 1.0, 0.5, 0.9, 0.8, 0.5
_FURTHER = 0.35
_AGREED, _MAX_AGREED = 0.5, 2
_FIGURE = lazy_pattern(r"\d")
_LONGEST_ANSWER = 40


@dataclass(frozen=True, slots=True)
class Sense:
    """The purposes of a message. `purposes`: strongest first; empty if it says nothing that may hold. `score`: how sure
    that is, from 0.8 it is taken by itself. `asked`: it is a question, which holds only if others agree. `points`: it
    may speak of something that an earlier message names. `timed`: it names a day or a time of day."""

    purposes: tuple[Purpose, ...]
    score: float
    asked: bool
    points: bool
    timed: bool

    @property
    def changes(self) -> bool:
        """True if it changes or cancels something."""
        return not {"change", "cancellation"}.isdisjoint(self.purposes)

    def holds(self, agreed: int) -> bool:
        """Return True if it holds, given the number of people who agreed with it."""
        if not self.purposes or (self.asked and not agreed):
            return False
        return self.score + _AGREED * min(agreed, _MAX_AGREED) >= _MIN


_NOTHING = Sense((), 0.0, asked=False, points=False, timed=False)


ACKNOWLEDGED = Sense(("rule",), 0.3, asked=False, points=False, timed=False)
"""What is said without a sign of its own and that others take note of."""
_ACKNOWLEDGES = lazy_pattern(
    r"^(?:ok(?:ay)?|noted|got it|will do|understood|copy|roger|agreed|good (?:call|idea|point)|makes sense|fair enough"
    r"|no problem|yep|ty|thanks?|thank you|fine(?: by me| with me)?|sensible|on it|appreciated)\b"
    r"|^(?:收到|好的?|明白|知道了|了解|没问题|沒問題|[记記]下了?|[记記]住了|已登[记記]|支持|可以|行)(?:[啊呀嘞哈哒滴的了]|[，,。！!~\s]|$)"
)
_FEWEST_OF_STATEMENT, _FEWEST_HAN = 6, 9


def acknowledges(text: str) -> bool:
    """Return True if a short message takes note of what was said before it."""
    return len(text) <= _LONGEST_ANSWER and bool(_ACKNOWLEDGES.search(fold(text)))


def is_statement(folded: str) -> bool:
    """Return True if a folded message states something of the present or of what is to come, in enough words."""
    few = _FEWEST_HAN if _HAN_RUN.search(folded) else _FEWEST_OF_STATEMENT
    if len(_WORDS.findall(folded)) < few or asks(folded) or _MACHINE.search(folded):
        return False
    return not any(_deductions(folded, asked=False, firm=False, passing=True))


@lru_cache(maxsize=1 << 12)
def sense_of(folded: str) -> Sense:
    """Return what a folded message does."""
    if _MACHINE.search(folded) or len(_WORDS.findall(folded)) < _FEWEST:
        return _NOTHING
    found = sorted(_weights(folded), reverse=True)
    day, clock = bool(DAY.search(folded)), bool(CLOCK.search(folded))
    asked = asks(folded)
    if day or clock:
        found.append((_FIXED * day + _TIMED * clock, "plan"))
    score = sum(weight if not at else weight * _FURTHER for at, (weight, _) in enumerate(sorted(found, reverse=True)))
    score += _ANNOUNCEMENT * bool(_ANNOUNCED.search(folded)) + _NUMBER * bool(_FIGURE.search(folded))
    purposes = tuple(dict.fromkeys(purpose for _, purpose in found))
    firm = not _FIRM.isdisjoint(purposes)
    score -= sum(_deductions(folded, asked=asked, firm=firm, passing=_LASTING.isdisjoint(purposes)))
    return Sense(purposes, score, asked=asked, points=bool(_POINTING.search(folded)), timed=day or clock)


def _weights(folded: str) -> Iterator[tuple[float, Purpose]]:
    han = bool(_HAN_RUN.search(folded))
    for cue in _CUES:
        if cue.english.search(folded) or (han and cue.chinese.search(folded)):
            yield cue.weight, cue.purpose
    if is_safety(folded):
        yield _SAFETY, "person"


def _deductions(folded: str, *, asked: bool, firm: bool, passing: bool) -> Iterator[float]:
    if _JOKES.search(folded):
        yield _JOKE
    if _SUPPOSED.search(folded):
        yield _SUPPOSITION
    if _HEARSAY.search(folded):
        yield _RUMOUR
    if _PAST.search(folded) and not firm:
        yield _STORY if passing else _STORY / 2
    if not firm and len(_WORDS.findall(folded)) < (_SHORT_HAN if _HAN_RUN.search(folded) else _SHORT):
        yield _BRIEF
    if _ECHOES.search(folded) and passing:
        yield _BRIEF
    if asked:
        yield _QUESTION
    if thanks(folded) or greets(folded):
        yield _BARE


_BESIDE_HAN, _BESIDE = 4, 16
"""Characters beside a sign of change in which its subject is looked for."""


def words_beside(folded: str, purpose: Purpose) -> frozenset[str]:
    """Return the content words before the signs of a purpose in a folded text; beside those that cancel, after them
    too."""
    found = set[str]()
    for cue in _CUES:
        if cue.purpose != purpose:
            continue
        for sign, near in ((cue.chinese, _BESIDE_HAN), (cue.english, _BESIDE)):
            for one in sign.finditer(folded):
                found.update(keys_of(folded[max(one.start() - near, 0) : one.start()]))
                after = near if purpose == "cancellation" else 0
                found.update(keys_of(one[0] if after else ""), keys_of(folded[one.end() : one.end() + after]))
    return frozenset(found)


def agrees(text: str) -> bool:
    """Return True if a short message agrees with what was said before it."""
    folded = fold(text[:_LONGEST_ANSWER])
    return len(text) <= _LONGEST_ANSWER and bool(_AGREES.search(folded)) and not _REFUSES.search(folded)


def times_in(text: str) -> list[str]:
    """Return the days and times of day that a text names, as written."""
    folded = fold(text)
    written = text if len(text) == len(folded) else folded
    spans = sorted(found.span() for pattern in (DAY, CLOCK) for found in pattern.finditer(folded))
    return [written[start:end] for start, end in spans]


def laughs(text: str) -> bool:
    """Return True if a message treats something as a joke."""
    return bool(_JOKES.search(fold(text[: 4 * _LONGEST_ANSWER])))
