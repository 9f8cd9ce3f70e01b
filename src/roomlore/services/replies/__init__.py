"""The reply loop: `lore.replies`."""

from roomlore.services.replies.deferred import DeferredMessages
from roomlore.services.replies.reply_service import ReplyService
from roomlore.services.replies.request import BackgroundTasks, CallTool, ReplyArguments, ReplyOptions, ReplyParts

__all__ = [
    "BackgroundTasks",
    "CallTool",
    "DeferredMessages",
    "ReplyArguments",
    "ReplyOptions",
    "ReplyParts",
    "ReplyService",
]
