"""The provider for Hermes inside hermes-agent: its loader, its manager, its base class. Run by hand.

python -m venv .hermes && .hermes/bin/pip install hermes-agent==0.19.0 -e . -e packages/roomlore-importers
.hermes/bin/python tests/bots/hermes_walk.py
"""

import inspect
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(tempfile.mkdtemp(prefix="hermes-walk-"))
os.environ["HERMES_HOME"] = str(HOME)
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != ROOT]
shutil.copytree(ROOT / "plugins" / "hermes" / "roomlore", HOME / "plugins" / "roomlore")

from agent.memory_manager import MemoryManager  # noqa: E402 - after the home is known
from agent.memory_provider import MemoryProvider  # noqa: E402
from plugins.memory import discover_memory_providers, load_memory_provider  # noqa: E402

SECRET = "My birthday is October 13, 1993"


def agent(session_id: str, **told: str) -> MemoryManager:
    """Make a manager as `agent_init` does."""
    manager = MemoryManager()
    provider = load_memory_provider("roomlore")
    assert isinstance(provider, MemoryProvider)
    assert provider.is_available()
    manager.add_provider(provider)
    manager.initialize_all(
        session_id=session_id,
        platform="telegram",
        hermes_home=str(HOME),
        agent_context="primary",
        agent_identity="default",
        agent_workspace="hermes",
        **told,
    )
    return manager


def turn(manager: MemoryManager, text: str, answer: str, session_id: str) -> str:
    """Go through a turn as `run_conversation` does."""
    manager.on_turn_start(1, text)
    shown = manager.prefetch_all(text)
    manager.sync_all(text, answer, session_id=session_id, messages=[{"role": "user", "content": text}])
    manager.queue_prefetch_all(text, session_id=session_id)
    assert manager.flush_pending(timeout=20) is not False
    return shown


def main() -> None:
    """Walk, and raise if something is not as it should be. Prints nothing if all is well."""
    assert ("roomlore", True) in [(name, available) for name, _, available in discover_memory_providers()]
    alone = {"user_id": "11", "user_name": "Ann", "chat_id": "11", "chat_type": "dm"}
    group = {"chat_id": "-7", "chat_type": "group"}
    turn(agent("s1", **alone), SECRET, "Noted.", "s1")
    asked = "When is my birthday, October?"
    shown = turn(agent("s2", user_id="11", user_name="Ann", **group), asked, "I do not know.", "s2")
    assert "13, 1993" not in shown, shown
    assert "1993" in turn(agent("s3", **alone), asked, "On October 13.", "s3")
    turn(agent("s4", user_id="12", user_name="小明", **group), "周六八点南门集合", "好。", "s4")
    shown = turn(agent("s5", user_id="13", user_name="小明", **group), "周六几点集合？", "八点。", "s5")
    assert "周六八点南门集合" in shown, shown
    assert "user:telegram:13" in shown, shown

    manager = agent("s6", user_id="12", user_name="小明", **group)
    assert {"roomlore_search", "roomlore_forget"} <= manager.get_all_tool_names()
    found = json.loads(manager.handle_tool_call("roomlore_search", {"query": "birthday"}))
    assert "13, 1993" not in json.dumps(found), found
    manager.on_session_switch("s7", parent_session_id="s6")
    manager.shutdown_all()

    assert MemoryProvider.__abstractmethods__ == {"name", "is_available", "initialize", "get_tool_schemas"}
    provider = type(load_memory_provider("roomlore"))
    for name, method in inspect.getmembers(MemoryProvider, inspect.isfunction):
        ours = inspect.signature(getattr(provider, name)).parameters
        named = [one for one in inspect.signature(method).parameters.values() if one.kind is not one.VAR_KEYWORD]
        takes_any = any(one.kind is one.VAR_KEYWORD for one in ours.values())
        assert takes_any or {one.name for one in named} <= set(ours), f"{name} has other parameters"


if __name__ == "__main__":
    main()
