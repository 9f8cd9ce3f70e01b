"""`roomlore memory evolve`: what was said since the last time, and what becomes of what is remembered."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.evolution.models import Rejected
from roomlore.core.evolution.result import EvolutionResult, Mode
from roomlore.core.memory.intake import scope_of
from roomlore.surfaces.cli import show, show_memories
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

_REJECTED = 120


def evolve(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(help="The group's id; or user:<id>, for facts of what a person said.")],
    days: Annotated[float, typer.Option(help="How far back a group's first evolution reads.")] = 1.0,
    mode: Annotated[
        Mode,
        typer.Option(
            help="`llm` asks a model once, `offline` goes by rules alone, `auto` is `llm` where a provider is set up."
        ),
    ] = "auto",
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Go on until no new message remains: one evolution reads at most the setting `evolve_messages`.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON; with `--all` a list.")] = False,
) -> None:
    """Read what was said in a group since the last time, and let what is remembered of it evolve."""
    done: list[EvolutionResult] = []
    out = show.console()

    async def work(lore: Lore) -> bool:
        while True:
            with _waiting(scope_of(group)):
                done.append(await lore.memories.evolve(group, days=days, mode=mode))
            if not as_json:
                _tell(done[-1], out, all_=all_)
            if done[-1].failed or not all_ or not done[-1].remaining:
                return done[-1].failed

    failed = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(done if all_ else done[0]))
    if failed:
        raise typer.Exit(1)


@contextmanager
def _waiting(scope: str) -> Iterator[None]:
    """Says on standard error what is going on, where somebody sits there."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True, highlight=False, markup=False).status(f"Reading what is new in {show.inert(scope, 60)}"):
        yield


def _tell(result: EvolutionResult, out: Console, *, all_: bool) -> None:
    if result.message:
        out.print(Text(show.inert(result.message), "yellow" if result.failed else ""))
    if result.messages:
        out.print(_head(result))
        show_memories.changes(result.changes, out)
        out.print(Text(_counts(result), "bold"))
    if result.rejected:
        out.print(Text("not followed:", "yellow"))
        for one in result.rejected:
            out.print(show_memories.indented(_rejected(one)))
    if result.remaining and not all_ and not result.failed:
        left = "1 new message remains" if result.remaining == 1 else f"{result.remaining} new messages remain"
        out.print(Text(f"{left}; --all reads on.", "dim"))


def _head(result: EvolutionResult) -> Text:
    read = f"{result.messages} message{'' if result.messages == 1 else 's'} read"
    by = show.inert(result.model, 60) or "rules alone"
    named = f"evolution {show_memories.short(result.evolution_id)}"
    return Text.assemble((named, "bold yellow"), f"  {show.inert(result.scope, 60)}  {read} by {by}")


def _counts(result: EvolutionResult) -> str:
    return ", ".join(f"{count} {what}" for what, count in plain(result.stats).items())


def _rejected(one: Rejected) -> Text:
    return Text.assemble(
        (f"line {one.line}: {show.inert(one.reason)}", ""), (f"\n{show.inert(one.text, _REJECTED)}", "dim")
    )
