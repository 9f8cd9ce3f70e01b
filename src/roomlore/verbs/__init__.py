"""The table of verbs: what a caller can ask of roomlore, described once for every face.

A module has the verbs of one noun. HTTP, the tools of MCP and the commands derive their arguments, checks and help from
them; what a face shows of an answer, and what only one face has, is written there.
"""
