"""Imports of chat exports: their rooms, what is stored of them, and the report."""

from roomlore.services.imports.import_service import Adding, ImportService

__all__ = ["Adding", "ImportService"]
