"""Settings: where each value comes from, which wins, and what a bad one says."""

import os
import re
from pathlib import Path
from pkgutil import resolve_name
from zoneinfo import ZoneInfo

import pytest

from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput
from roomlore.settings import (
    CONFIG_FILE,
    PREFIX,
    RETIRED,
    WEIGHTS,
    Settings,
    context_options,
    explain,
    known_fields,
    range_of,
)
from tuned import PLACES


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.upper().startswith((PREFIX, "ROOMLORE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = CONFIG_FILE) -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


SEED = {
    "MEMORY_ENABLE_INTELLIGENT_MEMORY": ("enable_intelligent_memory", "true", True),
    "MEMORY_FALLBACK_ON_ERROR": ("fallback_on_error", "false", False),
    "MEMORY_MAX_CONTEXT_MESSAGES": ("max_context_messages", "7", 7),
    "MEMORY_TIME_WINDOW_HOURS": ("time_window_hours", "48", 48),
    "MEMORY_RELEVANCE_THRESHOLD": ("relevance_threshold", "0.25", 0.25),
    "MEMORY_REPLY_CHAIN_WEIGHT": ("reply_chain_weight", "0.5", 0.5),
    "MEMORY_USER_CONTINUITY_WEIGHT": ("user_continuity_weight", "0.5", 0.5),
    "MEMORY_TIME_DECAY_WEIGHT": ("time_decay_weight", "0.5", 0.5),
    "MEMORY_MENTION_RELATION_WEIGHT": ("mention_relation_weight", "0.5", 0.5),
    "MEMORY_KEYWORD_OVERLAP_WEIGHT": ("keyword_overlap_weight", "0", 0),
    "MEMORY_CONTEXT_BUILD_TIMEOUT_SECONDS": ("context_build_timeout_seconds", "2.5", 2.5),
    "MEMORY_ENABLE_ASYNC_DATA_COLLECTION": ("enable_async_data_collection", "off", False),
}


def test_defaults_are_the_specification():
    settings = Settings()
    expected = {
        "enable_intelligent_memory": True,
        "fallback_on_error": True,
        "max_context_messages": 20,
        "recent_messages": 10,
        "time_window_hours": 24,
        "candidate_limit": 50,
        "chain_limit": 15,
        "relevance_threshold": 0.3,
        "half_life_minutes": 10,
        "context_build_timeout_seconds": 5,
        "strategy": "threaded",
        "host": "127.0.0.1",
    }
    assert {name: getattr(settings, name) for name in expected} == expected
    assert [getattr(settings, name) for name in WEIGHTS] == [0.40, 0.15, 0.20, 0.15, 0.10]
    assert {row.source for row in explain(settings)} == {"default"}


@pytest.mark.parametrize("variable", SEED)
def test_every_name_of_the_environment_is_read(monkeypatch, variable):
    name, text, value = SEED[variable]
    monkeypatch.setenv(variable, text)
    settings = Settings()
    assert getattr(settings, name) == value
    assert settings.source(name) == variable


def test_file_then_environment_then_argument(monkeypatch):
    write("memory:\n  max_context_messages: 5\n  recent_messages: 6\n  chain_limit: 7\n")
    monkeypatch.setenv("MEMORY_RECENT_MESSAGES", "16")
    monkeypatch.setenv("MEMORY_CHAIN_LIMIT", "17")
    settings = Settings(chain_limit=27)
    assert (settings.max_context_messages, settings.recent_messages, settings.chain_limit) == (5, 16, 27)
    sources = {row.name: row.source for row in explain(settings)}
    assert sources["max_context_messages"] == CONFIG_FILE
    assert sources["recent_messages"] == "MEMORY_RECENT_MESSAGES"
    assert sources["chain_limit"] == "argument"
    assert sources["strategy"] == "default"


def test_a_path_may_be_given_as_one():
    settings = Settings(archive_folder=Path("kept") / "archives")
    assert settings.archive_folder == settings.changed(archive_folder=Path("kept/archives")).archive_folder
    assert settings.archive_folder == str(Path("kept/archives"))


def test_the_file_may_be_named(monkeypatch):
    write("memory: {port: 1111}")
    write("memory: {port: 2222}", "other.yaml")
    write("memory: {port: 3333}", "third.yaml")
    assert Settings().port == 1111
    monkeypatch.setenv("ROOMLORE_CONFIG", "other.yaml")
    assert (Settings().port, Settings().source("port")) == (2222, "other.yaml")
    assert Settings("third.yaml").port == 3333


def test_an_empty_value_is_not_given(monkeypatch):
    write("memory:\n  strategy:\n")
    monkeypatch.setenv("MEMORY_PORT", "")
    settings = Settings(host=None)
    assert (settings.strategy, settings.port, settings.host) == ("threaded", 8765, "127.0.0.1")


@pytest.mark.parametrize("text", ["", "memory:\n", "---\n", "\ufeffmemory: {}\n"])
def test_an_empty_file_is_fine(text):
    write(text)
    assert Settings().max_context_messages == 20


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("memory: [1, 2]", "must map names to values"),
        ("- memory", "one section, `memory:`"),
        ("port: 1", "one section, `memory:`"),
        ("memory: {port: 1}\nmemroy: {}", "one section, `memory:`"),
        ("memory: {port: [", "cannot be read"),
        ("memory:\n\tport: 1", "roomlore.yaml cannot be read: line 2, column 1: found character '\\t'"),
        ("memory: \x07", "cannot be read: unacceptable character #x0007"),
        ("memory: {prot: 1}", "no setting 'prot' (roomlore.yaml); did you mean port?"),
        ("memory: {port: 70000}", "port is 70000 (from roomlore.yaml); it must be a whole number from 0 to 65535."),
        ("memory: {port: yes}", "port is true (from roomlore.yaml)"),
        ("memory: {port: !!python/object:os.system {}}", "cannot be read"),
        ("memory: {1: 2}", "no setting '1'"),
    ],
)
def test_a_bad_file_says_what_to_mend(text, says):
    write(text)
    with pytest.raises(InvalidInput) as caught:
        Settings()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"memory: \xff\xfe"])
def test_a_named_file_that_cannot_be_read(content):
    if content is not None:
        Path("named.yaml").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"named\.yaml cannot be read"):
        Settings("named.yaml")


BAD = [
    ("max_context_messages", "0"),
    ("max_context_messages", "201"),
    ("max_context_messages", "2.5"),
    ("max_context_messages", "many"),
    ("recent_messages", "-1"),
    ("time_window_hours", "0"),
    ("time_window_hours", "nan"),
    ("time_window_hours", "inf"),
    ("relevance_threshold", "1.1"),
    ("reply_chain_weight", "-0.1"),
    ("half_life_minutes", "0"),
    ("context_build_timeout_seconds", "0"),
    ("enable_intelligent_memory", "maybe"),
    ("strategy", "clever"),
    ("token_encoding", "p50k_base"),
    ("database_url", "mysql://u@h/d"),
    ("experiment", '{"a": {}}'),
    ("experiment", "nonsense"),
    ("port", "65536"),
    ("log_level", "loud"),
]


@pytest.mark.parametrize(("name", "text"), BAD)
def test_a_bad_value_names_setting_value_source_and_range(monkeypatch, name, text):
    variable = f"MEMORY_{name.upper()}"
    monkeypatch.setenv(variable, text)
    with pytest.raises(InvalidInput) as caught:
        Settings()
    said = str(caught.value)
    assert variable in said
    assert range_of(name) in said
    if text != "nonsense":
        assert name in said


def test_two_bad_values_are_both_named():
    with pytest.raises(InvalidInput) as caught:
        Settings(port=-1, strategy="clever")
    assert "port is -1" in str(caught.value)
    assert "strategy is clever" in str(caught.value)


def test_all_weights_zero_is_refused():
    with pytest.raises(InvalidInput, match="at least one of reply_chain_weight"):
        Settings(**dict.fromkeys(WEIGHTS, 0))


def test_a_mistyped_variable_is_named(monkeypatch):
    monkeypatch.setenv("MEMORY_MAX_CONTEXT_MESAGES", "3")
    with pytest.raises(InvalidInput, match="did you mean MEMORY_MAX_CONTEXT_MESSAGES"):
        Settings()


@pytest.mark.parametrize("name", ["MEMORY_LIMIT", "MEMORY_AVAILABLE", "MEMORY_MB", "MEMORY_MAX"])
def test_a_variable_of_somebody_else_is_left_alone_and_listed(monkeypatch, name):
    monkeypatch.setenv(name, "512")
    assert Settings().ignored == (name,)


def test_a_mistyped_argument_is_named():
    with pytest.raises(InvalidInput, match="did you mean strategy"):
        Settings(stratgy="recent")


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1


def test_hosts_from_text_and_list(monkeypatch):
    monkeypatch.setenv("MEMORY_ALLOWED_HOSTS", "chat.example, bot.example,")
    assert Settings().allowed_hosts == ("chat.example", "bot.example")
    assert Settings(allowed_hosts=["x"]).allowed_hosts == ("x",)


def test_an_experiment_from_every_source(monkeypatch):
    write("memory:\n  experiment:\n    control:\n    heavy: {strategy: weighted, half_life_minutes: 3}\n")
    arms = {"control": {}, "heavy": {"strategy": "weighted", "half_life_minutes": 3}}
    assert Settings().experiment == arms
    monkeypatch.setenv("MEMORY_EXPERIMENT", '{"a": {}, "b": {"max_context_messages": 3}}')
    assert Settings().experiment == {"a": {}, "b": {"max_context_messages": 3}}


@pytest.mark.parametrize("changes", [{"port": 1}, {"max_context_messages": 0}, {"stratgy": "x"}, {"strategy": "x"}])
def test_an_arm_can_only_have_what_a_room_can(changes):
    with pytest.raises(InvalidInput, match=next(iter(changes))):
        Settings(experiment={"a": {}, "b": changes})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://bot:p@ss:w/rd@db/lore", "postgresql://bot:***@db/lore"),
        (
            "postgresql://db/lore?user=bot&password=secret&sslmode=on",
            "postgresql://db/lore?user=bot&password=***&sslmode=on",
        ),
        ("sqlite:///a.db", "sqlite:///a.db"),
    ],
)
def test_a_password_of_any_form_is_masked(url, shown):
    assert {row.name: row.value for row in explain(Settings(database_url=url))}["database_url"] == shown


def test_a_password_is_never_shown():
    settings = Settings(database_url="postgresql://bot:secret@db/lore")
    shown = {row.name: row.value for row in explain(settings)}
    assert shown["database_url"] == "postgresql://bot:***@db/lore"
    with pytest.raises(InvalidInput) as caught:
        Settings(database_url="mysql://bot:secret@db/lore")
    assert "secret" not in str(caught.value)


def test_every_setting_has_a_description_and_a_range():
    for row in explain(Settings()):
        assert row.description.endswith("."), row.name
        assert range_of(row.name)


def test_context_options_say_what_the_settings_say():
    settings = Settings(max_context_messages=7, mention_relation_weight=0.5, strategy="weighted")
    flat = context_options(settings).flat()
    assert flat == {name: getattr(settings, name) for name in flat}
    assert context_options(Settings()) == ContextOptions()


NUMBERS = [name for name in ContextOptions().flat() if isinstance(getattr(Settings(), name), int | float)]


@pytest.mark.parametrize("name", [n for n in NUMBERS if known_fields()[n].annotation is not bool and n not in WEIGHTS])
def test_a_room_may_have_what_the_settings_may(name):
    low, high = (float(part) for part in re.findall(r"[\d.]+", range_of(name)))
    kind = known_fields()[name].annotation
    options = ContextOptions()
    assert options.overridden({name: kind(high)}).flat()[name] == getattr(Settings(**{name: high}), name)
    for outside in (high + 1, low - 1):
        with pytest.raises(InvalidInput, match=name):
            Settings(**{name: kind(outside)})
        with pytest.raises(InvalidInput, match=name):
            options.overridden({name: kind(outside)})


@pytest.mark.parametrize("zone", ["Mars", "Asia/Shangai", "../etc/passwd", "\0", "Europe"])
def test_an_unknown_time_zone_is_refused_in_words(zone):
    with pytest.raises(InvalidInput, match="it must be a zone such as Europe/Berlin"):
        Settings(time_zone=zone)


def test_a_known_time_zone_is_taken():
    assert Settings(time_zone="Asia/Shanghai").time_zone == "Asia/Shanghai"


@pytest.mark.parametrize(
    ("variable", "zone"),
    [
        ("Asia/Shanghai", "Asia/Shanghai"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("Etc/UTC", "UTC"),
        (":Zulu", "UTC"),
        ("Etc/GMT", "UTC"),
        ("Etc/GMT-8", "Etc/GMT-8"),
        ("CST-8", "UTC"),
        ("Mars/Base", "UTC"),
        ("../etc/passwd", "UTC"),
    ],
)
def test_without_one_the_machines_own_time_zone_holds(monkeypatch, variable, zone):
    monkeypatch.setenv("TZ", variable)
    assert (Settings().search.time_zone, Settings().search.zone.key) == ("", zone)
    assert Settings(time_zone="Asia/Tokyo").search.zone.key == "Asia/Tokyo"


def test_the_time_zone_of_a_machine_without_the_variable_is_a_zone(monkeypatch):
    monkeypatch.delenv("TZ")
    assert ZoneInfo(Settings().search.zone.key)


@pytest.mark.parametrize("name", ["embedding_api_key", "qdrant_api_key"])
def test_secrets_are_not_shown(name):
    settings = Settings(**{name: "hush"})
    shown = {row.name: row.value for row in explain(settings)}
    assert shown[name] == "***"


def test_qdrant_needs_an_address():
    with pytest.raises(InvalidInput, match="qdrant_url"):
        Settings(vectors="qdrant")


@pytest.mark.parametrize("cron", ["daily", "0 25 * * *", "0 2 30 2 *"])
def test_a_schedule_that_is_none_is_refused_in_words(cron):
    with pytest.raises(InvalidInput) as refused:
        Settings(evolve_schedule=cron)
    assert "cron expression" in str(refused.value)
    assert cron in str(refused.value)


def test_a_schedule_may_be_left_out():
    assert Settings(evolve_schedule=" ").evolve_schedule == ""


def test_the_evolving_model_must_be_one_of_the_models():
    with pytest.raises(InvalidInput, match="evolve_model is 'mine'"):
        Settings(evolve_model="mine")
    own = {"mine": {"providers": [{"name": "ollama", "model_id": "qwen3:8b"}]}}
    assert Settings(evolve_model="mine", models=own).evolve_model == "mine"


WAYS = {
    "the environment": lambda patch: patch.setenv("MEMORY_EVOLVE_LEASE_SECONDS", "5"),
    "the file": lambda _: write("memory: {evolve_lease_seconds: 5}"),
    "a section of the file": lambda _: write("memory: {evolution: {evolve_lease_seconds: 5}}"),
    "an argument": lambda _: {"evolve_lease_seconds": 5},
    "a section as an argument": lambda _: {"redis": {"timeout_seconds": 5}},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_retired_setting_warns_wherever_it_is_given_and_does_nothing(monkeypatch, way):
    given = WAYS[way](monkeypatch)
    with pytest.warns(UserWarning, match=r"_seconds \(.*\) is no longer a setting; its value is (60|0\.25)\.") as told:
        settings = Settings(**given) if isinstance(given, dict) else Settings()
    assert len(told) == 1
    assert settings.ignored == ()
    assert {row.source for row in explain(settings)} == {"default"}
    assert not set(RETIRED) & set(known_fields())


@pytest.mark.parametrize("name", PLACES)
def test_a_retired_setting_is_told_with_the_value_of_the_code(name):
    assert RETIRED[name].startswith(
        f"{resolve_name(PLACES[name]):.10g}" if name != "retention_schedule" else "30 3 * * *"
    )
