"""Own questions for `train_far`: about what was said in a room once, and about other things.

Each stands for many of its kind, in English and in Chinese. `PEOPLE` are in the room. `TALKS` are messages that hold a
piece of dialogue: who hands over a conversation wants what belongs to it.
"""

PEOPLE = ("Priya", "Tomas", "Elena", "Marta", "Ana", "Jonas", "Sofia", "Nina", "小李", "张伟", "李娜")

NEEDED = """
What did we decide about the pricing page last week?
When was the server migration supposed to happen again?
Who said they would bring the projector?
Where did we put the keys to the storage room?
What was the name of the restaurant Priya recommended?
Which of the two logos did the client pick in the end?
How much did we pay for the booth last year?
Do you remember what I told you about my sister's wedding?
What is my dog's name?
Which allergies did I mention?
What's our current wifi password for guests?
Remind me, what was the deadline for the grant application?
Did Tomas ever answer about the contract?
What is Elena's phone extension?
Where does Marta work now?
How many people signed up for the hike?
As of today, who is on call this weekend?
What is the latest status of the permit for the food truck?
Who is responsible for the newsletter now?
What are the final rules for the parking spots?
Which book did you recommend to me in spring?
When is Jonas coming back from Lisbon?
What did Ana say about the budget on Tuesday?
Has the landlord replied about the heating?
What was wrong with the printer when it broke in March?
Which day did we agree on for the retro?
Who was at the dinner on 12 May?
What time does our book club meet?
What colour did I want to paint the hallway?
How long has Ben been learning Portuguese?
What is my current training plan?
Give me a summary of what is settled for the Oslo trip so far.
Tell me the current door code and who may have it.
What kind of music does Sofia like?
Does Karl eat meat?
Which cities have Nina and Paul both lived in?
上次我们定的预算是多少？
小李说的那家火锅店叫什么名字？
我之前跟你说过我对什么过敏？
谁答应周五带投影仪来着？
你上周给我推荐的那本书叫什么？
我家的猫叫什么名字？
服务器迁移定在哪天？
客户最后选了哪个方案？
我什么时候开始学吉他的？
现在值班的是谁？
目前停车位的规定是什么？
张伟住在哪个城市？
我在5月2号买了什么？
我们昨天聊了哪些话题？
我妹妹的婚礼是哪一天？
你还记得我最喜欢的颜色吗？
王芳上个月去哪里出差了？
会议室的密码现在是多少？
报名参加爬山的有几个人？
我以前提到过的那个摄影师是谁？
报销的流程最后是怎么定的？
李娜和赵强都喜欢什么运动？
我妈妈的生日是几号？
项目现在由谁负责？
Give me the current list of volunteers and their shifts.
Summarize what we have settled about the new office so far.
Give Paul the latest delivery times, without the private notes.
Tell me which of my shifts are still open.
Does Elena work on Fridays?
Could Jonas be allergic to nuts?
Is Marta married?
I don't like horror films, right?
List everything that is still missing for the Oslo trip.
For the handover, what are the current codes and rooms?
总结一下目前定下来的搬家安排。
告诉我现在谁有仓库的钥匙。
列出我们到现在为止报名的人。
我不爱吃辣，对吗？
李娜喜欢吃海鲜吗？
"""

NOTHING = """
How do I reverse a list in Python?
Can you explain what a monad is?
I'm trying to set up a reverse proxy, can anyone help?
What is the difference between TCP and UDP?
Why does my build fail with exit code 137?
Is there a way to mount a volume read-only?
Please write a short poem about autumn.
Which editor do you use?
Anyone else having trouble with the VPN today?
What should I cook tonight?
Good morning everyone!
I just finished my first marathon, so happy!
Can you help me plan a study schedule for next month?
I've been thinking about changing jobs. What do you think?
What's the capital of Australia?
How many ounces are in a pound?
Who wrote The Trial?
When does daylight saving time end?
My internet is slow again, any suggestions?
I want to learn to draw, where should I start?
Does anyone know a good dentist?
Has anyone tried the new release?
What's up?
What do you mean?
Which one?
Did you try turning it off and on?
Where is that file?
Who is in for lunch?
Could you review my pull request when you have time?
I'd like to improve my resume. Here is my current draft.
I have a problem with my current configuration, it says permission denied.
Let's talk about travel. What are good places to see in Japan?
I went to a museum yesterday and learned a lot about history.
What is the best way to store passwords in a database?
How can I make my essay more persuasive?
Explain the causes of the first world war.
Thanks, that worked!
I think we should ship it on Monday.
My name is Dana and I am new here, nice to meet you.
I need 3 ideas for a birthday present for my father.
怎么用 Python 反转一个列表？
你能解释一下什么是区块链吗？
我最近在学做菜，你有什么建议吗？
早上好，今天天气真好。
请帮我写一首关于秋天的诗。
为什么我的代码跑不起来？
有没有人遇到过这个报错？
我今天去了一家咖啡店，味道很不错。
你觉得我应该换工作吗？
TCP 和 UDP 有什么区别？
澳大利亚的首都是哪里？
你喜欢什么运动？
最近压力有点大，怎么放松一下比较好？
我想去日本旅游，有什么好玩的地方推荐吗？
你是谁？
什么意思？
哪个？
中午吃什么？
谁有空帮我看一下这个？
昨天我看了一部电影，特别感人。
我现在有点难过，不知道该怎么办。
如何提高英语口语？
Give me three ideas for a quick dinner.
Tell me a joke.
List the planets in order of size.
Show me how to sort a dictionary by value.
Summarize the plot of Hamlet.
Write me a summary of the article below.
Is it possible to run two versions side by side?
Does Postgres support this?
Is this a bug?
Does it work now?
告诉我怎么做红烧肉。
给我讲个笑话吧。
总结一下唐朝的历史。
给我推荐几本科幻小说。
这样对吗？
Sunday is mine then. Tomas Friday, Ana Saturday, me Sunday?
Can Priya take over from here?
Is Jonas coming to the call?
Elena, Marta and I are going for lunch, who joins?
Did you see Nina today?
Ask Tomas, he knows his way around the router.
What do you think, should we wait for Sofia?
My password has expired, who can reset it?
Could somebody tell Ana that I am late?
Maybe Marta can have a look at our pipeline?
张伟今天来吗？
这个让李娜看一下行吗？
我的密码过期了，找谁重置？
小李你那边好了吗？
"""

TALKS = (
    "Mia: I am so nervous about the recital.\nAssistant: What will you play?\nMia: The same piece as last time.",
    "<Leo>: My knee hurts again.\n<Assistant>: Since when?\n<Leo>: Since the weekend, like in spring.\n"
    "<Assistant>: Did you see a doctor then?\n<Leo>: Yes, but it took ages.",
    "小雨：明天又要考试了。\n助手：准备得怎么样？\n小雨：还是老问题，时间不够用。",
    "<阿强>：“我想再去一次那个湖边。”\n<助手>：“上次玩得开心吗？”\n<阿强>：“特别开心，可惜下雨了。”",
)
