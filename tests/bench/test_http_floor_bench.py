"""The bench of HTTP routes, small: every route is timed beside the bare one, and a failed request stops it."""

from http.client import HTTPConnection

import pytest
from bench.http_floor import Route, ask, measure, routes

from bench_command import bench


def test_every_route_is_timed_beside_the_bare_one():
    printed = bench("http-floor", "--messages", "60", "--requests", "4")
    rows = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith("| ")][1:]
    assert [row[0].strip() for row in rows] == ["health", "add a message", "context", "search", "recall"]
    assert all(float(row[3]) > 0 for row in rows)


class Scripted:
    """A connection that notes what it is asked and answers with `status`."""

    will_close = False

    def __init__(self, status=200):
        self.status = status
        self.asked = []

    def request(self, method, path, body, headers):
        self.asked.append((method, path, body))

    def getresponse(self):
        return self

    def read(self):
        return b"12345"


def test_the_bare_route_gets_the_same_body_and_sends_as_many_bytes():
    served, bare, measured = Scripted(), Scripted(), routes("what they said")
    measure(measured, served, bare, 3)
    assert [len(route.took) for route in measured] == [len(route.bare) for route in measured] == [3] * 5
    assert [one[2] for one in served.asked] == [one[2] for one in bare.asked]
    assert {one[1] for one in bare.asked} == {"/bare?length=5"}


def test_messages_have_ids_of_their_own():
    served = Scripted()
    route = next(one for one in routes("x") if one.path == "/messages")
    measure([route], served, Scripted(), 5)
    assert len({body for _, _, body in served.asked}) == len(served.asked)


@pytest.mark.parametrize("status", [404, 503])
def test_a_request_that_fails_stops_the_bench(status):
    connection: HTTPConnection = Scripted(status)
    with pytest.raises(SystemExit, match=str(status)):
        ask(connection, Route("health", "GET", "/health/live"), 1, "/health/live")
