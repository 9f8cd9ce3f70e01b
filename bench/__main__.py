"""`python -m bench NAME ...`"""

import argparse
import asyncio
from collections.abc import Sequence

from bench import (
    as_of,
    at_once,
    audience,
    audience_cost,
    console_pages,
    console_screen,
    context_speed,
    crash,
    digest,
    evolve_speed,
    fairness,
    growth,
    hostile,
    house,
    http_load,
    many_processes,
    many_rooms,
    meaning,
    memory_scores,
    memory_search,
    month,
    move,
    own_rooms,
    passes,
    paused_questions,
    peers,
    predict_asked,
    predict_context,
    predict_retrieval,
    recall,
    reply_latency,
    search_speed,
    session_load,
    session_speed,
    session_summary,
    soak,
    storage_size,
    titles,
    two_builds,
    work,
    work_sharing,
)
from bench.pictures import drawing, screenshots

BENCHES = {
    "as-of": as_of,
    "at-once": at_once,
    "predict-context": predict_context,
    "predict-retrieval": predict_retrieval,
    "predict-asked": predict_asked,
    "context-speed": context_speed,
    "search-speed": search_speed,
    "meaning": meaning,
    "memory-search": memory_search,
    "month": month,
    "move": move,
    "memory-scores": memory_scores,
    "passes": passes,
    "recall": recall,
    "audience": audience,
    "audience-cost": audience_cost,
    "http": http_load,
    "processes": many_processes,
    "hostile": hostile,
    "fairness": fairness,
    "growth": growth,
    "house": house,
    "reply-latency": reply_latency,
    "session-summary": session_summary,
    "session-load": session_load,
    "session-speed": session_speed,
    "soak": soak,
    "storage-size": storage_size,
    "two-builds": two_builds,
    "work": work,
    "work-sharing": work_sharing,
    "crash": crash,
    "own-rooms": own_rooms,
    "paused-questions": paused_questions,
    "digest": digest,
    "titles": titles,
    "evolve-speed": evolve_speed,
    "many-rooms": many_rooms,
    "peers": peers,
    "console-pages": console_pages,
    "console-screen": console_screen,
    "pictures": drawing,
    "screenshots": screenshots,
}


def main(words: Sequence[str] | None = None) -> None:
    """Run the bench that the words name, by default those of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="bench", required=True)
    for name, module in BENCHES.items():
        module.add_arguments(commands.add_parser(name, help=(module.__doc__ or "").splitlines()[0]))
    arguments = parser.parse_args(words)
    asyncio.run(BENCHES[arguments.bench].run(arguments))


if __name__ == "__main__":
    main()
