"""Entry point of Alembic: runs the migrations in the transaction that `upgrade` holds."""

from alembic import context

from roomlore.storage import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.memories.metadata,
    transactional_ddl=False,
)
context.run_migrations()
