"""Remove a person from stored data: pure functions over what is stored."""
