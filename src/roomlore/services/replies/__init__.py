"""The reply loop: `lore.replies`."""

from roomlore.services.replies.later import Later
from roomlore.services.replies.reply_service import ReplyService
from roomlore.services.replies.request import Background, CallTool, ReplyArguments, ReplyOptions, ReplyParts

__all__ = ["Background", "CallTool", "Later", "ReplyArguments", "ReplyOptions", "ReplyParts", "ReplyService"]
