"""What needs no server: the clock, ids, telemetry in memory."""
