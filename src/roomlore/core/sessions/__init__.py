"""The logic of the session window: sessions, turns, verbatim turns, and due checkpoints."""
