"""The weeks without a model of the bench of meaning: most of what holds is remembered, and little else."""

import json
from collections import Counter

import pytest
from bench.meaning import CASES, opened
from bench.meaning_evolution import offline_weeks

MIN = {"what holds": 0.9, "outdated is not held": 0.85, "noise is not held": 0.95, "memories made": 0.75}


@pytest.mark.parametrize("name", ["offline_weeks", "offline_weeks_apart"])
async def test_rules_remember_what_a_week_settled(name):
    right, every = Counter[str](), Counter[str]()
    async with opened() as lore:
        for line in (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            for judged in await offline_weeks(lore, json.loads(line)):
                every[judged.group] += 1
                right[judged.group] += judged.verdict == "right"
    assert every.keys() == MIN.keys()
    assert {group: share for group, share in MIN.items() if right[group] < share * every[group]} == {}
