"""The errors roomlore raises, among Python's own."""

import pytest

import roomlore


@pytest.mark.parametrize(
    ("error", "builtin"), [(roomlore.InvalidInput, ValueError), (roomlore.NotFound, LookupError)], ids=["input", "none"]
)
def test_a_caller_who_knows_pythons_errors_catches_these(error, builtin):
    with pytest.raises(builtin, match="that"):
        raise error("not that")
    assert issubclass(error, roomlore.RoomloreError)
    assert str(error()) == error.__doc__
