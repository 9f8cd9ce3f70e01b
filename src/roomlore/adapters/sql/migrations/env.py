"""What Alembic runs: the migrations, on the connection and in the transaction that `upgrade` holds."""

from alembic import context

from roomlore.adapters.sql import schema_memories

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema_memories.memories.metadata,
    transactional_ddl=False,
)
context.run_migrations()
