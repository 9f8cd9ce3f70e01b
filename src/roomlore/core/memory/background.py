"""Statements about nothing in particular, in Chinese and in English: what a question is *not* about.

How near a memory lies to a question says little by itself, since models differ in where their cosines lie. Compared
with how near these lie to the same question it says the same for every model. The two lists say the same things, so
that neither language is nearer to a question than the other.
"""

CHINESE = (
    "公司在城东租了一间新的办公室",
    "他们打算明年换一套电脑系统",
    "成员大多住在南方的几个城市",
    "会议室在二楼走廊的尽头",
    "她最喜欢的颜色是深蓝色",
    "图书馆周一不开门",
    "项目的预算已经用掉一半",
    "他每天早上跑五公里",
    "我们决定把聚会推迟到下个月",
    "价格比去年涨了一成",
    "手机没电的时候请打座机",
    "医生建议他少吃盐",
    "报名表要在截止日期之前交",
    "群里的人说话都很客气",
    "电影票可以在网上买",
    "老板不在的时候由副手负责",
    "这个软件只支持最新的浏览器",
    "孩子们喜欢在公园里玩球",
    "资料保存在共享文件夹里",
    "冬天的时候这里经常下雪",
    "他们经常为了小事争论",
    "新来的同事以前是老师",
    "火车晚点了四十分钟",
    "大家同意不在晚上讨论工作",
)
ENGLISH = (
    "The company rented a new office in the east of the city",
    "They intend to replace their computer system next year",
    "Most members live in a few cities in the south",
    "The meeting room is at the end of the corridor on the second floor",
    "Her favourite colour is dark blue",
    "The library is closed on Mondays",
    "Half of the project's budget has been spent",
    "He runs five kilometres every morning",
    "We decided to put the party off until next month",
    "Prices rose by a tenth since last year",
    "Please call the landline when the mobile is flat",
    "The doctor advised him to eat less salt",
    "The form has to be handed in before the deadline",
    "People in the group are polite to each other",
    "Cinema tickets can be bought online",
    "The deputy is in charge while the boss is away",
    "This software only supports the latest browsers",
    "The children like to play ball in the park",
    "The material is kept in a shared folder",
    "It often snows here in winter",
    "They often argue about small things",
    "The new colleague used to be a teacher",
    "The train was forty minutes late",
    "Everybody agreed not to discuss work in the evening",
)
