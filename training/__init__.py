"""Reproduces the shipped weights of the link model."""
