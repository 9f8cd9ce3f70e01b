"""Linking: which earlier message each message answers, and which messages share its thread."""
