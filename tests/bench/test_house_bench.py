"""The measures of `make house`."""

import ast

from bench import house, passes

SOURCE = '''"""A module."""

# A comment.
TEXT = """one
two"""
"""What the constant is."""


def first(value):
    """Return it."""

    return value  # as it is
'''
FUNCTION = """
def {name}({value}):
    if {value}:
        print("{text}", {value})
        print("{text}", {value}.{attribute})
        for one in {value}:
            print(one)
    else:
        raise ValueError("{text}")
    return {value} * {factor}
"""


def written(**given: object) -> str:
    return FUNCTION.format(**{"name": "f", "value": "v", "attribute": "a", "text": "t", "factor": "v"} | given)


def test_lines_of_code_are_no_comments_docstrings_or_blank_lines(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    assert house.code_lines([path]) == 4


def test_a_function_is_written_twice_whatever_its_names():
    first, other = written(), written(name="g", value="w", attribute="b", text="u", factor="w")
    assert house.duplicates([ast.parse(first), ast.parse(other)]) == 1
    assert house.duplicates([ast.parse(first), ast.parse(written(factor="v + v"))]) == 0


def test_the_project_is_measured_from_its_own_files():
    found = house.measured(house.ROOT)
    assert all(
        found[name] for name in ("code lines of roomlore", "settings", "commands", "HTTP operations", "MCP tools")
    )


async def test_what_a_call_passes_is_counted():
    counted = await passes.measured()
    assert {name: len(one.modules) > 5 for name, one in counted.items()} == {
        "messages.add": True,
        "sessions.write_turn": True,
    }
    assert all(one.switches.total() >= len(one.modules) for one in counted.values())
