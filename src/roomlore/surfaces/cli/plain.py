"""`roomlore remember`, `ask` and `reply`: the plain verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from roomlore.surfaces.cli import facts, searching, show
from roomlore.surfaces.cli.derived import Call, command
from roomlore.surfaces.cli.language import translated
from roomlore.surfaces.people_named import answer_with_people_named
from roomlore.verbs import plain as verbs

if TYPE_CHECKING:
    from roomlore.core.replies.reply import Reply
    from roomlore.core.search.hits import SearchAnswer
    from roomlore.wiring import Lore


async def _show_answer(lore: Lore, answer: SearchAnswer, call: Call) -> None:
    out, zone = show.console(), lore.settings.search.zone
    if not answer.hits:
        out.print(show.inert(translated(answer.hint or ""), 1_000))
    searching.found_in_lines(await answer_with_people_named(lore, answer), out, zone)


async def _replied(_: Lore, reply: Reply, __: Call) -> None:
    typer.echo(show.inert_piece(reply.text))


ask = command(verbs.ASK, _show_answer)
_NAMES = {"statement": "text", "memory_id": "id"}
remember = command(verbs.REMEMBER, facts.added, after=facts.unknown, names=_NAMES, spread=("statement",), creates=True)
_NAMES_OF_REPLY = {"sender_id": "sender", "message_id": "id"}
reply = command(verbs.REPLY, _replied, names=_NAMES_OF_REPLY, spread=("text",), creates=True)
