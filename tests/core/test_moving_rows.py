"""What a move copies, and how the rows of two stores are compared."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.moving import OWN, WAYS, batches, differences
from roomlore.storage.schema import metadata


def test_every_table_of_the_schema_has_a_way():
    """A new table needs a line in `WAYS`: whether it is copied, and else why not."""
    assert set(WAYS) == set(metadata.tables)
    assert set(OWN) <= set(WAYS)
    for name, way in WAYS.items():
        columns = metadata.tables[name].c
        assert all(columns[column].nullable for column in way.idle), name


def test_tables_follow_those_that_their_rows_refer_to():
    order = list(WAYS)
    for name in order:
        for key in metadata.tables[name].foreign_keys:
            assert order.index(key.column.table.name) < order.index(name)


KEYS = st.tuples(st.integers(0, 6), st.sampled_from(["", "a", "b", "é", "茶", "\U0001f375"]))
STORE = st.dictionaries(KEYS, st.integers(0, 2), max_size=24)


def paged(store: dict, sizes: list[int]):
    rows = iter(sorted((*key, value) for key, value in store.items()))
    for size in sizes:
        yield list(islice(rows, size))
    yield list(rows)


SIZES = st.lists(st.integers(0, 5), max_size=6)


@given(STORE, STORE, SIZES, SIZES)
def test_the_target_is_the_source_once_the_differences_are_applied(source, target, ours, theirs):
    between = differences(paged(source, ours), paged(target, theirs), key=2)
    changed = {key: value for key, value in target.items() if key not in set(between.gone)}
    copied = [(first, last) for first, last in between.stretches]
    for first, last in copied:
        for key in sorted(source):
            if first <= key <= last:
                assert key not in changed, "a row is copied to where none is"
                changed[key] = source[key]
    assert changed == source
    same = {key for key in source if source[key] == target.get(key)}
    assert between.copies == len(source) - len(same)
    assert set(between.gone) == set(target) - same
    assert (between.rows == 0) == (source == target)
    assert len(between.stretches) <= len(same) + 1


@given(st.lists(st.lists(st.tuples(st.integers(), st.text(max_size=9)), max_size=5)), st.integers(1, 9))
def test_batches_have_all_rows_in_order(pages, rows):
    made = list(batches(pages, rows=rows, size=20))
    assert [row for batch in made for row in batch] == [row for page in pages for row in page]
    assert all(made)
    most = max([len(page) for page in pages], default=0)
    assert all(len(batch) < rows + most for batch in made)
