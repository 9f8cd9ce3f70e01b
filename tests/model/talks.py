"""Conversations for a real model, in both languages, written for these tests."""

LANGUAGES = ("en", "zh")

WORTH_KEEPING = {
    "en": """Nora: The piano teacher can only do Wednesdays at four now
helper: Does that still fit with swimming?
Nora: yes, swimming moved to Fridays. But Emil needs a lift home, I work until six
helper: Then somebody must fetch Emil on Wednesdays at five.
Nora: my brother Jonas will do it""",
    "zh": """周敏: 钢琴老师现在只有周三下午四点有空
小帮: 和游泳课不冲突吧？
周敏: 不冲突，游泳改到周五了。不过小宇下课得有人接，我六点才下班
小帮: 那周三五点要有人去接小宇。
周敏: 我弟弟周杰去接""",
}

EMPTY_TALK = {
    "en": """Finn: morning!
helper: Good morning, Finn!
Finn: :D
helper: Have a nice day!
Finn: you too""",
    "zh": """阿凡: 早！
小帮: 早上好，阿凡！
阿凡: 嘻嘻
小帮: 祝你今天愉快！
阿凡: 你也是""",
}

TURNS = {
    "en": [
        ("I want to repaint the kitchen before my parents visit on 14 March.", "How large is it?"),
        ("About 12 square metres of wall. My father has asthma, so no strong smells.", "Then take a low-odour paint."),
        ("The budget is 150 euros, brushes included.", "That is enough: ten litres cost about 90 euros."),
    ],
    "zh": [
        ("我想在3月14日父母来之前把厨房重新刷一遍。", "厨房多大？"),
        ("墙面大约12平方米。我爸有哮喘，味道不能太大。", "那就选低气味的漆。"),
        ("预算150欧，刷子也算在内。", "够了，十升漆大约90欧。"),
    ],
}

LATER_TURNS = {
    "en": [("My parents come on 21 March instead.", "Then you have a week more.")],
    "zh": [("我父母改到3月21日来了。", "那你多了一个星期。")],
}

QUESTIONS = {"en": "Name three fruits, in one line.", "zh": "说出三种水果，写在一行里。"}
