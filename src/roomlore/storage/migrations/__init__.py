"""The schema's history, run by Alembic when a database is opened."""

HEAD = "0026"
"""The newest revision, known without loading Alembic; a test compares it with the scripts."""
