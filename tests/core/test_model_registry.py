"""The registry of models: what ships, what a configuration adds, and what a bad one is told."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roomlore.core.chat import EVOLVE_MODEL, KNOWN_PROVIDERS, SUMMARY_MODEL, ModelRegistry
from roomlore.core.errors import InvalidInput, NotFound
from roomlore_testkit.case_table import all_cases

CHAT = {"display_name": "聊天", "providers": [{"name": "ollama", "model_id": "qwen3:8b"}]}


def read(models=None, providers=None) -> ModelRegistry:
    return ModelRegistry.read(models or {}, providers or {})


def offers(entry) -> list[tuple[str, str]]:
    return [(offer.provider.name, offer.model_id) for offer in entry.offers]


def test_the_models_that_ship_name_every_provider_with_a_key_in_order():
    order = ["openrouter", "siliconflow", "deepseek", "dashscope", "zhipu", "moonshot", "volcengine"]
    for name in (SUMMARY_MODEL, EVOLVE_MODEL):
        entry = read().require(name)
        assert entry.internal
        assert [provider for provider, _ in offers(entry)] == order
    assert offers(read().require(SUMMARY_MODEL))[:2] == [
        ("openrouter", "google/gemma-3-12b-it"),
        ("siliconflow", "Qwen/Qwen2.5-7B-Instruct"),
    ]
    assert offers(read().require(EVOLVE_MODEL))[:2] == [
        ("openrouter", "google/gemini-2.5-flash"),
        ("siliconflow", "Qwen/Qwen2.5-72B-Instruct"),
    ]


def test_the_models_that_ship_try_the_providers_of_ones_own_models_first():
    own = {"chat": {"providers": [{"name": "zhipu", "model_id": "m"}, {"name": "deepseek", "model_id": "m"}]}}
    names = [provider for provider, _ in offers(read(own).require(SUMMARY_MODEL))]
    assert names == ["deepseek", "zhipu", "openrouter", "siliconflow", "dashscope", "moonshot", "volcengine"]


def test_models_that_would_think_first_are_told_not_to():
    options = {offer.provider.name: offer.options for offer in read().require(SUMMARY_MODEL).offers if offer.options}
    assert options == {
        "deepseek": {"thinking": {"type": "disabled"}},
        "dashscope": {"enable_thinking": False},
        "volcengine": {"thinking": {"type": "disabled"}},
    }


def test_an_offer_has_options():
    form = {"name": "ollama", "model_id": "m", "options": {"enable_thinking": False}}
    (offer,) = read({"chat": {"providers": [form]}}).require("chat").offers
    assert offer.options == {"enable_thinking": False}
    with pytest.raises(InvalidInput, match=r"options of model 'chat' at 'ollama' must be a mapping"):
        read({"chat": {"providers": [{**form, "options": "fast"}]}})


def test_internal_models_are_not_listed():
    registry = read({"chat": CHAT, "quiet": {**CHAT, "internal": True}})
    assert [entry.model_id for entry in registry.list_available_models()] == ["chat"]
    assert [entry.model_id for entry in registry.all()] == [SUMMARY_MODEL, EVOLVE_MODEL, "chat", "quiet"]


def test_an_entry_takes_the_place_of_one_that_ships_and_null_takes_it_away():
    assert read({SUMMARY_MODEL: CHAT}).require(SUMMARY_MODEL).offers[0].model_id == "qwen3:8b"
    assert read({SUMMARY_MODEL: None}).find(SUMMARY_MODEL) is None
    assert read({"never": None}).all() == read().all()


def test_the_display_name_is_the_models_own_where_none_is_given():
    assert read({"chat": CHAT}).require("chat").display_name == "聊天"
    assert read({"chat": {**CHAT, "display_name": None}}).require("chat").display_name == "chat"


def test_the_known_providers():
    chinese = {"siliconflow", "deepseek", "dashscope", "zhipu", "moonshot", "volcengine"}
    assert set(KNOWN_PROVIDERS) == {"openrouter", "openai", "ollama"} | chinese
    assert KNOWN_PROVIDERS["ollama"].key_variable is None
    assert KNOWN_PROVIDERS["openai"].limit_field == "max_completion_tokens"


def test_an_own_provider():
    models = {"chat": {"providers": [{"name": "机房", "model_id": "m"}]}}
    registry = read(models, {"机房": {"base_url": "http://10.0.0.7:8000/v1/", "key_variable": "ROOM_KEY"}})
    provider = registry.require("chat").offers[0].provider
    assert (provider.base_url, provider.key_variable) == ("http://10.0.0.7:8000/v1", "ROOM_KEY")
    assert registry.key_variables() >= {"ROOM_KEY", "OPENROUTER_API_KEY", "DASHSCOPE_API_KEY"}


def test_a_known_provider_keeps_what_its_entry_leaves_out():
    models = {"chat": {"providers": [{"name": "openai", "model_id": "m"}, {"name": "ollama", "model_id": "m"}]}}
    forms = {"openai": {"base_url": "https://proxy.example/v1"}, "ollama": {"key_variable": "MINE"}}
    openai, ollama = (offer.provider for offer in read(models, forms).require("chat").offers)
    assert (openai.key_variable, openai.limit_field) == ("OPENAI_API_KEY", "max_completion_tokens")
    assert (ollama.base_url, ollama.key_variable) == ("http://127.0.0.1:11434/v1", "MINE")
    no_key = read(models, {"openai": {"key_variable": None}}).require("chat").offers[0].provider
    assert no_key.key_variable is None


def test_an_unknown_model_is_told_what_there_is():
    with pytest.raises(NotFound, match=r"no model 'x'; there are chat\.$"):
        read({"chat": CHAT}).require("x")
    with pytest.raises(NotFound, match="none; name some under `models:`"):
        read().require("x")


OFFER = {"name": "ollama", "model_id": "m"}
SECRET = "sk-0123456789"


BAD_MODELS = [
    ([], "models must be a mapping"),
    ({1: CHAT}, "Every name under models must be a text"),
    ({" ": CHAT}, "Every name under models must be a text"),
    ({"chat": []}, "model 'chat' must be a mapping, such as {providers: "),
    ({"chat": SECRET}, "model 'chat' must be a mapping"),
    ({"chat": {}}, "model 'chat' needs providers: a list of"),
    ({"chat": {"providers": []}}, "model 'chat' needs providers: a list of"),
    ({"chat": {"providers": "ollama"}}, "model 'chat' needs providers: a list of"),
    ({"chat": {"providers": b"ollama"}}, "model 'chat' needs providers: a list of"),
    ({"chat": {"providers": OFFER}}, "model 'chat' needs providers: a list of"),
    ({"chat": {"providers": ["ollama"]}}, "A provider of model 'chat' must be a mapping"),
    (
        {"chat": {"providers": [{**OFFER, "name": "nix"}]}},
        "model 'chat' names a provider that nobody knows; there are",
    ),
    ({"chat": {"providers": [{**OFFER, "name": ["a"]}]}}, "names a provider that nobody knows"),
    ({"chat": {"providers": [{"name": "ollama"}]}}, "model 'chat' at 'ollama' needs a model_id"),
    ({"chat": {"providers": [{**OFFER, "model_id": " "}]}}, "needs a model_id"),
    ({"chat": {"providers": [{**OFFER, "model": "m"}]}}, "has no field 'model'; there are name, model_id"),
    ({"chat": {**CHAT, "internal": "yes"}}, "internal of model 'chat' must be true or false"),
    ({"chat": {**CHAT, "display_name": 7}}, "display_name of model 'chat' must be a text"),
    ({"chat": {**CHAT, "provider": []}}, "model 'chat' has no field 'provider'"),
]


def test_a_bad_model_is_told_what_to_mend():
    with all_cases() as case:
        for models, says in BAD_MODELS:
            with case(models):
                with pytest.raises(InvalidInput) as refused:
                    ModelRegistry.read(models, {})
                assert says in str(refused.value)
                assert SECRET not in str(refused.value)


URL = "http://localhost:8000/v1"


BAD_PROVIDERS = [
    ("x", "providers must be a mapping"),
    ({"here": SECRET}, "provider 'here' must be a mapping, such as {base_url: "),
    ({"openai": None}, "provider 'openai' must be a mapping"),
    ({"here": {}}, "provider 'here' needs a base_url"),
    *[
        ({"here": {"base_url": url}}, "provider 'here' needs a base_url, such as")
        for url in (7, "localhost:8000", "ftp://h/v1", "http://", "http://h:port/v1", "http://h:0/", "http://[::1/v1",
                    "http://h/v1?key=x", "http://h/v1#x", "http://h /v1", "http://h/\nv1", "http://h\ud800/v1")
    ],
    ({"here": {"base_url": f"http://me:{SECRET}@h/v1"}}, "base_url of provider 'here' must hold no password"),
    ({"here": {"base_url": URL, "key_variable": SECRET}}, "an environment variable, never the key itself."),
    ({"here": {"base_url": URL, "key_variable": 7}}, "must be the name of an environment variable"),
    ({"here": {"base_url": URL, "api_key": SECRET}}, "has no field 'api_key'; there are base_url, key_variable"),
    ({"here": {"base_url": URL, "limit_field": "n"}}, "must be max_tokens or max_completion_tokens"),
]  # fmt: skip


def test_a_bad_provider_is_told_what_to_mend_and_no_key_is_repeated():
    with all_cases() as case:
        for providers, says in BAD_PROVIDERS:
            with case(repr(providers)):
                with pytest.raises(InvalidInput) as refused:
                    ModelRegistry.read({}, providers)
                assert says in str(refused.value)
                assert SECRET not in str(refused.value)


names = st.sampled_from(["chat", SUMMARY_MODEL, "openai", "name", "model_id", "providers", "base_url", "internal", ""])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | names
json = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))


@given(models=json, providers=json)
@example(models={"chat": {"providers": [OFFER]}}, providers={"openai": {"base_url": URL}})
@settings(max_examples=300)
def test_any_json_is_a_registry_or_one_clear_sentence(models, providers):
    try:
        registry = ModelRegistry.read(models, providers)
    except InvalidInput as refused:
        sentence = str(refused)
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert len(sentence) < 400
    else:
        assert all(entry.offers for entry in registry.all())
