"""Forgetting people, and for how long finished work is kept."""

from datetime import timedelta

from roomlore.adapters.sql import SqlStorage
from roomlore.adapters.sql.upkeep import SqlUpkeep
from roomlore.ports.coordination import Clock, Ids, Jobs
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.privacy import Forgetter, MemoriesWithout, MessagesWithout, RowsWithout, VectorsGone
from roomlore.services.sessions import SessionParts
from roomlore.settings import Settings
from roomlore.wiring.indexing import Indexing

EXPIRY = "work_expiry"
"""The background job that forgets work that was done long ago."""
_SWEEP_SECONDS = 3_600.0


def make_forgetter(
    storage: SqlStorage,
    durable: DurableWork,
    sessions: SessionParts,
    indexing: Indexing,
    *,
    tokens: TokenCounter,
    clock: Clock,
    ids: Ids,
    over: Storage | None = None,
) -> Forgetter:
    """`over`: what is read and written through, in the place of the storage itself."""
    through = over or storage
    vectors = VectorsGone(storage=through, index=indexing.vectors)
    return Forgetter(
        storage=through,
        upkeep=SqlUpkeep(storage),
        durable=durable,
        sessions=sessions.cache,
        memories=MemoriesWithout(storage=through, vectors=vectors, clock=clock, ids=ids),
        messages=MessagesWithout(
            storage=through,
            vectors=vectors,
            tokens=tokens,
            clock=clock,
            ids=ids,
            embedding=indexing.embedder is not None,
        ),
        rows=RowsWithout(storage=through, ids=ids),
        clock=clock,
    )


def expire_work(settings: Settings, durable: DurableWork, *, clock: Clock, jobs: Jobs) -> None:
    """Declares the job."""

    async def expire() -> None:
        await durable.expire(before=clock.now() - timedelta(days=settings.work_kept_days))

    jobs.handle(EXPIRY, expire, every_seconds=_SWEEP_SECONDS)
