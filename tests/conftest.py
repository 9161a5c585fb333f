"""What tests of any folder may ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests import model, postgres


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL, one for each process of the test run; `?schema=…` keeps tests apart."""
    if postgres.binaries() is None:
        if os.environ.get(postgres.REQUIRED) == "required":
            pytest.fail("no PostgreSQL is installed, and it is required here")
        pytest.skip("no PostgreSQL server is installed")
    server = postgres.start()
    yield server.url
    server.stop()


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The base URL of a real model's server, as .ci/model gets it."""
    folder = model.folder()
    if folder is None:
        pytest.skip(model.MISSING)
    server = model.start(folder)
    yield server.base_url
    server.stop()
