"""Webhooks: signatures as the standard has them, and addresses that are refused."""

import pytest

from roomlore.core.addresses import check_public, signed_headers
from roomlore.core.errors import InvalidInput
from roomlore_testkit.case_table import all_cases


def test_a_signature_is_that_of_the_standard():
    """The example of the specification of Standard Webhooks."""
    headers = signed_headers(
        b'{"test": 2432232314}',
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        seconds=1614265330,
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert headers["webhook-timestamp"] == "1614265330"


@pytest.mark.parametrize("secret", ["秘密", "plain", "whsec_not base64!"])
def test_any_text_is_a_secret_and_changes_the_signature(secret):
    signs = [
        signed_headers(body, message_id=name, seconds=seconds, secret=key)["webhook-signature"]
        for body, name, seconds, key in (
            (b"a", "m", 1, secret), (b"b", "m", 1, secret), (b"a", "n", 1, secret), (b"a", "m", 2, secret),
            (b"a", "m", 1, "o"),
        )
    ]  # fmt: skip
    assert len(set(signs)) == 5


PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "192.168.0.1",
    "172.16.9.9",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1%eth0",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::5db8:d822",
    "::7f00:1",
    "::a9fe:a9fe",
    "fec0::1",
]


def test_private_addresses_are_refused_whatever_their_form():
    with all_cases() as case:
        for address in PRIVATE:
            with case(address), pytest.raises(InvalidInput, match="private address"):
                check_public("inner.example", ["93.184.216.34", address])


def test_public_addresses_are_allowed():
    check_public("example.com", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822"])
