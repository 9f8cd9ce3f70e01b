"""Rigs of the pages that bring roomlore to bots and frameworks."""
