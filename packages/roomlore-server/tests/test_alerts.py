"""The alert rules: they parse, say what to do, and ask for series that /metrics really has."""

import re
from importlib.resources import files

import yaml

from roomlore_testkit.case_table import all_cases

RULES = yaml.safe_load((files("roomlore_server.http") / "alerts.yaml").read_text())["groups"][0]["rules"]
THRESHOLDS = {
    "RoomloreContextSlow": 'le="5.0"',
    "RoomloreContextDegraded": "> 0.10",
    "RoomloreContextErrors": "> 0.05",
    "RoomloreContextScoreLow": "< 0.2",
    "RoomloreSearchDegraded": "> 0.10",
    "RoomloreIndexingFails": "> 0.50",
    "RoomloreWorkFails": "> 0.50",
    "RoomloreEvolutionsFail": "[1d])) > 0",
    "RoomloreSessionsTruncated": "[10m])) > 0",
    "RoomloreCheckpointsFail": "[1h])) > 0",
    "RoomloreSessionCacheBypassed": "[5m])) > 0",
    "RoomloreRepliesWait": "roomlore_replies_waiting) > 0",
}


def test_there_is_a_rule_for_each_threshold():
    assert {rule["alert"] for rule in RULES} == set(THRESHOLDS)


async def test_a_rule_asks_for_what_is_measured(http, make_message, lore):
    await http.post("/messages", json={"messages": [make_message(1), make_message(2)]})
    await http.post("/context", json={"room_id": "tea"})
    lore.prometheus()
    text = (await http.get("/metrics")).text
    with all_cases() as case:
        for rule in RULES:
            with case(rule["alert"]):
                asked = re.findall(r"roomlore_\w+(?:\{[^}]*\})?", rule["expr"])
                assert asked
                for series in asked:
                    name, _, matcher = series.partition("{")
                    assert re.search(rf"^(# TYPE )?{name}\b", text, re.MULTILINE), name
                    if matcher.startswith("le="):
                        assert f"{name}{{{matcher}" in text
                assert THRESHOLDS[rule["alert"]] in rule["expr"]
                assert rule["annotations"]["summary"].endswith(".")
                assert rule["labels"]["severity"] in ("warning", "critical")
