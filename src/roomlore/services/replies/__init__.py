"""The reply loop: `lore.replies`."""

from roomlore.services.replies.background import Background
from roomlore.services.replies.needs import CallTool, ReplyOptions, ReplyParts
from roomlore.services.replies.service import ReplyService

__all__ = ["Background", "CallTool", "ReplyOptions", "ReplyParts", "ReplyService"]
