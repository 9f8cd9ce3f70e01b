"""The Redis cache's own affairs: its URL, its keys, what it keeps, and how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redis_server import RedisServer
from roomlore.adapters.redis import open_redis
from roomlore.adapters.redis.cache import session_key
from roomlore.core.errors import CacheUnavailable, InvalidInput

PASSWORD = "pa55word"
ANY = st.text(alphabet=st.characters(), max_size=12) | st.text(alphabet=":%d\0efaultshor_m", max_size=30)
NAMED = st.sampled_from(["default", "", "short_term_memory", "default:short_term_memory:session", "session:"])
IDS = ANY | NAMED


@given(st.tuples(IDS, IDS), st.tuples(IDS, IDS))
def test_two_sessions_never_share_a_key(one, two):
    keys = [session_key(tenant=tenant, conversation_id=conversation) for tenant, conversation in (one, two)]
    assert (keys[0] == keys[1]) == (one == two)


@given(IDS, IDS, st.sampled_from([":", "%", "%3A", "short_term_memory:session:", ":short_term_memory:session:"]))
def test_a_name_cut_elsewhere_is_another_key(tenant, rest, middle):
    one = session_key(tenant=tenant, conversation_id=middle + rest)
    assert one != session_key(tenant=tenant + middle, conversation_id=rest)


def test_keys_are_named_as_people_expect():
    assert session_key(tenant="default", conversation_id="c 1:甲") == "short_term_memory:session:c 1:甲".encode()
    assert session_key(tenant="acme", conversation_id="c") == b"acme:short_term_memory:session:c"
    assert session_key(tenant="a:b%", conversation_id="c") == b"a%3Ab%25:short_term_memory:session:c"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://localhost",
        "postgresql://localhost/0",
        f"redis://:{PASSWORD}@localhost:99999",
        f"redis://:{PASSWORD}@localhost:port",
        f"redis://ann:{PASSWORD}#x@localhost",
        f"redis://:{PASSWORD}@[::1/0",
        f"redis://:{PASSWORD}@localhost/rooms",
        f"redis://:{PASSWORD}@localhost/-1",
        f"redis://:{PASSWORD}@localhost?db={PASSWORD}",
        f"unix://:{PASSWORD}@",
    ],
)
def test_a_wrong_url_is_told_without_its_password(url):
    with pytest.raises(InvalidInput, match=r"redis://.*unix://") as caught:
        open_redis(url, timeout_seconds=1)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("option", ["socket_timeout=60", "protocol=3", "decode_responses=1", "colour=red"])
def test_an_option_that_would_change_how_calls_end_is_refused(option):
    with pytest.raises(InvalidInput, match=option.split("=")[0]):
        open_redis(f"redis://:{PASSWORD}@localhost/0?{option}", timeout_seconds=1)


def test_a_wrong_value_of_an_option_is_told():
    with pytest.raises(InvalidInput, match="option"):
        open_redis("rediss://localhost?ssl_cert_reqs=perhaps", timeout_seconds=1)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr("roomlore.adapters.redis.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'roomlore\[redis\]'"):
        open_redis("redis://localhost", timeout_seconds=1)


async def test_the_value_stands_there_as_text_with_its_time(shared_redis: RedisServer):
    shared_redis.wipe()
    cache = open_redis(f"{shared_redis.url}/3", timeout_seconds=10)
    await cache.put(tenant="acme", conversation_id="c", value='{"n":1}', seconds=1800)
    await cache.close()
    read = open_redis(f"{shared_redis.unix_url}?db=3", timeout_seconds=10)
    assert await read.get(tenant="acme", conversation_id="c") == '{"n":1}'
    await read.close()
    assert shared_redis.command(b"SWAPDB", b"0", b"3") == b"+OK\r\n"
    left = int(shared_redis.command(b"PTTL", b"acme:short_term_memory:session:c")[1:])
    assert 1_790_000 < left <= 1_800_000
    assert shared_redis.command(b"STRLEN", b"acme:short_term_memory:session:c") == b":7\r\n"


async def test_what_others_put_under_the_key_is_no_value_and_can_be_replaced(shared_redis: RedisServer):
    shared_redis.wipe()
    key = session_key(tenant="default", conversation_id="c")
    cache = open_redis(shared_redis.url, timeout_seconds=10)
    for words in ([b"RPUSH", key, b"a"], [b"SET", key, b"\xff\xfe\x00"], [b"HSET", key, b"a", b"b"]):
        shared_redis.command(b"DEL", key)
        shared_redis.command(*words)
        assert await cache.get(tenant="default", conversation_id="c") is None
        await cache.put(tenant="default", conversation_id="c", value="ours", seconds=60)
        assert await cache.get(tenant="default", conversation_id="c") == "ours"
    await cache.close()


async def test_a_database_that_is_not_there_says_so(shared_redis: RedisServer):
    for url in (f"{shared_redis.url}/99", f"{shared_redis.unix_url}?db=99"):
        cache = open_redis(url, timeout_seconds=10)
        for _ in range(2):
            with pytest.raises(CacheUnavailable, match="database in its URL"):
                await cache.put(tenant="default", conversation_id="c", value="1", seconds=60)
        await cache.close()


async def test_a_wrong_login_says_so(redis_server: RedisServer):
    redis_server.command(b"CONFIG", b"SET", b"requirepass", PASSWORD.encode())
    for login, told in (("", "user and password"), (":wrong@", "user and password"), (f":{PASSWORD}@", None)):
        for address in (redis_server.url, redis_server.unix_url):
            cache = open_redis(address.replace("://", f"://{login}"), timeout_seconds=10)
            if told is None:
                assert await cache.get(tenant="default", conversation_id="c") is None
            else:
                with pytest.raises(CacheUnavailable, match=told):
                    await cache.get(tenant="default", conversation_id="c")
            await cache.close()


async def test_a_full_or_read_only_server_says_what_to_check(redis_server: RedisServer):
    cache = open_redis(redis_server.url, timeout_seconds=10)
    redis_server.command(b"CONFIG", b"SET", b"maxmemory", b"1")
    with pytest.raises(CacheUnavailable, match="its memory"):
        await cache.put(tenant="default", conversation_id="c", value="secret", seconds=60)
    redis_server.command(b"CONFIG", b"SET", b"maxmemory", b"0")
    await cache.put(tenant="default", conversation_id="c", value="secret", seconds=60)
    assert await cache.get(tenant="default", conversation_id="c") == "secret"
    await cache.close()
