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

ROOM_TALK = {
    "en": [
        ("Ruth", "Is the cabin free in August?"),
        ("helper", "Yes, from 9 to 16 August."),
        ("Ruth", "Good, book it, please."),
        ("helper", "The cabin is booked from 9 to 16 August."),
        ("Otto", "I come on the 11th by train. And I cannot eat fish!"),
        ("Ruth", "Noted. I bring the boat, Otto brings the tent."),
        ("helper", "I have put boat and tent on the list."),
    ],
    "zh": [
        ("老罗", "小木屋八月份有空吗？"),
        ("小帮", "有，8月9日到16日空着。"),
        ("老罗", "好，请订下来。"),
        ("小帮", "已订好8月9日到16日的小木屋。"),
        ("阿托", "我11号坐火车到。对了，我不能吃鱼！"),
        ("老罗", "记住了。我带船，阿托带帐篷。"),
        ("小帮", "船和帐篷都写进清单了。"),
    ],
}
"""The last three messages are what an extraction of every third reply reads."""

REQUESTS = {
    "en": [
        "I am Lea, I keep two rabbits and I live in Oslo. What may rabbits eat? One sentence, please.",
        "Thanks! Where do I live?",
    ],
    "zh": ["我叫小雅，养了两只兔子，住在大连。兔子能吃什么？请用一句话回答。", "谢谢！我住在哪里？"],
}
