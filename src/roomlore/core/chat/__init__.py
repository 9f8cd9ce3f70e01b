"""Language models: which there are, what is asked of them, and when one is left alone for a while."""
