"""The session window, decided: what a session is, its turns, what stays verbatim, and when a checkpoint is due."""
