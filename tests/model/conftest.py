"""A model of somebody's own, named in the environment. Only `make test-model` asks it anything."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from said import Listener, RealModel

import roomlore
from roomlore.services.models import ModelService
from roomlore.wiring import open_models

HERE = Path(__file__).parent
URL, MODEL_ID, KEY = "ROOMLORE_TEST_MODEL_URL", "ROOMLORE_TEST_MODEL_ID", "ROOMLORE_TEST_MODEL_KEY"
SECONDS, LIMIT_FIELD = "ROOMLORE_TEST_MODEL_SECONDS", "ROOMLORE_TEST_MODEL_LIMIT_FIELD"
LACKING = (
    f"Set {URL} to the address of a server that speaks OpenAI's protocol, such as http://127.0.0.1:11434/v1, "
    f"and {MODEL_ID} to a model there; {KEY} too where it wants a key."
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only whoever names this folder means it: a run of all tests passes it by."""
    named = (Path(argument.split("::")[0]).resolve() for argument in config.args)
    return None if any(HERE in (path, *path.parents) for path in named) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if any(HERE in item.path.parents for item in items) and not (os.environ.get(URL) and os.environ.get(MODEL_ID)):
        raise pytest.UsageError(LACKING)


@pytest.fixture(scope="session")
def real_model() -> RealModel:
    return RealModel(
        url=os.environ[URL],
        model_id=os.environ[MODEL_ID],
        key_variable=KEY if os.environ.get(KEY) else None,
        limit_field=os.environ.get(LIMIT_FIELD) or "max_tokens",
        seconds=float(os.environ.get(SECONDS) or 120),
    )


@pytest.fixture
def settings(real_model: RealModel) -> roomlore.Settings:
    return real_model.settings()


@pytest.fixture
async def models(settings: roomlore.Settings) -> AsyncIterator[ModelService]:
    async with open_models(settings) as opened:
        yield opened


@pytest.fixture
def listener(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Listener:
    """Shows what the model says while the tests run, and knows why an answer was passed over."""
    return Listener(name=request.node.name, terminal=capsys, log=caplog)
