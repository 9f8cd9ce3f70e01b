"""Reproduces the shipped weights."""
