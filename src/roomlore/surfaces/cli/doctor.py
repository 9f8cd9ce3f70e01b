"""`roomlore doctor`: what is configured, reachable, missing or slow."""

import asyncio
from typing import Annotated, Literal

import typer

from roomlore.core.health import Finding, worst
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.wiring import diagnose


def doctor(
    ctx: typer.Context,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Ask every model that can be asked for a word too; providers may charge for it."),
    ] = False,
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="Compare indexes with tables too, where every page is read; takes longer."),
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, max=600, help="Seconds that each look may take.")] = 10.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: `verdict`, the worst there is, and `findings`.")
    ] = False,
) -> None:
    """Look at everything the settings name, and say what to do; 1 if something is broken."""
    how: Literal["quick", "thorough"] = "thorough" if thorough else "quick"
    found = asyncio.run(diagnose(frame_of(ctx).settings(), ask=ask, integrity=how, timeout_seconds=timeout))
    verdict = worst(found)
    if as_json:
        show.as_json({"verdict": verdict, "findings": [_told(one) for one in found]})
    else:
        shape = show.table("", "part", "ms", "what was found", "what to do", right=("ms",), fixed=("", "part"))
        show.console().print(show.rows(shape, map(_line, found)))
    if verdict == "fail":
        raise typer.Exit(1)


def _told(finding: Finding) -> dict[str, object]:
    told = {"told": finding.told, "advice": finding.advice, "ms": finding.ms}
    return {"part": finding.part, "verdict": finding.verdict, **told}


def _line(finding: Finding) -> list[str]:
    ms = "–" if finding.ms is None else f"{finding.ms:.0f}"
    return [finding.verdict, show.inert(finding.part), ms, show.inert(finding.told), show.inert(finding.advice)]
