"""Adapters without a server: clock, ids, durable work, background jobs and telemetry in memory."""
