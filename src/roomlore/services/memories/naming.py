"""Finding the one id of which somebody knows a part."""

from typing import Literal, get_args

from roomlore.core.errors import InvalidInput, NotFound
from roomlore.ports.storage import UnitOfWork

Named = Literal["memory", "evolution"]
_SHORTEST = 4
_SHOWN = 5


async def the_only(work: UnitOfWork, *, tenant: str, part: str, what: Named) -> str:
    """The id that is `part`, or the only one that begins or ends with it, which takes four characters.

    Raises `NotFound`, and `InvalidInput` where there are several."""
    if what not in get_args(Named):
        raise InvalidInput(f"what is {what!r:.60}; it is one of {', '.join(get_args(Named))}.")
    if not isinstance(part, str) or not part:
        raise InvalidInput(f"The id is {part!r:.60}; give the id of a {what}, or its beginning or end.")
    if await _is_there(work, tenant, part, what):
        return part
    found = await _like(work, tenant, part, what) if len(part) >= _SHORTEST else []
    if not found:
        raise NotFound(f"There is no {what} {part!r:.80}.")
    if len(found) > 1:
        named = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise InvalidInput(f"Several ids begin or end with {part!r:.80}: {named}. Give more of the one you mean.")
    return found[0]


async def _is_there(work: UnitOfWork, tenant: str, known: str, what: Named) -> bool:
    if what == "memory":
        return bool(await work.memories.by_id(tenant=tenant, memory_ids=[known]))
    return bool(await work.evolutions.by_id(tenant=tenant, evolution_ids=[known]))


async def _like(work: UnitOfWork, tenant: str, part: str, what: Named) -> list[str]:
    port = work.memories if what == "memory" else work.evolutions
    return await port.ids_like(tenant=tenant, part=part, limit=_SHOWN + 1)
