"""What a person leaves behind, and taking it out: pure functions over what is stored."""
