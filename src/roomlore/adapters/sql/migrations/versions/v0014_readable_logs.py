"""Views of the log of memories and of usage records, for people who look with SQL; the mean score of each record."""

import json

import sqlalchemy as sa
from alembic import op

from roomlore.adapters.sql.rows import unescape

revision = "0014"
down_revision = "0013"

_AT_ONCE = 2_000
_PAGE = sa.text(
    "SELECT tenant, context_id, relevance_scores FROM context_usage_records "
    "WHERE (tenant, context_id) > (:tenant, :context_id) ORDER BY tenant, context_id LIMIT :most"
)
_SET = sa.text(
    "UPDATE context_usage_records SET mean_score = :mean WHERE tenant = :tenant AND context_id = :context_id"
)
_SECONDS = "({0} - (({0} % 1000000) + 1000000) % 1000000) / 1000000"
_FRACTION = "printf('.%06d', (({0} % 1000000) + 1000000) % 1000000)"
_TIME = {
    "sqlite": f"strftime('%Y-%m-%d %H:%M:%S', {_SECONDS}, 'unixepoch') || {_FRACTION}",
    "postgresql": "TIMESTAMPTZ 'epoch' + {0} * INTERVAL '1 microsecond'",
}
# A stored text holds U+001A where the engine cannot hold a character, which is no JSON until it is written as an
# escape. The type jsonb refuses an escaped NUL too; an escaped backslash may stand before the same letters.
_LEGAL = r"replace({0}, chr(26), '\u001a')"
_JSON = {
    "sqlite": r"replace({0}, char(26), '\u001a')",
    "postgresql": r"CAST(CASE WHEN strpos({0}, '\u0000') = 0 THEN "
    + _LEGAL
    + r" ELSE regexp_replace("
    + _LEGAL
    + r", '(?<!\\)((\\\\)*)\\u0000', '\1\\u001a0', 'g') END AS jsonb)",
}
_IN_LOG = {"sqlite": "json_extract({0}, '$.{1}')", "postgresql": "({0} ->> '{1}')"}

_CHANGES = """
CREATE VIEW memory_change_log AS
SELECT c.number AS number, c.memory_id AS memory_id, m.lineage_id AS lineage_id, s.scope AS scope,
       CASE WHEN substr(s.scope, 1, 6) = 'group:' THEN substr(s.scope, 7) END AS group_id, c.action AS action,
       c.old_statement AS old_statement,
       CASE WHEN {status} = 'active' THEN m.statement END AS new_statement,
       CASE WHEN c.reason <> '' THEN c.reason ELSE m.change_summary END AS change_summary, m.version AS version,
       m.kind AS kind, CAST({strength} AS DOUBLE PRECISION) AS strength, m.doubtful AS doubtful, {tags} AS tags,
       {sources} AS sources, {closes} AS closes, c.evolution_id AS evolution_id, c.undoes AS undoes, c.actor AS actor,
       {at} AS created_at, c.tenant AS tenant
FROM memory_changes c
JOIN memory_scopes s ON s.scope_key = c.scope_key
LEFT JOIN memories m ON m.tenant = c.tenant AND m.memory_id = c.memory_id
"""
_USAGE = """
CREATE VIEW context_usage_record AS
SELECT u.context_id AS context_id, u.room_id AS group_id, u.user_id AS user_id,
       u.trigger_message_id AS trigger_message_id, u.strategy AS strategy, u.arm AS arm,
       {ids} AS context_message_ids, {scores} AS relevance_scores, u.mean_score AS mean_score, u.tokens AS tokens,
       u.window_tokens AS window_tokens, u.build_ms AS build_ms, u.degraded AS degraded,
       u.llm_response AS llm_response, u.user_feedback AS user_feedback, u.success_indicator AS success_indicator,
       {made} AS created_at, u.tenant AS tenant
FROM context_usage_records u
"""


def upgrade() -> None:
    op.add_column("context_usage_records", sa.Column("mean_score", sa.Double()))
    _compute_means()
    dialect = op.get_bind().dialect.name
    as_json, as_time, told = _JSON[dialect].format, _TIME[dialect].format, _IN_LOG[dialect].format
    logged = as_json("c.memory")
    changes = _CHANGES.format(
        status=told(logged, "status"),
        strength=told(logged, "strength"),
        tags=as_json("m.tags"),
        sources=as_json("m.sources"),
        closes=as_json("c.closes"),
        at=as_time("c.at"),
    )
    usage = _USAGE.format(
        ids=as_json("u.context_message_ids"), scores=as_json("u.relevance_scores"), made=as_time("u.created_at")
    )
    for view in (changes, usage):
        op.get_bind().exec_driver_sql(view)


def _compute_means() -> None:
    connection, after = op.get_bind(), {"tenant": "", "context_id": ""}
    while page := connection.execute(_PAGE, {**after, "most": _AT_ONCE}).all():
        means = [{"tenant": tenant, "context_id": own, "mean": _mean(scores)} for tenant, own, scores in page]
        connection.execute(_SET, means)
        after = {"tenant": page[-1][0], "context_id": page[-1][1]}


def _mean(scores: str) -> float | None:
    values = json.loads(unescape(scores)).values()
    return sum(values) / len(values) if values else None
