"""Memories, their log, their evolutions, and the progress of work on rooms."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _make_scopes()
    _make_memories()
    _index_memories()
    _make_sources()
    _make_changes()
    _make_evolutions()
    _make_watermarks()
    _make_rooms_due()


def _name(name: str, *, nullable: bool = False) -> Any:
    return sa.Column(name, _NAME, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> Any:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _number(name: str) -> Any:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _key(name: str) -> Any:
    return sa.Column(name, _KEY, autoincrement=False, nullable=False)


def _make_scopes() -> None:
    op.create_table(
        "memory_scopes",
        sa.Column("scope_key", _KEY, nullable=False),
        _name("tenant"),
        _name("scope"),
        _number("changes"),
        _number("active"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("scope_key", name="pk_memory_scopes"),
        sa.UniqueConstraint("tenant", "scope", name="uq_memory_scopes_tenant_scope"),
    )


def _make_memories() -> None:
    op.create_table(
        "memories",
        sa.Column("memory_key", _KEY, nullable=False),
        _key("scope_key"),
        _name("tenant"),
        _name("memory_id"),
        _name("lineage_id"),
        _number("version"),
        sa.Column("head", sa.Boolean(), nullable=False),
        _name("merged_into", nullable=True),
        _name("status"),
        _name("kind"),
        _text("statement"),
        _text("tags"),
        _text("category"),
        sa.Column("strength", sa.Double(), nullable=False),
        sa.Column("confidence", sa.Double()),
        _text("parents"),
        _text("sources"),
        _text("change_summary"),
        _name("evolution_id", nullable=True),
        _text("made_by"),
        sa.Column("fallback", sa.Boolean(), nullable=False),
        _number("created_at"),
        _number("updated_at"),
        _number("supported_at"),
        sa.ForeignKeyConstraint(["scope_key"], ["memory_scopes.scope_key"], name="fk_memories_memory_scopes"),
        sa.PrimaryKeyConstraint("memory_key", name="pk_memories"),
        sa.UniqueConstraint("tenant", "memory_id", name="uq_memories_tenant_memory_id"),
        sa.UniqueConstraint("tenant", "lineage_id", "version", name="uq_memories_tenant_lineage_id_version"),
        sa.CheckConstraint("head OR status = 'deprecated'", name="ck_memories_active_is_head"),
    )


def _index_memories() -> None:
    op.create_index(
        "uq_memories_head",
        "memories",
        ["tenant", "lineage_id"],
        unique=True,
        sqlite_where=sa.text("head = 1"),
        postgresql_where=sa.text("head"),
    )
    op.create_index("ix_memories_scope", "memories", ["scope_key", "head", "kind", "status", "updated_at", "memory_id"])
    op.create_index(
        "ix_memories_fallback",
        "memories",
        ["tenant", "memory_id"],
        sqlite_where=sa.text("fallback = 1 AND status = 'active'"),
        postgresql_where=sa.text("fallback AND status = 'active'"),
    )


def _make_sources() -> None:
    op.create_table(
        "memory_sources",
        _name("tenant"),
        _name("room_id"),
        _name("message_id"),
        _key("memory_key"),
        sa.PrimaryKeyConstraint("tenant", "room_id", "message_id", "memory_key", name="pk_memory_sources"),
        sqlite_with_rowid=False,
    )


def _make_changes() -> None:
    op.create_table(
        "memory_changes",
        _key("scope_key"),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        _name("tenant"),
        _text("action"),
        _name("memory_id"),
        _text("memory"),
        _text("closes"),
        _text("old_statement", nullable=True),
        _text("reason"),
        _name("evolution_id", nullable=True),
        _name("undoes", nullable=True),
        _text("actor"),
        _number("at"),
        sa.ForeignKeyConstraint(["scope_key"], ["memory_scopes.scope_key"], name="fk_memory_changes_memory_scopes"),
        sa.PrimaryKeyConstraint("scope_key", "number", name="pk_memory_changes"),
    )
    op.create_index("ix_memory_changes_at", "memory_changes", ["scope_key", "at"])
    given = sa.text("evolution_id IS NOT NULL")
    op.create_index(
        "ix_memory_changes_evolution",
        "memory_changes",
        ["tenant", "evolution_id"],
        sqlite_where=given,
        postgresql_where=given,
    )


def _make_evolutions() -> None:
    op.create_table(
        "evolutions",
        _name("tenant"),
        _name("evolution_id"),
        _name("scope"),
        _text("kind"),
        _text("status"),
        _name("room_id"),
        _number("first_arrival"),
        _number("last_arrival"),
        _number("messages"),
        _text("prompt_name"),
        _text("prompt_hash"),
        _text("model"),
        _number("input_tokens"),
        _number("output_tokens"),
        _text("raw_answer"),
        _text("quarantined"),
        _text("facts"),
        _text("error"),
        _number("started_at"),
        _number("finished_at"),
        sa.PrimaryKeyConstraint("tenant", "evolution_id", name="pk_evolutions"),
    )
    op.create_index("ix_evolutions_scope", "evolutions", ["tenant", "scope", "evolution_id"])


def _make_watermarks() -> None:
    op.create_table(
        "watermarks",
        _name("tenant"),
        _name("room_id"),
        _name("name"),
        _number("arrival"),
        _number("updated_at"),
        sa.PrimaryKeyConstraint("tenant", "room_id", "name", name="pk_watermarks"),
        sqlite_with_rowid=False,
    )


def _make_rooms_due() -> None:
    op.create_table(
        "rooms_due",
        _name("work"),
        _name("tenant"),
        _name("room_id"),
        _number("noted"),
        _number("noted_at"),
        sa.Column("leased_until", sa.BigInteger()),
        sa.PrimaryKeyConstraint("work", "tenant", "room_id", name="pk_rooms_due"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_rooms_due_noted_at", "rooms_due", ["work", "noted_at"])
