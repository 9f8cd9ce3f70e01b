"""The schema's history, run by Alembic when a database is opened."""

HEAD = "0007"
"""The newest revision, known without loading Alembic; a test holds it to the scripts."""
