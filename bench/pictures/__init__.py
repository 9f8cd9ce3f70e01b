"""Pictures for the documentation, made from real runs."""
