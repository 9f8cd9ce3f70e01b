"""The vocabulary of times in Chinese, as patterns of simplified characters.

Most look-arounds keep apart what is written alike: 上周一共 (last week altogether) is no 上周一 (Monday of last week),
五月天 is a band, 马上周末了 says nothing of a last weekend.
"""

DIGITS = "零一二三四五六七八九"
NUMERALS = "一二两三四五六七八九十"
STEPS = {"上上": -2, "上": -1, "这": 0, "本": 0, "今": 0, "下": 1, "下下": 2}
YEARS = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2}
DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
UNITS = {
    "年": "year",
    "月": "month",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "天": "day",
    "日": "day",
    "小时": "hour",
    "钟头": "hour",
    "分钟": "minute",
}
PARTS = {
    "凌晨": "small hours",
    "清晨": "early morning",
    "中午": "noon",
    "傍晚": "evening",
    **dict.fromkeys(("早晨", "早上", "一早", "上午", "早", "晨"), "morning"),
    **dict.fromkeys(("午后", "下午"), "afternoon"),
    **dict.fromkeys(("晚上", "夜里", "夜晚", "晚间", "夜间", "晚", "夜"), "night"),
    **dict.fromkeys(("深夜", "半夜"), "midnight"),
}

TO = r" ?(?:-|~|到|至) ?"
# Not inside a longer number, nor "every year" or a date of the Chinese calendar.
FREE = rf"(?<![0-9.{DIGITS}十百第每])(?<!每年)(?<!每年的)(?<![农阴旧]历)"
NUMBER = rf"(?:[0-9]{{1,3}}|[{NUMERALS}]{{1,3}})"
A_YEAR = rf"(?:(?:19|20)[0-9]{{2}}|(?:一九|二零)[{DIGITS}]{{2}})"
A_MONTH = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
A_DAY = r"(?:3[01]|[12][0-9]|0?[1-9]|三十一?|二十[一二三四五六七八九]?|十[一二三四五六七八九]?|[一二三四五六七八九])"
DAY_OF_MONTH = rf"(?P<day>{A_DAY}) ?(?:(?:日|号)?{TO}(?P<last>{A_DAY}) ?)?(?:日|号(?![楼线店门机]))"
DATE = rf"(?P<month>{A_MONTH}) ?月 ?{DAY_OF_MONTH}"
MONTHS = rf"(?P<first>{A_MONTH}){TO}(?P<last>{A_MONTH}) ?月份?"
MONTH = rf"(?P<month>{A_MONTH}) ?月份?(?!天(?!气)|饼|卡|嫂|初[{NUMERALS}]|廿|[{NUMERALS}]次)"
THIRD_OF_MONTH = rf"月?(?P<third>初(?![{NUMERALS}])|上旬|中旬|下旬|底(?![下部层线特薪])|末)"
QUARTER = r"第?(?P<quarter>[一二三四1-4]) ?季度"
HALF = r"(?P<half>[上下])半年"
EDGE_OF_YEAR = (
    r"(?P<edge>初(?![一二三四中级恋次始期吻夏春秋冬雪])|底(?![下部层线特薪片])|末(?![班日期世尾])"
    r"|(?<=年)中(?![国秋学考旬午文心超间]))"
)
WEEK = r"(?:周|星期|礼拜)"
WHICH = r"(?P<which>上上|上|下下|下|这|本)一?个?"
WHICH_WEEK = rf"(?<![晚早马网线路街赶加天地以]){WHICH}{WEEK}(?![边岁年长围刊转到身报]|期(?![中末]))"
WHICH_MONTH = rf"(?<![天地晚登马]){WHICH}月(?![球亮光台老饼牙色圆嫂])份?"
WHICH_SEASON = r"(?P<which>上|下|这|今)个?(?P<season>[春夏秋冬])[天季]?(?<![上下这][春夏秋冬])"
WEEKDAY = (
    r"(?P<weekday>一(?!直(?!到|接)|下(?!午)|[共起样些个次会定点般位条天场名周边旦切律向度方只件番堆句家份遍块口本围])"
    r"|[二三四五六](?![个次天位名条场家份件年月十百千万本款部张篇项届福])"
    r"|日(?![程报常子志记期历本语文均])|天(?![天气子津空真然台哪王]))"
)
ANY_WEEKDAY = rf"(?<![0-9{NUMERALS}几每个半整逢满隔双单老小]){WEEK}{WEEKDAY}"
NTH = r"(?:第(?P<nth>[一二三四五1-5])|最后一?)个?(?P<what>周末|周|星期|礼拜|天|月)"
YEAR_WORD = r"(?<![过如之以目当年月天日周后然证声])(?P<word>大前年|前年|去年|今年(?!轻)|本年(?!级)|明年|后年)度?"
DAY_WORD = (
    r"(?<![如当目之以周年月日期前先午然最证声聪])(?P<day>大前|大后|前|昨|今|明|后)(?P<part>天|日|儿个?|晚|夜|早|晨)"
    r"(?<!后[日晚夜早晨])(?<!前[夜早晨])(?!头条|方舟|气(?!温|象)|才|性|努力|培养|形成|期)"
)
PART = (
    r"(?P<part>凌晨|清晨|早晨|早上|一早|上午|中午|午后|下午|傍晚|晚上|夜里|夜晚|晚间|夜间|深夜|半夜"
    r"|晚(?![饭餐会点安宴年期辈自了间])|早(?![餐饭点就已期年教恋安]))"
)
CLOCK = (
    rf"(?P<hour>2[0-4]|1[0-9]|0?[0-9]|{A_MONTH}|两)(?P<mark>点|时(?![候间刻代常期尚])|:)"
    r"(?P<minute>半|一刻|三刻|(?<=点)[0-5]?[0-9](?=分)|(?<=:)[0-5][0-9])?[分钟]?(?![都也儿没不小了击评赞餐])"
)
COUNT = (
    r" ?(?:(?P<low>[一二两三四五六七八])(?P<high>[二三四五六七八九])"
    rf"|(?P<from>{NUMBER}){TO}(?P<till>{NUMBER})|(?P<count>十几|好几|几|半|{NUMBER}))"
    r" ?多?(?P<of>个)?(?P<more>半)?(?P<unit>年|月|周(?![年岁边期])|星期|礼拜|天|日|小时|钟头|分钟)(?P<tail>半)?"
)
AGO = rf"(?<![第0-9.{NUMERALS}]){COUNT}(?:之前|以前|前)(?![后面台夕景提辈途])"
PAST = rf"(?<![附将接靠临])(?P<which>最近|过去|近|这)的?这?{COUNT}(?:以来|之内|以内|内|里|中|间)?"
HOLIDAY = (
    rf"(?P<holiday>元旦|情人节|妇女节|愚人节|劳动节|五一(?!路|广场|大道|街|村|[{NUMERALS}零百千万点])|儿童节"
    r"|教师节|(?<![李王张刘陈杨赵黄周吴徐孙马朱胡林郭何高罗])国庆|十一(?=假期|长假|期间|黄金周)|万圣节"
    r"|双十一|双11|双十二|感恩节|平安夜|圣诞|跨年|复活节|春节|除夕|年三十|年初一|元宵节"
    r"|清明(?=[节假期放那时前后的 ?,。!]|$)|端午|七夕|中秋|重阳节)"
    r"(?:劳动节|节|夜)?(?:小?长假|假期|黄金周|期间|当天|那天)?(?![树帽卡歌粽档装路服]|老人|礼物|月饼|红包|快乐)"
)
