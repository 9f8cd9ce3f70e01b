"""Rigs of the pages about the library: what their fragments take as given."""
