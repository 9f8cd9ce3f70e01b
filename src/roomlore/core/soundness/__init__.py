"""Whether what is stored holds together: pure functions over what was read."""
