"""roomlore: the memory layer for chat and group-chat agents.

    async with roomlore.open("sqlite:///chat.db") as lore:
        await lore.messages.add(roomlore.Message(id="1", room_id="tea", sender_id="ann", text="Green or black?"))
        context = await lore.context.build("tea", "1")
        answer = await lore.messages.search("tea", "what was there to drink?")

`open_sync` gives the same without async. `connect` and `connect_sync` open it without a block; `lore.close()` ends it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roomlore.core.analysis import MessageAnalyzer
from roomlore.core.audience import EvidenceRoom, Member, PastKind, RoomKind, RoomPeople
from roomlore.core.chat import FinishReason, ToolCall, Usage
from roomlore.core.context import Context
from roomlore.core.errors import (
    BadModelOutput,
    BudgetTooSmall,
    CacheUnavailable,
    Conflict,
    Forbidden,
    InvalidInput,
    ModelUnavailable,
    NotFound,
    QuotaExceeded,
    RoomloreError,
    StorageUnavailable,
    TimedOut,
    Unavailable,
    VectorsUnavailable,
)
from roomlore.core.memory.memory import Change, Memory, MemoryAnswer, MemoryHit, MemoryKind, MemoryStatus, Source
from roomlore.core.memory.writing import FactImport, MemoryChanges, MemoryFields, NewMemory, Remembered
from roomlore.core.models import (
    AddReport,
    ApiKey,
    Candidate,
    ContextUsageRecord,
    Correction,
    CorrectionKind,
    Entry,
    Link,
    LinkKind,
    Message,
    MessageFeatures,
    MessageType,
    ReplyInfo,
    Role,
    Room,
    Signals,
    StoredMessage,
    Thread,
)
from roomlore.core.privacy import ForgetReport, Left
from roomlore.core.recall.recollection import ConversationMessage, RecallArguments, Recalled, Recollection, with_memory
from roomlore.core.replies.reply import (
    Reply,
    ReplyEvent,
    ReplyStarted,
    ReplyText,
    Tool,
    ToolDone,
    ToolResult,
    ToolsWanted,
)
from roomlore.core.search.hits import EmbeddingModel, SearchAnswer, SearchHit
from roomlore.core.sessions.session import Checkpoint, Session, SessionContext, SessionMode, SessionValue, TurnResult

if TYPE_CHECKING:
    from roomlore.services.indexing import IndexProgress, IndexStatus
    from roomlore.services.jobs import Job
    from roomlore.services.replies import CallTool, ReplyArguments
    from roomlore.settings import Settings
    from roomlore.sync import SyncLore, connect_sync, open_sync
    from roomlore.wiring import Lore, OwnBackends
    from roomlore.wiring import connect_lore as connect
    from roomlore.wiring import open_lore as open  # noqa: A004 - `roomlore.open` reads as it should

__all__ = [
    "AddReport",
    "ApiKey",
    "BadModelOutput",
    "BudgetTooSmall",
    "CacheUnavailable",
    "CallTool",
    "Candidate",
    "Change",
    "Checkpoint",
    "Conflict",
    "Context",
    "ContextUsageRecord",
    "ConversationMessage",
    "Correction",
    "CorrectionKind",
    "EmbeddingModel",
    "Entry",
    "EvidenceRoom",
    "FactImport",
    "FinishReason",
    "Forbidden",
    "ForgetReport",
    "IndexProgress",
    "IndexStatus",
    "InvalidInput",
    "Job",
    "Left",
    "Link",
    "LinkKind",
    "Lore",
    "Member",
    "Memory",
    "MemoryAnswer",
    "MemoryChanges",
    "MemoryFields",
    "MemoryHit",
    "MemoryKind",
    "MemoryStatus",
    "Message",
    "MessageAnalyzer",
    "MessageFeatures",
    "MessageType",
    "ModelUnavailable",
    "NewMemory",
    "NotFound",
    "OwnBackends",
    "PastKind",
    "QuotaExceeded",
    "RecallArguments",
    "Recalled",
    "Recollection",
    "Remembered",
    "Reply",
    "ReplyArguments",
    "ReplyEvent",
    "ReplyInfo",
    "ReplyStarted",
    "ReplyText",
    "Role",
    "Room",
    "RoomKind",
    "RoomPeople",
    "RoomloreError",
    "SearchAnswer",
    "SearchHit",
    "Session",
    "SessionContext",
    "SessionMode",
    "SessionValue",
    "Settings",
    "Signals",
    "Source",
    "StorageUnavailable",
    "StoredMessage",
    "SyncLore",
    "Thread",
    "TimedOut",
    "Tool",
    "ToolCall",
    "ToolDone",
    "ToolResult",
    "ToolsWanted",
    "TurnResult",
    "Unavailable",
    "Usage",
    "VectorsUnavailable",
    "connect",
    "connect_sync",
    "open",
    "open_sync",
    "with_memory",
]

_FIRST_USED = {
    "CallTool": "services.replies:CallTool",
    "IndexProgress": "services.indexing:IndexProgress",
    "IndexStatus": "services.indexing:IndexStatus",
    "Job": "services.jobs:Job",
    "Lore": "wiring:Lore",
    "OwnBackends": "wiring:OwnBackends",
    "ReplyArguments": "services.replies:ReplyArguments",
    "Settings": "settings:Settings",
    "SyncLore": "sync:SyncLore",
    "connect": "wiring:connect_lore",
    "connect_sync": "sync:connect_sync",
    "open": "wiring:open_lore",
    "open_sync": "sync:open_sync",
}
"""Names that are imported when they are first used: with them come the services, the database and the settings."""


def __getattr__(name: str) -> Any:
    if name not in _FIRST_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, there = _FIRST_USED[name].partition(":")
    found = getattr(import_module(f"{__name__}.{module}"), there)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
