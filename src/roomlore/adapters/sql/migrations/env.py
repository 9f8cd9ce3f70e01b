"""What Alembic runs: the migrations, on the connection and in the transaction that `upgrade` holds."""

from alembic import context

from roomlore.adapters.sql import schema

context.configure(
    connection=context.config.attributes["connection"], target_metadata=schema.metadata, transactional_ddl=False
)
context.run_migrations()
