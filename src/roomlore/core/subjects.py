"""The subjects that a text names: classes of words in both languages, such as groups of drugs and of foods."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import HAN, head

MEDICINE, FOOD = "medicine", "food"
FIELDS = frozenset((MEDICINE, FOOD))
"""The wide subjects, to which others belong."""

# A row: the field, the subject, English words (a trailing * stands for any ending, a leading one for any beginning) and
# parts of Chinese words. Subjects are wide on purpose: a fact that is shown without need costs a line.
_TABLE = """
medicine | penicillins | *cillin augmentin amoxiclav amoxil | 青霉素 青黴素 西林 盘尼西林 盤尼西林 安灭菌 安滅菌
    阿莫仙
medicine | antibiotics | antibiotic* *cillin augmentin cef* ceph* *mycin *floxacin *cycline sulfa* sulpha*
    bactrim septra trimethoprim metronidazole infection* infected uti sinus sinusitis tonsil* | 抗生素 青霉素
    青黴素 西林 头孢 頭孢 沙星 霉素 黴素 磺胺 新诺明 新諾明 甲硝唑 感染 发炎 發炎 扁桃体 扁桃體 安灭菌 安滅菌
medicine | sulfonamides | sulfa* sulpha* sulfon* bactrim septra trimethoprim | 磺胺 新诺明 新諾明
medicine | pain relief | nsaid* aspirin* ibuprofen naproxen diclofenac voltaren advil aleve motrin nurofen
    *profen celecoxib seltzer painkiller* inflammator* paracetamol acetaminophen tylenol codeine morphine
    headache* migraine* backache sprain* | 阿司匹林 阿斯匹 布洛芬 芬必得 扶他林 氯芬酸 萘普生 止痛 镇痛 鎮痛
    消炎 退烧 退燒 泰诺 头疼 头痛 頭痛 崴 扭伤 扭傷
medicine | blood thinners | warfarin heparin xarelto eliquis apixaban rivaroxaban clopidogrel anticoagulant*
    thinner* nsaid* aspirin* ibuprofen naproxen nosebleed* bleeding | 华法林 華法林 肝素 抗凝 利伐沙班 氯吡格雷
    阿司匹林 阿斯匹 出血 活血
medicine | contrast media | contrast iodine iodinated ct angiogra* metformin kidney* renal | 造影 碘 增强 增強
    显影 顯影 二甲双胍 二甲雙胍 肾功能 腎功能
medicine | implants | pacemaker* icd defibrillator* cochlear implant* magnet* mri weld* induction diathermy |
    起搏 支架 人工耳蜗 钢板 鋼板 钢钉 核磁 磁共振 磁疗 磁療 电焊 電焊 电针 電針 电疗 電療 电磁 電磁
medicine | retinoids | pregnan* retino* isotretinoin tretinoin adapalene accutane acne | 孕 维甲酸 阿达帕林 异维
    视黄 視黃 痘
medicine | anticholinergics | glaucoma anticholinergic* atropine scopolamine antihistamine* seasick* carsick* |
    青光眼 胆碱 膽鹼 莨菪 阿托品 晕车 暈車 晕船
medicine | diuretics | lithium diuretic* furosemide dehydrat* sodium | 锂 鋰 利尿 脱水 脫水
medicine | diabetes | insulin glucose diabet* hypo metformin jab* | 胰岛素 胰島素 血糖 糖尿 降糖 二甲双胍
medicine | vaccines | vaccin* jab* flu immunis* immuniz* | 疫苗 接种 接種 打针 打針 流感
medicine | airways | asthma* inhaler* wheez* copd sulphite* sulfite* | 哮喘 气喘 氣喘 吸入器
medicine | | medicine* medication* drug* pill pills tablet* dose* dosage prescri* doctor* gp clinic* hospital*
    pharmac* nurse* surg* inject* painful pain pains hurt* fever* cough* cold throat rash* swollen ointment*
    capsule* scan ward anaesthe* anesthe* dentist* dental diagnos* | 药 藥 医生 醫生 医院 醫院 诊所 診所 看病
    手术 手術 疼 痛 发烧 發燒 感冒 咳 发炎 發炎 服用 处方 處方 片剂 两粒 几粒 输液 輸液 挂水 住院 牙医 拔牙 体检
    體檢 凝胶 软膏 护士 護士 中医 针灸
food | nuts | nut nuts peanut* almond* walnut* cashew* pecan* pistachio* hazelnut* macadamia* marzipan
    frangipane amaretti amaretto praline* nutella satay pesto nougat baklava epipen | 坚果 堅果 花生 杏仁 核桃
    腰果 榛 开心果 沙嗲 沙爹 宫保
food | shellfish | seafood shellfish shrimp* prawn* crab* lobster* crayfish oyster* clam* mussel* scallop*
    paella | 海鲜 海鮮 虾 蝦 蟹 贝类 貝類 甲壳 甲殼 牡蛎 蛤 蚝 避风塘 避風塘 鲍 扇贝
food | fish | fish salmon tuna cod anchov* sushi sashimi seafood | 鱼 魚 刺身 寿司 壽司 海鲜 海鮮
food | gluten | gluten wheat coeliac* celiac* bread* pasta noodle* couscous bulgur barley rye beer stout ale
    pizza* pie pies cake* croissant* | 麸质 麩質 麦胶 面筋 小麦 小麥 乳糜泻 面包 麵包 面条 麵條 饺子 啤酒 蛋糕
food | dairy | milk* lactose dairy cheese* cream butter yoghurt* yogurt* latte* custard whey | 牛奶 牛乳 乳糖
    乳制品 奶茶 奶油 奶酪 奶粉 芝士 起司 黄油 拿铁 拿鐵 酸奶
food | eggs | egg eggs omelette* mayonnaise meringue* custard | 鸡蛋 雞蛋 蛋糕 蛋白 煎蛋 蛋挞
food | soya | soy soya tofu edamame miso | 大豆 豆制品 豆腐 豆浆 黄豆 酱油
food | sesame | sesame tahini hummus halva | 芝麻 麻酱 香油
food | honey | honey manuka mead | 蜂蜜
food | broad beans | fava beans ful g6pd favism falafel | 蚕豆 蠶豆 胡豆
food | fruit | fruit grapefruit* mango* kiwi* strawberr* peach* pineapple* pomelo* | 柚 芒果 猕猴桃 草莓 桃子
    菠萝 水果
food | sulphites | sulphite* sulfite* wine* dried apricot* cider* raisin* | 亚硫酸 亞硫酸 葡萄酒 红酒 蜜饯 果脯
food | alcohol | alcohol* wine* beer* whisky vodka cocktail* drunk booze | 酒 醉
food | swallowing | swallow* dysphagia chok* puree* thickened | 吞咽 吞嚥 糊状 糊狀 汤圆 湯圓 年糕 噎 呛 嗆
food | diets | vegan* vegetarian* meat* steak* pork halal kosher | 吃素 素食 荤 肉 清真 忌口
food | | eat eats eating ate food* meal* lunch* dinner* supper* breakfast* cook* bake* baking recipe*
    restaurant* menu* dessert* snack* drink* buffet* catering takeaway* hungry picnic* bbq barbecue* brunch*
    tasty delicious smoothie* milkshake* tart* salad* soup* curry | 吃 喝 菜 饭 飯 餐 煮 炒 火锅 火鍋 烧烤 燒烤
    撸串 零食 点心 點心 外卖 外賣 下厨 食谱 请客 夜宵 奶茶 蛋糕 甜品 饮料 飲料 口味 水果
| latex | latex glove* balloon* condom* | 乳胶 乳膠 手套 气球 氣球
| insects | bee bees wasp* hornet* sting* hive* beekeep* | 蜂 蜇
| flashing lights | epilep* seizure* strobe* flash flashing flicker* | 癫痫 癲癇 闪光 閃光 频闪 頻閃 灯光秀
    燈光秀
| lifting | lift lifting heavy hernia* carry carrying | 搬 抬 重物 疝 扛
| cleaning agents | bleach ammonia descal* limescale chlorine* disinfect* | 漂白 洁厕 潔廁 消毒 除垢 次氯酸
| animals | cat cats kitten* dog dogs puppy pet pets dander horse* | 猫 貓 狗 宠物 寵物
| airborne | pollen hayfever mite mites dust* mould* mold* smoke* | 花粉 尘螨 塵蟎 粉尘 霉菌 烟味 柳絮
| fragrances | perfume* fragrance* lily lilies flower* bouquet* incense | 香水 百合 花束 鲜花 香薰
| live systems | prod production redis cache* | 生产 生產 线上 線上 缓存 緩存
| testing | test tests testing tested pytest unittest jest | 测试 測試 单测
| containers | docker podman kubernetes container* | 容器 镜像
| databases | database* sql sqlite postgres* mysql | 数据库 資料庫
| travel | travel* trip trips flight* hotel* train trains airport* | 旅行 旅游 出差 航班 机票 酒店 火车 高铁
    机场
| birthdays | birthday* gift* present presents | 生日 礼物 禮物
| money | budget* price* salary rent cost costs | 预算 預算 价格 工资 房租 花费
"""

_WORD = lazy_pattern(r"[a-z0-9]+")
_HAN_RUN = lazy_pattern(f"[{HAN}]+")
_SHORTEST, _LONGEST_WORD, _LONGEST_PART = 3, 20, 4


def subjects(text: str) -> frozenset[str]:
    """Return the subjects that a text names, among them the fields `MEDICINE` and `FOOD`."""
    folded = head(text)
    found: set[str] = set()
    for word in set(_WORD.findall(folded)):
        found |= _of_word(word[:_LONGEST_WORD])
    if not folded.isascii():
        parts = _table().parts
        for run in set(_HAN_RUN.findall(folded)):
            for size in range(1, _LONGEST_PART + 1):
                for at in range(len(run) - size + 1):
                    if run[at : at + size] in parts:
                        found |= parts[run[at : at + size]]
    return frozenset(found)


_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Table:
    """The subjects of each entry. `parts`: of Chinese words, at most four characters long."""

    words: Mapping[str, frozenset[str]]
    beginnings: Mapping[str, frozenset[str]]
    ends: Mapping[str, frozenset[str]]
    parts: Mapping[str, frozenset[str]]


@lru_cache(maxsize=1 << 14)
def _of_word(word: str) -> frozenset[str]:
    table = _table()
    found = table.words.get(word, _NONE)
    for size in range(_SHORTEST, len(word) + 1):
        found |= table.beginnings.get(word[:size], _NONE) | table.ends.get(word[-size:], _NONE)
    return found


@cache
def _table() -> _Table:
    words, beginnings, ends, parts = (defaultdict[str, set[str]](set) for _ in range(4))
    for row in re.sub(r"\n {4}", " ", _TABLE).strip("\n").splitlines():
        field, name, english, chinese = (cell.strip() for cell in row.split("|"))
        named = {field, name} - {""}
        for entry in english.split():
            kind = beginnings if entry.endswith("*") else ends if entry.startswith("*") else words
            kind[entry.strip("*")] |= named
        for entry in chinese.split():
            parts[entry] |= named
    return _Table(
        *({entry: frozenset(named) for entry, named in kind.items()} for kind in (words, beginnings, ends, parts))
    )
