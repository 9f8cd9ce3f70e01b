"""Words that carry no topic or name nobody, Chinese (simplified and traditional) and English, all folded."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


ENGLISH = _listed(
    """
    a about above actually after again against ago all almost already also although always am an and another any
    anybody anyone anything anyway are aren around as ask at away back be became because become been before being
    below better between both but by came can cannot come could couldn did didn do does doesn doing don done down
    during each either else enough etc even ever every everybody everyone everything few for from further gave get
    gets getting give given go goes going gone gonna good got gotta guess had hadn has hasn have haven having he her
    here hers herself him himself his how however i idk if ill im imho imo in instead into is isn isnt it its itself
    ive just keep kind know knows last later least less let lets like little lol long look looks lot made make makes
    many may maybe me mean means might mine more most much must mustn my myself need needs neither never next no
    nobody none nope nor not nothing now of off often oh ok okay on once one ones only onto or other others
    otherwise ought our ours ourselves out over own people perhaps please pls possible pretty probably put quite
    rather really right said same saw say says see seem seems seen sees several shall she should shouldn since so
    some somebody somehow someone something sometimes somewhere soon sorry still such sure take taken tell than that
    thats the their theirs them themselves then there theres these they thing things think this those though thought
    through thus till to together too took toward tried tries try trying u under unless until up upon ur us use used
    uses using usually very via want wanted wants was wasn way we well went were weren what whatever whats when
    where whether which while who whole whom whose why will with within without won wont would wouldn yeah yep yes
    yet you your yours yourself yourselves dont doesnt didnt cant couldnt wouldnt shouldnt havent hasnt wasnt werent
    youre theyre e.g i.e hi hey hello hmm haha hehe thx thanks thank ty np lmao btw afaik b d f g h j k l m n o p q
    r s t v w y z
    """
)

CHINESE = _listed(
    """
    的 了 是 我 你 您 他 她 它 在 有 和 与 與 及 或 就 不 都 一 也 很 到 说 說 要 去 会 會 着 著 没 沒 看 好 这 這
    那 么 麼 嗎 吗 呢 吧 啊 呀 哦 噢 喔 嗯 哈 嘛 啦 哎 唉 诶 欸 喂 哟 额 呃 咯 嘞 哇 呗 之 于 於 以 而 但 被 把 给
    給 让 讓 向 从 從 对 對 为 為 因 所 其 此 该 該 每 各 某 另 再 又 还 還 才 只 已 曾 将 將 正 更 最 太 真 可 能
    想 做 用 来 來 出 过 過 上 下 里 裡 里面 中 后 後 前 个 個 些 几 幾 多 少 大 小 等 得 地 们 們 啥 咋 谁 誰 哪 何
    如 若 则 則 并 並 且 跟 同 比 叫 请 請 两 二 三 四 五 六 七 八 九 十 人 天 点 點 次 件 位 种 種 样 樣 时 時 年
    月 日 号 號 话 話 事 先 别 別 行 走 问 問 写 知 道 觉 打 开 看看 試 试 弄 搞 算 像 当 當 至 我们 我們 你们 你們
    您们 他们 他們 她们 她們 它们 它們 咱 咱们 咱們 自己 大家 别人 別人 人家 有人 某人 各位 这个 這個 那个 那個 这些
    這些 那些 这样 這樣 那样 那樣 这么 這麼 那么 那麼 这里 這裡 这儿 那里 那裡 那儿 这边 這邊 那边 那邊 这种 這種
    那种 那種 什么 什麼 甚麼 怎么 怎麼 怎样 怎樣 怎么样 怎麼樣 怎么办 怎麼辦 为什么 為什麼 为啥 如何 哪个 哪個 哪里
    哪裡 哪儿 哪些 多少 几个 幾個 是否 是不是 有没有 有沒有 能不能 可不可以 会不会 要不要 对不对 行不行 好不好 一个
    一個 一些 一下 一点 一點 一样 一樣 一直 一起 一般 一定 一次 两个 兩個 有点 有點 有些 有的 没有 沒有 不是 不会
    不會 不能 不要 不用 不行 不过 不過 不太 不知 知道 不知道 可以 可能 应该 應該 需要 觉得 覺得 认为 認為 感觉 感覺
    以为 以為 因为 因為 所以 但是 可是 然后 然後 而且 或者 还是 還是 如果 要是 虽然 雖然 只是 只要 只有 就是 就算
    其实 其實 确实 確實 真的 已经 已經 现在 現在 刚刚 剛剛 刚才 剛才 刚 剛 之前 之后 之後 以后 以後 以前 时候 時候
    后来 後來 还有 還有 以及 关于 關於 对于 對於 根据 根據 通过 通過 比如 例如 比较 比較 非常 特别 特別 十分 太多
    更加 最好 大概 差不多 左右 起来 起來 出来 出來 过来 過來 过去 過去 下来 下來 上去 进去 回来 东西 東西 事情 问题
    問題 办法 辦法 意思 请问 請問 求助 帮忙 幫忙 麻烦 麻煩 谢谢 謝謝 多谢 感谢 感謝 谢了 你好 您好 大家好 好的 好吧
    好了 嗯嗯 哈哈 哈哈哈 哈哈哈哈 呵呵 嘿嘿 嘻嘻 嗨 哈喽 收到 对啊 對啊 是的 是啊 对的 對的 行吧 没事 沒事 不客气
    不客氣 没问题 沒問題 明白 了解 ok 来说 的话 的話 来着 而已 罢了 什麽 怎麽 这麽 那麽 為何 为何 干嘛 幹嘛 咋办
    咋样 说话 看到 看来 看來 想要 出现 出現 进行 進行 使用
    """
)

# Answers and openings that stand before a comma far more often than they are somebody's name.
INTERJECTIONS = _listed(
    """
    ah alright amazing anyhow awesome basically btw cool correct damn dude exactly fine first finally folks great
    guys hence indeed lastly man mate nah nice nvm obviously okey right second sir sorry sounds then true ubuntu
    linux ugh unfortunately welcome what windows wow yea yup user test root guest 好 对 嗯 是 行 不 那 哦 另外 首先
    其次 最后 总之 老师 同学 朋友 兄弟 今天 明天 昨天 上午 下午 晚上
    """
)

# Words of computers and of daily life: taken as nicknames often, and meant as themselves more often.
ORDINARY = _listed(
    """
    able access action add address admin alpha anger angel apple apt automatic back bash beta bin bios black blue
    boot bot box boy browser bug build bus button call card case cat change channel chaos chat check clean client
    close cloud code coffee color command common computer config connect console copy core correct crash cursor
    daemon dark data date day dead debian debug default delete dell desktop dev dir directory disk doc docker dog
    driver edit email empty error event fan fast file firefox fire fix flash folder font format free friend full fun
    game gentoo ghost gnome google group hack hacker happy hard head home host hot house hub ice image info init
    install intel internet iso java job joker kde kernel key laptop lib library light line link list live load local
    lock log login loop lost love lucky mac machine magic mail mate memory menu message metal mode module monitor
    moon mount mouse music name net network news nice night node noob normal null number offline open oracle order
    output package page panel paper partition pass password patch path perl phone php pin ping pink place plain play
    point port post power print problem process program proxy python question quick quit radio rain ram random read
    ready real red remote report reset return river rock rocket root ruby run save screen script search second
    secret server service session set setup shadow shell sign silver simple site sky sleep slow smart smoke snow
    software solid sound source space spirit start state stick stone storm stop string style sudo sun support swap
    switch system tab table talk team tech term terminal test text theme time tool top trash tree turn type ubuntu
    unix update upgrade user version video view vim virus visitor wait water web white wifi window windows wine
    winter wireless wolf word work world write xchat yellow zero
    """
)
