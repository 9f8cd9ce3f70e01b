"""The whole schema of a database, to be compared with that of another one, and a migration that changes it."""

import re
import shutil
from pathlib import Path

from sqlalchemy import Engine, create_engine

from roomlore.storage import migrations

_LOOK = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name",
    "postgresql": """
SELECT table_name || '.' || column_name,
       concat_ws(' ', ordinal_position, data_type, collation_name, is_nullable, column_default)
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
UNION ALL SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'
UNION ALL SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
ORDER BY 1, 2
""",
}


def engine_of(url: str) -> Engine:
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def schema_of(url: str) -> list[tuple[str, str]]:
    """Return what there is with its definition, white space apart."""
    engine = engine_of(url)
    with engine.connect() as connection:
        found = connection.exec_driver_sql(_LOOK[engine.dialect.name]).all()
    engine.dispose()
    return [(name, re.sub(r" ?([(),]) ?", r"\1", " ".join(told.split()))) for name, told in found]


LATER = f"{int(migrations.HEAD) + 1:04}"
"""The revision after the newest one, for tests of what a later version does."""
_ADDS_A_MOOD = f"""
import sqlalchemy as sa
from alembic import op

revision = "{LATER}"
down_revision = "{migrations.HEAD}"


def upgrade() -> None:
    op.add_column("rooms", sa.Column("mood", sa.Text(), nullable=False, server_default=""))
"""


def with_a_later_one(folder: Path, script: str = _ADDS_A_MOOD) -> Path:
    """Copy the migrations to a new folder, with one more. Return the folder."""
    shutil.copytree(Path(migrations.__file__).parent, folder)
    (folder / "versions" / f"v{LATER}_later.py").write_text(script, encoding="utf-8")
    return folder
