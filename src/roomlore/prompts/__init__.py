"""The prompts roomlore ships, one Markdown file each: `<name>.<language>.md`.

`{{word}}` stands for a value. Nothing else in a prompt is special.
"""
