"""The HTTP API of mem0's platform, so that `MemoryClient(host=...)` finds roomlore there. The verbs are those of
`roomlore_integrations.mem0`."""

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from roomlore.core.audience import check_viewer
from roomlore.core.errors import Forbidden, InvalidInput, NotFound
from roomlore.core.memory.writing import KEEP
from roomlore_integrations.mem0.verbs import JOINTS, OPERATORS, Item, Verbs
from roomlore_server.http import bodies
from roomlore_server.http.answers import reply
from roomlore_server.http.bodies import Bounds
from roomlore_server.http.guard import Caller, caller_of
from roomlore_server.http.paths import addressed
from roomlore_server.http.routers import Router

_OWNERS = ("user_id", "agent_id", "run_id")
_APP = "app_id"
"""An owner of mem0's platform that is kept as metadata here."""
_MAX_ALTERNATIVES = 20
_MAX_LISTED = 10_000
_PAGE_SIZE = 100
_NO_EFFECT = "timestamp"
_OTHER_CALLS = (
    "/v1/entities/",
    "/v2/entities/{kind}/{name}/",
    "/v1/batch/",
    "/v1/exports/",
    "/v1/exports/get/",
    "/v1/summary/",
    "/v1/feedback/",
    "/api/v1/{rest:path}",
)
"""Calls of mem0's client that are refused with a reason."""


class _Loose(BaseModel):
    """A body. Further fields, such as mem0's categories and instructions, have no effect."""

    model_config = ConfigDict(extra="allow", strict=True)


class _OfOwners(_Loose):
    filters: dict[str, Any] | None = None
    user_id: str | int | None = None
    agent_id: str | int | None = None
    run_id: str | int | None = None


class _Add(_OfOwners):
    messages: list[dict[str, Any]] | dict[str, Any] | str
    app_id: str | int | None = None
    metadata: dict[str, Any] | None = None
    infer: bool | None = None
    expiration_date: str | None = None
    timestamp: Any = None

    def owners(self) -> dict[str, Any]:
        """Return whom the messages belong to, named beside them or as filters."""
        inside = self.filters or {}
        given = {name: getattr(self, name) for name in (*_OWNERS, _APP)}
        return {name: value if value is not None else inside.get(name) for name, value in given.items()}


class _Filtered(_OfOwners):
    show_expired: bool | None = None

    def wanted(self) -> list[dict[str, Any]]:
        """Return the filters as the verbs take them, one for each alternative."""
        beside = {name: getattr(self, name) for name in _OWNERS if getattr(self, name) is not None}
        return alternatives(unnested({**(self.filters or {}), **beside}))


class _Search(_Filtered):
    query: str
    top_k: int | None = Field(None, ge=1, le=1000)
    threshold: float | None = None
    rerank: bool | None = None


class _Update(_Loose):
    text: str | None = None
    metadata: dict[str, Any] | None = None
    expiration_date: str | None = None
    timestamp: Any = None


def unnested(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return filters that name fields of the metadata as the verbs do, `{"seat": 3}`, where mem0's platform also takes
    `{"metadata": {"seat": 3}}`. Raise `InvalidInput` for a field that is named beside it, too, or that is an owner."""
    plain: dict[str, Any] = {}
    for name, wanted in filters.items():
        if name in JOINTS and _are_filters(wanted):
            plain[name] = [unnested(owner) for owner in wanted]
        elif name == "metadata" and isinstance(wanted, Mapping) and not wanted.keys() & OPERATORS:
            clash = next((owner for owner in wanted if owner in filters or owner in _OWNERS), None)
            if clash is not None:
                raise InvalidInput("filter_name_twice", name=f"{clash!r:.40}")
            plain |= wanted
        else:
            plain[name] = wanted
    return plain


def alternatives(filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return filters with owners at their top, one for each way in which their owners can be met.

    mem0's platform takes owners inside AND and OR, and several under `in`; the verbs take one set of them. Raise
    `InvalidInput` for too many.
    """
    plain, several = _split(filters)
    distinct: list[dict[str, Any]] = []
    for number, chosen in enumerate(product(*several)):
        if number == _MAX_ALTERNATIVES:
            raise InvalidInput("filter_owners_too_many", most=_MAX_ALTERNATIVES)
        joined = dict(plain)
        for choice in chosen:
            joined = _joined(joined, choice)
        if joined not in distinct:
            distinct.append(joined)
    return distinct


def _split(filters: Mapping[str, Any]) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    """Return the conditions as they are, and choices of which one each must hold."""
    plain: dict[str, Any] = {}
    several: list[list[dict[str, Any]]] = []
    for name, wanted in filters.items():
        if name == "AND" and _are_filters(wanted):
            several += [alternatives(clause) for clause in wanted]
        elif name == "OR" and _are_filters(wanted) and any(_names_owners(clause) for clause in wanted):
            several.append([alternative for clause in wanted for alternative in alternatives(clause)])
        elif name in _OWNERS and isinstance(wanted, Mapping) and isinstance(wanted.get("in"), list):
            several.append([{name: wanted_value} for wanted_value in wanted["in"]])
        elif name in _OWNERS and isinstance(wanted, Mapping) and "eq" in wanted:
            plain[name] = wanted["eq"]
        elif name not in _OWNERS or wanted not in (None, "*"):
            plain[name] = wanted
    return plain, several


def _are_filters(wanted: Any) -> bool:
    return isinstance(wanted, list) and bool(wanted) and all(isinstance(part, Mapping) for part in wanted)


def _names_owners(filters: Mapping[str, Any]) -> bool:
    parts = [part for name in ("AND", "OR") if _are_filters(filters.get(name)) for part in filters[name]]
    return any(name in filters for name in _OWNERS) or any(map(_names_owners, parts))


def _joined(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return both conditions. What both name stays apart, under AND."""
    clash = {name: other[name] for name in other if name in first and first[name] != other[name]}
    if any(name in _OWNERS for name in clash):
        raise InvalidInput("filter_values_clash", name=f"{next(iter(clash))!r:.40}")
    joined = {**first, **{name: value for name, value in other.items() if name not in clash}}
    if clash:
        joined["AND"] = [*joined.get("AND", []), clash] if isinstance(joined.get("AND", []), list) else [clash]
    return joined


mem0_api = Router(tags=["mem0"], include_in_schema=False, strict=False)  # mem0 describes it


def _verbs(caller: Caller, request: Request, scope: str, owners: Mapping[str, Any] | None = None) -> Verbs:
    """Return the verbs as the viewer may use them: whom a header names, else the user whose memories are asked for.
    Raise `Forbidden` if the key needs a viewer and there is none."""
    lore = caller.need(scope)
    given = request.headers.get("x-roomlore-viewer")
    if given is not None:
        return Verbs(lore, str(check_viewer(unquote(given))))
    if "admin" in caller.scopes:
        return Verbs(lore)
    user = (owners or {}).get("user_id")
    if not isinstance(user, str | int):
        raise Forbidden("mem0_viewer_missing")
    return Verbs(lore, str(check_viewer(f"user:{user}")))


From = Annotated[Caller, Depends(caller_of)]
Id = Annotated[str, Depends(addressed("memory_id", "The memory's id"))]


@mem0_api.get("/v1/ping/", status_code=200)
async def mem0_ping(caller: From) -> Response:
    """Tell a client that its key is known."""
    lore = caller.need("read")
    return reply({"status": "ok", "org_id": lore.tenant, "project_id": lore.tenant, "user_email": None})


@mem0_api.post("/v3/memories/add/", status_code=200)
async def mem0_add_memories(
    request: Request, caller: From, body: Annotated[_Add, Depends(bodies.body_of(_Add, within=Bounds.bulk))]
) -> Response:
    """Remember messages, and return what changed."""
    _check_time(body.timestamp)
    owners = body.owners()
    metadata = {**(body.metadata or {}), **({_APP: owners[_APP]} if owners[_APP] is not None else {})}
    verbs = _verbs(caller, request, "write", owners)
    done = await verbs.add(
        body.messages,
        **{name: owners[name] for name in _OWNERS},
        metadata=metadata or None,
        infer=body.infer is not False,
        expiration_date=body.expiration_date,
    )
    return reply({"status": "SUCCEEDED", "message": "The memories were added.", **done})


@mem0_api.post("/v3/memories/search/", status_code=200)
async def mem0_search_memories(
    request: Request, caller: From, body: Annotated[_Search, Depends(bodies.body_of(_Search))]
) -> Response:
    """Return the memories that answer a question, best first."""
    most = body.top_k or 10
    items: dict[str, Item] = {}
    for wanted in body.wanted():
        verbs = _verbs(caller, request, "read", wanted)
        done = await verbs.search(
            body.query,
            filters=wanted,
            top_k=most,
            threshold=body.threshold,
            show_expired=bool(body.show_expired),
        )
        items |= {item["id"]: item for item in done["results"]}
    best = sorted(items.values(), key=lambda item: -item["score"])
    return reply({"results": [_shown(item) for item in best[:most]]})


@mem0_api.post("/v3/memories/", status_code=200)
async def mem0_list_memories(
    request: Request,
    caller: From,
    body: Annotated[_Filtered, Depends(bodies.body_of(_Filtered))],
    page: Annotated[int, Query(ge=1, le=_MAX_LISTED)] = 1,
    page_size: Annotated[int, Query(ge=1, le=1000)] = _PAGE_SIZE,
) -> Response:
    """Return a page of memories, the last changed first."""
    by_id: dict[str, Item] = {}
    for wanted in body.wanted():
        verbs = _verbs(caller, request, "read", wanted)
        done = await verbs.get_all(filters=wanted, top_k=_MAX_LISTED, show_expired=bool(body.show_expired))
        by_id |= {item["id"]: item for item in done["results"]}
    items = sorted(by_id.values(), key=lambda item: str(item["updated_at"]), reverse=True)
    begin = (page - 1) * page_size

    def at(number: int) -> str:
        return str(request.url.include_query_params(page=number, page_size=page_size))

    return reply(
        {
            "count": len(items),
            "next": at(page + 1) if begin + page_size < len(items) else None,
            "previous": at(page - 1) if page > 1 else None,
            "results": [_shown(item) for item in items[begin : begin + page_size]],
        }
    )


@mem0_api.delete("/v1/memories/", status_code=200)
async def mem0_delete_memories(
    request: Request,
    caller: From,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
) -> Response:
    """Delete every memory of these owners."""
    owners = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    verbs = _verbs(caller, request, "write", owners)
    return reply(await verbs.delete_all(**owners))


@mem0_api.get("/v1/memories/{memory_id:id}/", status_code=200)
async def mem0_get_memory(request: Request, caller: From, memory_id: Id) -> Response:
    """Return a memory."""
    return reply(await _item_of(_verbs(caller, request, "read"), memory_id))


@mem0_api.put("/v1/memories/{memory_id:id}/", status_code=200)
async def mem0_update_memory(
    request: Request, caller: From, memory_id: Id, body: Annotated[_Update, Depends(bodies.body_of(_Update))]
) -> Response:
    """Change a memory and return it."""
    _check_time(body.timestamp)
    verbs = _verbs(caller, request, "write")
    until = body.expiration_date if "expiration_date" in body.model_fields_set else KEEP
    await verbs.update(memory_id, text=body.text, metadata=body.metadata, expiration_date=until)
    return reply(await _item_of(verbs, memory_id))


@mem0_api.delete("/v1/memories/{memory_id:id}/", status_code=200)
async def mem0_delete_memory(request: Request, caller: From, memory_id: Id) -> Response:
    """Delete a memory; its history stays."""
    return reply(await _verbs(caller, request, "write").delete(memory_id))


@mem0_api.get("/v1/memories/{memory_id:id}/history/", status_code=200)
async def mem0_memory_history(request: Request, caller: From, memory_id: Id) -> Response:
    """Return the changes of a memory, the first one first."""
    return reply(await _verbs(caller, request, "read").history(memory_id))


async def _item_of(verbs: Verbs, memory_id: str) -> Item:
    item = await verbs.get(memory_id)
    if item is None:
        raise NotFound("memory_unknown_or_deleted", memory=f"{memory_id!r:.80}")
    return _shown(item)


def _shown(item: Item) -> Item:
    """Return a memory with every owner of mem0's platform, null where it has none."""
    owners = {name: item.get(name) for name in _OWNERS}
    return {**item, **owners, _APP: (item.get("metadata") or {}).get(_APP), "categories": None}


def _check_time(given: Any) -> None:
    if given is not None:
        raise InvalidInput("mem0_time_not_taken", name=_NO_EFFECT)


async def mem0_other_call(caller: From) -> Response:
    """Refuse what mem0's platform offers beside memories."""
    caller.need("read")
    raise NotFound("mem0_path_unserved")


for _path in _OTHER_CALLS:
    mem0_api.add_api_route(_path, mem0_other_call, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
