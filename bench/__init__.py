"""Benchmarks: quality on labelled rooms, speed beside a plain query. `python -m bench --help` lists them."""
