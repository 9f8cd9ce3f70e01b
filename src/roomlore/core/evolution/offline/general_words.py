"""Words that everybody uses everywhere: by themselves they tell no group from another. All in the form of a key."""

from roomlore.core.stop_words import CHINESE, ENGLISH
from roomlore.core.text import stem

_ENGLISH = """
able absolutely add afternoon agree alone already alright amazing answer anymore anyone appreciate area awesome bad
basically beautiful begin believe best bet big bit bring bro brought buddy bunch busy buy bye call care case cause
certain certainly chance change chat check cheer cheers choose class close cold come coming congrats congratulations
conversation cool couple crazy crossed curious cute day deal dear decide definitely depend difference different
difficult discuss doing doubt dude early easily easy ed end enjoy especially evening event everyday everyone exactly
excite excited exciting expect experience explain extra fact fall fantastic far fast favorite favourite feel feeling
felt find fine fingers finish first fix folk follow forget forward found free friend full fun funny game getting glad
goal god going good goodbye great guess guy haha hahaha half hand handle hang happen happy hard hate having head hear
heard heart heck help hey high hit hmm hold honest honestly hope hopefully hour hug huge hugs idea imagine imo
important incredible information inspire inspiring interest interested interesting issue job join journey joy keen kid
kind kinda learn leave left level life like line list listen literally live lmfao lmk local looking lot lovely low
luck lucky main making man mate matter meet member memory men mention message mind minute miss moment moni month
morning move moved nah name near new nice nicely night normal note number obvious obviously okay old omg open option
order original part pass past pay people perfect perfectly person photo pic pick picture piece place plan pleasure
plenty plus point positive post practice prefer problem process progress proud push question quick quickly read ready
real realize reason recent recently relax remember remind reply rest result roll room run sad safe save scare search
second seeing send sense sent serious set shall share shit short show side simple single sir sis sit situation small
someone soon sort sound special specific spend spent spot stand start stay step stick stop story strong stuff style
super support suppose sure surprise sweet taking talk tbh team thank therefore thought time tip tired today told
tomorrow ton tonight top totally touch tough trouble true trust trying turn type understand unfortunate unique update
useful user usual vibe view visit wait walk watch week weird welcome whole win wish women wonder wonderful word work
working world worry worth wow write wrong ya yay yea year yesterday young
"""
_CHINESE = """
今天 明天 昨天 后天 前天 晚上 早上 上午 下午 中午 今晚 明早 最近 时间 有时 小时 分钟 每天 天天
一天 一周 今年 去年 明年 希望 喜欢 开心 高兴 快乐 努力 加油 建议 注意 保持 可能 重要 不错 很好
太好 真是 真好 太棒 厉害 学习 工作 生活 朋友 老师 同学 同事 大家 家人 心情 感受 情况 方面 方法
方式 选择 决定 考虑 尝试 试试 帮助 支持 理解 相信 记得 忘记 告诉 听到 听说 看到 看见 发现 开始
结束 继续 完成 准备 安排 计划 推荐 介绍 分享 讨论 聊天 交流 回答 回复 消息 信息 内容 部分 地方
这次 那次 下次 上次 第一 第二 一种 很多 许多 不少 更好 越来越 一直 经常 常常 有时候 偶尔 当然
确实 果然 居然 原来 可惜 终于 马上 立刻 赶紧 突然 直接 简单 容易 困难 复杂 有趣 有意思 好玩
好看 好吃 好听 适合 比如说 例如 其他 另外 另一 一个人 自己 能够 愿意 想法 看法 意见 观点 主意
经验 能力 水平 机会 过程 结果 原因 目标 压力 解决 处理 提高 提升 增加 减少 变成 成为 变得 觉得
认识 知识 关系 世界 社会 人生 生日 祝 祝你 祝福 恭喜 感谢 谢谢 抱歉 对不起 没事 没关系 不客气
一定要 一些 几天 几个 有人 有点 一下子 随时 随便 到时候 到时 回家 出去 出门 回来 起床 睡觉 吃饭
休息 身体 健康 东西 事情 事儿 问题 需要 可以 明白 清楚 知道 了解 确定 肯定 放心 担心 害怕 难过
伤心 生气 累 忙 一起 特别 非常 真的 感觉 好像 似乎 应该 必须 千万 哈哈哈 呵呵 嘻嘻 早点 晚点
差点 快点 一点 半天 刚才 待会 一会 一会儿 哪天 改天 发给 发到 发个 拿到 收到 行不行 不行 没空
有空 有没有 美好 愉快 轻松 期待 享受 体验 推薦 喜歡 時間 開心 讓我 如果你 推荐你 適合 记住 不要
可爱 帅 漂亮 年轻 女生 男生 小姐姐 老板 先生 女士 亲爱 陪伴
好好 再聊 下次 拜拜 再见 晚安 早安 回见 找到 感到 遇到 叫做 聊聊 想想 通常 有用 合适 不同 寻找 打算 有所 话题
"""

_BROAD = """
add app base book build car change channel city code color command create data day download element error example file
food function home house image input install key line link list load log machine message method name number output
package page picture problem remove run server session set setup site size solution start state test text update url
user value version video
天气 活动 经历 故事 环境 技巧 作品 功能 数据 代码 文件 链接 版本 图片 视频 程序 软件 系统 用户
页面 网站 项目 公司 学校 城市 名字 价格 手机 电脑
"""

WEEKDAY = "@"
"""What the key of a weekday begins with."""

GENERAL = frozenset(map(stem, _ENGLISH.split())) | frozenset(_CHINESE.split()) | ENGLISH | CHINESE


_TOO_BROAD = frozenset(map(stem, _BROAD.split()))


def is_topical(key: str) -> bool:
    """Whether a word can be what people talk about, and is no mere number or point of time."""
    return not (key in GENERAL or key.startswith(WEEKDAY) or key[:1].isdigit())


def is_telling(key: str) -> bool:
    """Whether a word alone says what people talk about."""
    return is_topical(key) and key not in _TOO_BROAD
