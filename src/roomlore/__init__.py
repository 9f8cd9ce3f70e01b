"""roomlore: the memory layer for chat and group-chat agents.

    async with roomlore.open("sqlite:///chat.db") as lore:
        await lore.messages.add(roomlore.Message(id="1", room_id="tea", sender_id="ann", text="Green or black?"))
        context = await lore.context.build("tea", "1")
        answer = await lore.messages.search("tea", "what was there to drink?")

`open_sync` gives the same without async. `connect` and `connect_sync` open it without a block; `lore.close()` ends it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roomlore.core.analysis import MessageAnalyzer
    from roomlore.core.audience import EvidenceRoom, Member, PastKind, RoomKind, RoomPeople
    from roomlore.core.chat import FinishReason, ToolCall, Usage
    from roomlore.core.context import Context
    from roomlore.core.deletion import RoomReport
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
    from roomlore.core.memory.versions import FactImport, Remembered
    from roomlore.core.memory.writing import MemoryChanges, MemoryFields, NewMemory
    from roomlore.core.models import (
        AddReport,
        ApiKey,
        Candidate,
        ContextUsageRecord,
        CorrectedEntry,
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
    from roomlore.core.recall.recollection import (
        ConversationMessage,
        RecallArguments,
        Recalled,
        Recollection,
        with_memory,
    )
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
    from roomlore.core.sessions.session import (
        Checkpoint,
        Session,
        SessionContext,
        SessionMode,
        SessionValue,
        SessionWindow,
        TurnResult,
    )
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
    "CorrectedEntry",
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
    "RoomReport",
    "RoomloreError",
    "SearchAnswer",
    "SearchHit",
    "Session",
    "SessionContext",
    "SessionMode",
    "SessionValue",
    "SessionWindow",
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

_MODULES = {
    "core.analysis": "MessageAnalyzer",
    "core.audience": "EvidenceRoom Member PastKind RoomKind RoomPeople",
    "core.chat": "FinishReason ToolCall Usage",
    "core.context": "Context",
    "core.errors": (
        "BadModelOutput BudgetTooSmall CacheUnavailable Conflict Forbidden InvalidInput ModelUnavailable "
        "NotFound QuotaExceeded RoomloreError StorageUnavailable TimedOut Unavailable VectorsUnavailable "
    ),
    "core.memory.memory": "Change Memory MemoryAnswer MemoryHit MemoryKind MemoryStatus Source",
    "core.memory.versions": "FactImport Remembered",
    "core.memory.writing": "MemoryChanges MemoryFields NewMemory",
    "core.models": (
        "AddReport ApiKey Candidate ContextUsageRecord CorrectedEntry Correction CorrectionKind Entry Link LinkKind "
        "Message MessageFeatures MessageType ReplyInfo Role Room Signals StoredMessage Thread "
    ),
    "core.deletion": "RoomReport",
    "core.privacy": "ForgetReport Left",
    "core.recall.recollection": "ConversationMessage RecallArguments Recalled Recollection with_memory",
    "core.replies.reply": "Reply ReplyEvent ReplyStarted ReplyText Tool ToolDone ToolResult ToolsWanted",
    "core.search.hits": "EmbeddingModel SearchAnswer SearchHit",
    "core.sessions.session": "Checkpoint Session SessionContext SessionMode SessionValue SessionWindow TurnResult",
    "services.indexing": "IndexProgress IndexStatus",
    "services.jobs": "Job",
    "services.replies": "CallTool ReplyArguments",
    "settings": "Settings",
    "sync": "SyncLore connect_sync open_sync",
    "wiring": "Lore OwnBackends",
}
"""The module of each name but `open` and `connect`. It is imported when the name is first used, so that a program
that needs a few values loads no more than these."""

_PLACES = {name: (module, name) for module, names in _MODULES.items() for name in names.split()} | {
    "connect": ("wiring", "connect_lore"),
    "open": ("wiring", "open_lore"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _PLACES[name]
    attribute = getattr(import_module(f"{__name__}.{module}"), there)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
