"""The verb recall: the facts that matter for a conversation."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from roomlore.core.recall.recollection import MAX_SCOPES, RECALLED, Recollection, Similarity
from roomlore.verbs.facts import KINDS
from roomlore.verbs.table import Argument, Choice, Flag, Id, Many, Number, Object, Reference, Verb, Whole

if TYPE_CHECKING:
    from roomlore.wiring import Lore

_MAX_TOKENS = 10_000_000
_MAX_TURNS = 10_000
_MAX_MESSAGES = 5_000  # more would exceed the limit of values in a body
_MAX_KINDS = 100
_MAX_SHOWN = 20_000


async def _recall(
    lore: "Lore", viewer: str | None, *, scopes: Sequence[str], messages: Sequence[Mapping[str, Any]], **options: Any
) -> Recollection:
    return await lore.recall.build(scopes, messages, viewer=viewer, **options)


RECALL = Verb(
    "recall",
    "Return the facts and group memories that matter for a conversation, ranked, and the block of text that holds them "
    "within a token budget. Options that are left out have the values of the settings.",
    "返回与一段对话有关的事实和群记忆（已排序），以及在 token 限额内包含它们的一段文本。不给的选项取设置中的值。",
    scope="read",
    arguments=(
        Argument(
            "scopes",
            Many(Reference.SCOPE, MAX_SCOPES),
            "Whom the facts are about: user:<id>, agent:<id> or group:<id or name>.",
            "事实关于谁：user:<id>、agent:<id> 或 group:<id 或名称>。",
        ),
        Argument(
            "messages",
            Many(Object(), _MAX_MESSAGES),
            "The conversation, the newest last, in OpenAI's form.",
            "对话，最新的在后，用 OpenAI 的格式。",
            (),
        ),
        Argument(
            "max_tokens", Whole(0, _MAX_TOKENS), "Maximum number of tokens of the block.", "文本最多多少 token。", None
        ),
        Argument(
            "max_context_turns",
            Whole(0, _MAX_TURNS),
            "How many of the last turns the facts are recalled for.",
            "根据最近多少轮对话查找事实。",
            None,
        ),
        Argument("similarity_weight", Number(0, 1), "How much similarity counts.", "相似度的权重。", None),
        Argument("confidence_weight", Number(0, 1), "How much confidence counts.", "置信度的权重。", None),
        Argument("similarity", Choice(get_args(Similarity)), "How similarity is measured.", "相似度的计算方法。", None),
        Argument("kinds", Many(KINDS, _MAX_KINDS), "Which memories.", "哪些种类的记忆。", RECALLED),
        Argument(
            "conversation_id",
            Id(),
            "What was shown in it stays as long as relevance has not clearly changed.",
            "在这个对话里给过的内容，相关性没有明显变化时保持不变。",
            None,
        ),
        Argument(
            "previous",
            Many(Id(blank=True), _MAX_SHOWN),
            "The ids of the facts shown before, if you keep them.",
            "之前给过的事实的 id，如果你自己保存了的话。",
            None,
        ),
        Argument(
            "include_ended",
            Flag(),
            "Also what is no longer valid, for conversations about the past.",
            "包括已不成立的，用于谈论过去的对话。",
            False,
        ),
    ),
    run=_recall,
    answer=Recollection,
    route="POST /recall",
    tool="memory_prompt",
)
VERBS = (RECALL,)
