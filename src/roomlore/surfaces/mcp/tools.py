"""The tools, in the order in which a host lists them."""

from roomlore.surfaces.mcp import answers, arguments
from roomlore.surfaces.mcp.looking import context, history, listed, one, prompt, searched
from roomlore.surfaces.mcp.tool import Tool
from roomlore.surfaces.mcp.writing import add, delete, update

_IDS = "search_memories and get_memories give the ids of memories."

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="add_memory",
        title="Remember something",
        about="Remember one statement about a user, an agent or a group for later conversations. What is remembered "
        "already in the same words is not added again.",
        takes=arguments.AddMemory,
        gives=answers.AddedMemory,
        run=add,
        writes=True,
    ),
    Tool(
        name="search_memories",
        title="Search memories",
        about="Find what is remembered about a user, an agent or a group that says something about a question, best "
        "first.",
        takes=arguments.SearchMemories,
        gives=answers.FoundMemories,
        run=searched,
    ),
    Tool(
        name="get_memories",
        title="List memories",
        about="List what is remembered about a user, an agent or a group, the last changed first, page by page.",
        takes=arguments.GetMemories,
        gives=answers.MemoryPage,
        run=listed,
    ),
    Tool(
        name="get_memory",
        title="Read a memory",
        about="Read one memory as it is now, in full, with the messages that support it.",
        takes=arguments.GetMemory,
        gives=answers.OneMemory,
        run=one,
        if_lost=_IDS,
    ),
    Tool(
        name="update_memory",
        title="Change a memory",
        about="Change what a memory says. It becomes a new version with a new id; the one before stays in the history.",
        takes=arguments.UpdateMemory,
        gives=answers.OneMemory,
        run=update,
        writes=True,
        replaces=True,
        if_lost=_IDS,
    ),
    Tool(
        name="delete_memory",
        title="Delete a memory",
        about="Take a memory out of force: it is not found or recalled any more, but stays in the history.",
        takes=arguments.DeleteMemory,
        gives=answers.OneMemory,
        run=delete,
        writes=True,
        replaces=True,
        if_lost=_IDS,
    ),
    Tool(
        name="memory_history",
        title="History of a memory",
        about="Every version of a memory, the first one first: what it said, who made it, and why.",
        takes=arguments.MemoryHistory,
        gives=answers.Versions,
        run=history,
        if_lost=_IDS,
    ),
    Tool(
        name="memory_prompt",
        title="Memories for a prompt",
        about="One block of the memories that matter for what is being talked about, within max_tokens, to put into a "
        "prompt.",
        takes=arguments.MemoryPrompt,
        gives=answers.PromptBlock,
        run=prompt,
    ),
    Tool(
        name="room_context",
        title="Context of a message",
        about="The earlier messages of a room that matter for answering a message, each with its score and the reason "
        "it was taken. Leaves out what seems to belong to other conversations in the room.",
        takes=arguments.RoomContext,
        gives=answers.RoomMessages,
        run=context,
        if_lost="Ask the user which room and message are meant.",
    ),
)
