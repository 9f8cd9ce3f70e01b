"""What happened in a room, thread by thread."""
