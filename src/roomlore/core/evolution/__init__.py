"""Evolution: read a model's answer and turn it into changes."""
