"""The Grafana dashboard asks for series that /metrics really has, and leaves none of them out."""

import json
import re
from itertools import combinations
from pathlib import Path

from roomlore.adapters.telemetry import METRICS, SUMMARIES, PrometheusTelemetry
from roomlore_testkit import FrozenClock
from roomlore_testkit.case_table import all_cases

BOARD = json.loads((Path(__file__).parents[2] / "deploy" / "grafana" / "roomlore.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
OF_PROMETHEUS = {"job", "instance"}
UNITS = {"seconds": "s", "ratio": "percentunit"}
PART = re.compile(r"_(bucket|sum|count)$")


def selectors(expression: str) -> list[tuple[str, set[str]]]:
    """The series that an expression asks for, with the labels it picks them by."""
    found = re.findall(r"(roomlore_\w+)(?:\{([^}]*)\})?", expression)
    return [(name, set(re.findall(r"(\w+)=~?\"", matchers))) for name, matchers in found]


def expressions() -> list[tuple[str, str]]:
    return [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]


def family(name: str) -> str:
    return PART.sub("", name) if METRICS.get(PART.sub("", name)) else name


def labels_of(name: str) -> set[str]:
    metric = METRICS.get(family(name))
    return set(metric.labels) | ({"le"} if name.endswith("_bucket") else set()) if metric else set()


def test_a_panel_asks_for_what_is_measured():
    exposed = set(re.findall(r"^# TYPE (\w+)", PrometheusTelemetry(FrozenClock()).render().decode(), re.MULTILINE))
    with all_cases() as case:
        for title, expression in expressions():
            with case(title, expression):
                asked = selectors(expression)
                assert asked
                for name, picked in asked:
                    assert family(name) in exposed, name
                    assert picked - OF_PROMETHEUS <= labels_of(name)
                    assert picked >= OF_PROMETHEUS, "every series is picked by job and instance"
                grouped = {
                    label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")
                }
                assert grouped <= set.intersection(*(labels_of(name) for name, _ in asked)), title


def test_a_panel_treats_a_series_as_what_it_is():
    with all_cases() as case:
        for title, expression in expressions():
            with case(title, expression):
                for name, _ in selectors(expression):
                    kind = METRICS[family(name)].kind if family(name) in METRICS else "gauge"
                    counted = re.search(rf"rate\({name}\{{", expression)
                    assert bool(counted) == (kind in ("counter", "histogram")), title
                    assert (kind == "histogram") == bool(PART.search(name)), title
                assert expression.count("(") == expression.count(")")
                assert ("histogram_quantile" in expression) == ("_bucket{" in expression)


def test_every_measurement_has_a_panel():
    shown = {family(name) for _, expression in expressions() for name, _ in selectors(expression)}
    assert set(METRICS) - shown == set()
    assert shown - set(METRICS) <= {f"roomlore_{name}" for name in SUMMARIES}


def test_a_panel_says_what_it_shows():
    with all_cases() as case:
        for panel in PANELS:
            with case(panel["title"]):
                assert panel["title"]
                assert panel["description"].endswith(".")
                for target in panel["targets"]:
                    assert target["legendFormat"]
                    assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= set(
                        re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"])))
                    )
                    quantiled = re.search(r"histogram_quantile\([\d.]+, .*?(roomlore_\w+)_bucket", target["expr"])
                    if quantiled and quantiled.group(1).rpartition("_")[2] in UNITS:
                        assert panel["fieldConfig"]["defaults"]["unit"] == UNITS[quantiled.group(1).rpartition("_")[2]]


def test_panels_have_ids_and_places_of_their_own():
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids))
    for one, other in combinations([panel["gridPos"] for panel in BOARD["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
    assert all(place["x"] + place["w"] <= 24 for place in (panel["gridPos"] for panel in BOARD["panels"]))


def test_whoever_imports_it_chooses_the_source():
    assert [variable["name"] for variable in BOARD["templating"]["list"]] == ["datasource", "job", "instance"]
    sources = {panel["datasource"]["uid"] for panel in PANELS}
    sources |= {target["datasource"]["uid"] for panel in PANELS for target in panel["targets"]}
    assert sources == {"${datasource}"}
