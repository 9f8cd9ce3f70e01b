"""The measures of `make house`."""

import ast
from collections import Counter

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


BOUND = """
from module import found, other as one

class Reader:
    told: str

    def _said(self, asked, *, name):
        for one in asked:
            [one for one in found if (said := one)]
        try:
            asked.found = found(one)
        except ValueError as told:
            raise KeyError(told) from None
        match name:
            case [one, *found]:
                asked_later = one
        return _told_of_error(name)
"""


def test_the_names_of_a_module_are_each_counted_where_they_are_bound():
    bound = Counter(house.bindings(ast.parse(BOUND)))
    odd = {"found": 2, "one": 4, "told": 2, "_said": 1, "asked": 1, "said": 1}
    assert bound == odd | {"Reader": 1, "self": 1, "name": 1, "asked_later": 1}


def test_a_name_is_composed_with_an_odd_one():
    assert [
        name for name in ("told", "_told_of_error", "asked_later", "everyone") if house.composed_with_odd(name)
    ] == [
        "_told_of_error",
        "asked_later",
    ]


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
