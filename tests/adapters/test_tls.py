"""Certificates are read once for all clients, and servers are checked by them."""

import asyncio
import datetime
import gc
import ipaddress
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from asking_models import KEY, ask
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from roomlore.adapters.chat import open_chat, reach_provider
from roomlore.adapters.embedding.openai_compatible import OpenAICompatible
from roomlore.adapters.tls import trusted
from roomlore.adapters.webhook import HttpWebhook
from roomlore.core.chat import Provider
from roomlore.core.errors import ModelUnavailable
from roomlore_testkit import FrozenClock


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 that signs itself, with its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "near")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    told = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "near.pem"
    path.write_bytes(told + made.public_bytes(serialization.Encoding.PEM))
    return path


@asynccontextmanager
async def served(certificate: Path):
    """A server that answers every request with 204, and its address."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture(autouse=True)
def _read_anew():
    trusted.cache_clear()
    yield
    trusted.cache_clear()


def contexts() -> int:
    """Return how many there are, without those of earlier tests that nobody holds."""
    gc.collect()
    return sum(type(one) is ssl.SSLContext for one in gc.get_objects())


async def test_a_server_is_trusted_by_the_file_that_the_environment_names_and_not_without(certificate, monkeypatch):
    async with served(certificate) as url:
        provider = Provider("near", url, "NEAR_KEY")
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            await reach_provider(provider, key=None, timeout_seconds=5)
        trusted.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await reach_provider(provider, key=None, timeout_seconds=5)


async def test_all_clients_of_models_share_the_certificates(server, client):
    await ask(client, server)
    before = contexts()
    other, embedder = (
        open_chat(clock=FrozenClock()),
        OpenAICompatible(url=server.url, api_key=KEY, model="m", dimensions=2),
    )
    await ask(other, server)
    await reach_provider(Provider("near", server.url, "NEAR_KEY"), key=KEY, timeout_seconds=5)
    after = contexts()
    await other.close()
    await embedder.close()
    assert after == before


async def test_a_webhook_reads_the_certificates_once(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with served(certificate) as url:
        hook = HttpWebhook(url, secret="s", private=True, clock=FrozenClock())
        await hook.send(b"{}", message_id="1")
        monkeypatch.delenv("SSL_CERT_FILE")
        await hook.send(b"{}", message_id="2")
