"""What is said of a provider that fails, in Chinese too."""

import re
from datetime import UTC, datetime
from pathlib import Path

from roomlore.adapters.chat import client, errors
from roomlore.core.chat import Offer, Provider, all_failed
from roomlore.core.texts import Phrase
from roomlore.surfaces.texts import text_of
from roomlore_testkit.case_table import all_cases

NOW = datetime(2026, 11, 1, tzinfo=UTC)
OPEN = Offer(Provider(name="p", base_url="http://user:secret@host/v1"), "m")
KEYED = Offer(Provider(name="p", base_url="http://user:secret@host/v1", key_variable="P_KEY"), "m")
STATUSES = (301, 400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 503, 504)
KNOWN = {"p", "m", "HTTP", "base_url", "model_id", "key_variable", "providers", "model_timeout_seconds", "P_KEY"}
KNOWN |= {"OpenAI", "JSON", "ASCII", "v1", "s"}
HOWS = re.findall(r'BadModelOutput\("([^"]+)"\)', Path(client.__file__).read_text(encoding="utf-8"))
assert len(HOWS) > 2, "the client words its errors in another way now"
ERRORS = [
    *(errors.of_status(offer, status, now=NOW) for status in STATUSES for offer in (OPEN, KEYED)),
    errors.late(OPEN, 60),
    errors.unreachable(OPEN),
    errors.dropped(OPEN),
    *(errors.broken(OPEN, Phrase(how)) for how in [*HOWS, "answer_unreadable"]),
    errors.bad_key(KEYED),
    errors.bad_address(OPEN),
]


def test_every_failure_of_a_provider_has_a_chinese_text_and_no_secret():
    with all_cases() as case:
        for error in ERRORS:
            with case(error):
                chinese = text_of(error, "zh")
                assert set(re.findall(r"[A-Za-z_]\w*", chinese)) <= KNOWN
                assert "secret" not in str(error)


def test_the_failures_of_two_providers_have_a_chinese_text():
    chinese = text_of(all_failed("m", [("p", errors.unreachable(OPEN)), ("p", errors.late(OPEN, 2.5))]), "zh")
    assert set(re.findall(r"[A-Za-z_]\w*", chinese)) <= KNOWN
