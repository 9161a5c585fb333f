"""Where a server, a model and a key come from, and that a key is never shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import ModelBounds, OpenAiClient
from fsm_agent.errors import ModelNotSet, UsageError
from fsm_agent.llm.address import Address
from fsm_agent.llm.settings import Given, ModelSettings, load_model_settings, read_dotenv

ROOT = Path(__file__).parents[2]
KEY = "sk-5up3r-s3cret"


def load(folder: Path, environment: dict[str, str] | None = None, **given: Any) -> ModelSettings:
    return load_model_settings(Given(**given), environment or {}, folder)


def key_of(settings: ModelSettings) -> str | None:
    return settings.key.get_secret_value() if settings.key else None


def test_an_argument_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    tmp_path.joinpath(".env").write_text(
        "LLM_BASE_URL=http://file/v1\nLLM_MODEL=file\nLLM_API_KEY=file-key\nLLM_TEMPERATURE=0.7\nLLM_MAX_TOKENS=50\n"
    )
    environment = {"LLM_MODEL": "env", "LLM_API_KEY": "env-key", "LLM_TEMPERATURE": "", "LLM_TIMEOUT": "9.5"}
    found = load(tmp_path, environment, key="my-key")
    assert (found.base_url, found.model, key_of(found)) == ("http://file/v1", "env", "my-key")
    assert (found.temperature, found.max_tokens, found.timeout) == (0.7, 50, 9.5)
    assert load(tmp_path, environment, temperature=0.0).temperature == 0.0
    assert key_of(load(tmp_path, environment, key="")) is None


def test_without_a_word_on_it_the_temperature_is_low_and_there_is_no_key(tmp_path: Path) -> None:
    found = load(tmp_path, base_url="http://h/v1", model="m")
    assert (found.temperature, found.key, found.max_tokens, found.timeout) == (0.1, None, None, None)


@pytest.mark.parametrize(
    ("given", "missing"),
    [({}, "LLM_BASE_URL"), ({"base_url": "http://h"}, "LLM_MODEL"), ({"model": "m"}, "LLM_BASE_URL")],
)
def test_a_server_or_model_that_nobody_names_is_said_by_its_variable(
    given: dict[str, str], missing: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelNotSet, match=missing) as caught:
        load(tmp_path, **given)
    assert ".env.example" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LLM_TEMPERATURE", "hot"), ("LLM_TEMPERATURE", "nan"), ("LLM_TEMPERATURE", "3"), ("LLM_TEMPERATURE", "-1"),
        ("LLM_MAX_TOKENS", "0"), ("LLM_MAX_TOKENS", "many"), ("LLM_MAX_TOKENS", "1.5"), ("LLM_TIMEOUT", "soon"),
    ],
)  # fmt: skip
def test_a_variable_that_makes_no_sense_is_refused(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        load(tmp_path, {"LLM_BASE_URL": "http://h", "LLM_MODEL": "m", name: text})


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel", "a\tb", "\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_repeated(key: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, base_url="http://h", model="m", key=key)
    assert key not in repr(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"), ("export A=b", "b"), ("  A = b  ", "b"), ("A=", ""), ("A=b # note", "b"), ("A=b#c", "b#c"),
        ("A=# note", ""), ('A="b # c" # note', "b # c"), ("A='b \\n c'", "b \\n c"), ('A="b\\n\\"c\\\\"', 'b\n"c\\'),
        ("A=b c", "b c"), ('A="b', '"b'), ("A=a=b==", "a=b=="), ("# A=b", None), ("A", None), ("=b", None),
        ("A B=c", None), ("\ufeffA=b", "b"), ("A=你好", "你好"), ("A=b\r", "b"),
    ],
)  # fmt: skip
def test_a_line_of_an_env_file_is_read_as_people_write_them(line: str, value: str | None, tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_bytes(f"{line}\nZ=last\n".encode())
    assert read_dotenv(path) == ({"A": value} if value is not None else {}) | {"Z": "last"}


def test_an_env_file_that_cannot_be_read_is_named_and_one_that_is_not_there_is_no_fault(tmp_path: Path) -> None:
    assert read_dotenv(tmp_path / ".env") == {}
    tmp_path.joinpath(".env").write_bytes(b"LLM_API_KEY=\xff\xfe")
    with pytest.raises(UsageError, match=r"\.env"):
        read_dotenv(tmp_path / ".env")
    tmp_path.joinpath("sub").mkdir()
    tmp_path.joinpath("sub/.env").mkdir()
    assert read_dotenv(tmp_path / "sub/.env") == {}


def test_the_example_file_holds_every_variable_and_no_key() -> None:
    example = read_dotenv(ROOT / ".env.example")
    assert {*example} == {"LLM_BASE_URL", "LLM_MODEL", "LLM_API_KEY"}
    assert example["LLM_API_KEY"] == ""
    text = ROOT.joinpath(".env.example").read_text(encoding="utf-8")
    assert all(name in text for name in ("LLM_TEMPERATURE", "LLM_MAX_TOKENS", "LLM_TIMEOUT"))
    assert ".env" in ROOT.joinpath(".gitignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("base_url", "url", "shown"),
    [
        ("http://h/v1", "http://h/v1/chat/completions", "h/v1/chat/completions"),
        ("https://h:8443/v1/", "https://h:8443/v1/chat/completions", "h:8443/v1/chat/completions"),
        ("http://h", "http://h/chat/completions", "h/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions", "h/v1/chat/completions"),
        (
            "https://me:pa%40ss@h/v1?api-version=2",
            "https://h/v1/chat/completions?api-version=2",
            "h/v1/chat/completions",
        ),
        ("http://[::1]:80/v1", "http://[::1]:80/v1/chat/completions", "[::1]:80/v1/chat/completions"),
    ],
)
def test_a_base_url_is_taken_apart_and_shown_without_what_is_secret(base_url: str, url: str, shown: str) -> None:
    address = Address.of(base_url)
    query = f"?{address.query.get_secret_value()}" if address.query else ""
    assert (address.url + query, address.shown) == (url, shown)
    if "@" in base_url:
        assert address.user is not None
        assert address.user.get_secret_value() == "me:pa@ss"
        assert {"pa@ss", "2"} <= {*address.secrets}
        assert "pa@ss" not in repr(address)


@pytest.mark.parametrize(
    "base_url", ["h/v1", "ftp://h", "http://", "http://h:99999", "http://h o", "http://[::1", "x\ny"]
)
def test_what_is_no_address_is_refused_without_being_repeated(base_url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Address.of(base_url)
    assert base_url not in str(caught.value)


def test_only_this_machine_is_local() -> None:
    local = {
        host: Address.of(f"http://{host}/v1").local for host in ("127.0.0.2", "localhost", "[::1]", "10.0.0.1", "h")
    }
    assert local == {"127.0.0.2": True, "localhost": True, "[::1]": True, "10.0.0.1": False, "h": False}


def test_a_key_and_a_password_at_once_are_refused() -> None:
    with pytest.raises(UsageError, match="who asks"):
        OpenAiClient("http://me:word@h/v1", model="m", key=KEY)


def test_a_client_shows_neither_its_key_nor_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for client in (
        OpenAiClient("http://h/v1?token=qu3ry", model="m", key=KEY),
        OpenAiClient("http://me:pa55w@h/v1", model="m", key=""),
    ):
        server = client._server
        texts = [repr(client), str(client), repr(server), repr(server.address), repr(vars(client)), repr(server.key)]
        assert not [text for text in texts for secret in (KEY, "pa55w", "qu3ry") if secret in text]
    settings = load(tmp_path, base_url="http://me:pa55w@h/v1", model="m", key=KEY)
    assert KEY not in repr(settings)
    assert "pa55w" not in repr(settings)
    assert KEY not in repr(Given(key=KEY))


@pytest.mark.parametrize(
    "wrong", [{"total": 0}, {"retries": -1}, {"read": float("nan")}, {"connect": "1"}, {"max_bytes": True}]
)
def test_bounds_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ModelBounds(**wrong)


def test_a_client_does_not_import_httpx_before_it_asks() -> None:
    code = (
        "import sys; from fsm_agent import OpenAiClient, ModelRequest; OpenAiClient('http://h', model='m', key='');"
        "sys.exit('httpx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_the_time_for_an_answer_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_TIMEOUT", "7")
    assert OpenAiClient("http://h", model="m", key="")._server.bounds.total == 7
    assert OpenAiClient("http://h", model="m", key="", bounds=ModelBounds(total=9))._server.bounds.total == 9
