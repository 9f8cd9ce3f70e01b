"""Constants of roomlore with other values while a test runs, by the names that they had as settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PLACES = {
    "digest_least": "roomlore.services.digest.nightly.LEAST_MESSAGES",
    "digest_timeout_seconds": "roomlore.services.digest.writing.MODEL_SECONDS",
    "digest_webhook_seconds": "roomlore.adapters.webhook.SECONDS",
    "evolve_least": "roomlore.services.evolution.evolution_service.LEAST_MESSAGES",
    "evolve_lease_seconds": "roomlore.services.evolution.evolution_service.LEASE_SECONDS",
    "evolve_messages": "roomlore.services.evolution.reading.MOST_MESSAGES",
    "evolve_people_together": "roomlore.services.evolution.evolution_service.PEOPLE_TOGETHER",
    "idle_connection_seconds": "roomlore_server.http.server.IDLE_SECONDS",
    "index_lease_seconds": "roomlore.services.indexing.index_state.LEASE_SECONDS",
    "max_connections": "roomlore_server.http.guard.MAX_CONNECTIONS",
    "max_metadata_chars": "roomlore.core.intake.METADATA_CHARS",
    "max_small_body_bytes": "roomlore_server.http.bodies.SMALL_BODY_BYTES",
    "model_titles_days": "roomlore.services.digest.titles.NEWEST_DAYS",
    "qdrant_timeout_seconds": "roomlore.adapters.qdrant.TIMEOUT_SECONDS",
    "recall_max_tokens": "roomlore.services.replies.material.RECALL_TOKENS",
    "recall_timeout_seconds": "roomlore.core.recall.recollection.RECALL_SECONDS",
    "redis_timeout_seconds": "roomlore.adapters.redis.TIMEOUT_SECONDS",
    "request_timeout_seconds": "roomlore_server.http.server.REQUEST_SECONDS",
    "retention_schedule": "roomlore.wiring.work.RETENTION_SCHEDULE",
    "strength_floor": "roomlore.core.evolution.requests.STRENGTH_FLOOR",
    "summary_max_tokens": "roomlore.services.sessions.automatic.SUMMARY_TOKENS",
}


@contextmanager
def tuned(**values: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(PLACES[name], value)
        yield


def apart(given: dict[str, Any]) -> dict[str, Any]:
    """Take from what a test gives the constants, and return them; settings are left."""
    return {name: given.pop(name) for name in PLACES if name in given}
