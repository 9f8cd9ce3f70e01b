"""The schema's history, run by Alembic when a database is opened."""

HEAD = "0028"
"""The newest revision, known without loading Alembic; a test compares it with the scripts."""
