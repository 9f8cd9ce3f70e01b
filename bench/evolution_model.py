"""The model that the evolutions of `crash` ask: it lives outside of them and remembers what it showed and said."""

import hashlib
import random
import time
from dataclasses import dataclass, field

from bench.crash_model import Request, life_of
from bench.evolution_items import Shown, answer
from roomlore_testkit.model_server import Asked, Says

EVOLUTIONS = "crash-evolutions"
_LONGEST_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class EvolutionRequest(Request):
    """`shown`: what its prompt says."""

    shown: Shown = field(default_factory=lambda: Shown({}, {}))


class ScriptedModel:
    """A script for `serve_models`: whole answers, after a time by chance."""

    def __init__(self, seed: int) -> None:
        self.requests: list[EvolutionRequest] = []
        self._chance = random.Random(f"model {seed}")

    def __call__(self, request: Asked) -> Says:
        number = len(self.requests) + 1
        shown = Shown.of(request.prompt)
        label = hashlib.sha256(request.prompt.encode()).hexdigest()[:16]
        noted = EvolutionRequest(life_of(request), number, "evolution", label, time.monotonic(), request, shown)
        self.requests.append(noted)
        return Says(text=answer(number, shown), after=self._chance.uniform(0.0, _LONGEST_SECONDS))
