"""The bench of shared work, small: real workers on a real PostgreSQL, and checks that see what is wrong."""

from collections import Counter

from bench.work_sharing import Part

from bench_command import bench


def test_two_workers_share_the_work(postgres_url: str):
    sizes = ("--rooms", "6", "--answer", "0.1", "--database", postgres_url)
    printed = bench("work-sharing", *sizes)
    assert printed.count("6 requests to the model") == 2
    assert printed.count("6 memories of 6 rooms") == 2
    assert "2 workers are " in printed
    assert "WRONG" not in printed


def test_what_is_left_out_or_done_twice_is_seen():
    right = Counter(("a", "b"))
    assert Part(["a", "b"], asked=right, kept=right).wrong() == []
    lost = Part(["a", "b"], asked=right, kept=Counter("a"))
    assert lost.wrong() == ["kept as a memory: 1 rooms never, 0 repeatedly"]
    twice = Part(["a", "b"], asked=Counter("aab"), kept=right)
    assert twice.wrong() == ["asked of the model: 0 rooms never, 1 repeatedly"]
