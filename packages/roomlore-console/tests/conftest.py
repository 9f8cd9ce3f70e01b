"""What the tests of every face begin with."""

from face_fixtures import (  # noqa: F401 - fixtures
    _clean_environment,
    app,
    connect,
    http,
    lore,
    make_message,
    settings,
)
