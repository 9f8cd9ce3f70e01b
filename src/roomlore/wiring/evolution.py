"""Evolution: what reads, asks and applies, and the schedule."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from roomlore.adapters.cron import Cron
from roomlore.adapters.json_repair import repaired
from roomlore.core.evolution.models import Rules
from roomlore.core.evolution.offline import offline_answer
from roomlore.ports.coordination import Clock, Ids, Jobs, Telemetry
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import Prompts
from roomlore.ports.storage import Storage
from roomlore.services.evolution import (
    EVOLUTION,
    Applying,
    Asking,
    EvolutionOptions,
    EvolutionService,
    Reading,
    Schedule,
    Turns,
)
from roomlore.services.jobs import counted
from roomlore.services.models import ModelService
from roomlore.settings import Settings

_SWEEP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Evolutions:
    """What evolves, and what hands it in by the clock."""

    service: EvolutionService
    schedule: Schedule


def make_evolutions(
    settings: Settings,
    storage: Storage,
    durable: DurableWork,
    models: ModelService,
    prompts: Prompts,
    *,
    clock: Clock,
    ids: Ids,
    telemetry: Telemetry,
    jobs: Jobs,
    background: bool,
) -> Evolutions:
    """Nothing is read yet."""
    options = evolution_options(settings)
    reading = Reading(
        storage=storage,
        clock=clock,
        most_messages=options.messages,
        most_memories=options.memories,
        zone=options.zone,
    )
    service = EvolutionService(
        storage=storage,
        durable=durable,
        reading=reading,
        asking=Asking(models=models, prompts=prompts, clock=clock, options=options),
        applying=Applying(
            storage=storage,
            reading=reading,
            clock=clock,
            ids=ids,
            options=options,
            offline=offline_answer,
            repair=repaired,
        ),
        turns=Turns(storage=storage, clock=clock, lease_seconds=options.lease_seconds),
        clock=clock,
        ids=ids,
        telemetry=telemetry,
    )
    durable.define(EVOLUTION, counted(EVOLUTION, service.work, clock=clock, telemetry=telemetry))
    times = Cron(settings.evolve_schedule, ZoneInfo(settings.time_zone)) if settings.evolve_schedule else None
    schedule = Schedule(storage=storage, evolutions=service, clock=clock, times=times, least=options.least)
    if background and times:
        jobs.handle(EVOLUTION, schedule.sweep, every_seconds=_SWEEP_SECONDS)
    return Evolutions(service, schedule)


def evolution_options(settings: Settings) -> EvolutionOptions:
    """What the settings say about evolutions."""
    return EvolutionOptions(
        model=settings.evolve_model,
        timeout_seconds=settings.evolve_timeout_seconds,
        zone=ZoneInfo(settings.time_zone),
        rules=Rules(
            delete_share=settings.evolve_delete_share,
            most_active=settings.most_memories,
            half_life_days=settings.strength_half_life_days,
        ),
        messages=settings.evolve_messages,
        memories=settings.evolve_memories,
        strength_floor=settings.strength_floor,
        lease_seconds=settings.evolve_lease_seconds,
        least=settings.evolve_least,
    )
