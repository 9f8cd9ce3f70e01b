"""The prompts that ship with roomlore."""

from functools import lru_cache
from importlib.resources import files

from roomlore.core.errors import NotFound
from roomlore.core.prompt import Prompt
from roomlore.ports.language import Language


class PackagedPrompts:
    """The port `Prompts` over the files of `roomlore.prompts`."""

    async def find(self, name: str, *, language: Language) -> Prompt:
        return _read(name, language)


@lru_cache(maxsize=64)
def _read(name: str, language: Language) -> Prompt:
    file = files("roomlore.prompts") / f"{name}.{language}.md"
    if not name.isidentifier() or not file.is_file():
        raise NotFound("prompt_unknown", name=repr(name), language=repr(language))
    return Prompt(name, file.read_text(encoding="utf-8"))
