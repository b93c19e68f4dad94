"""Two promises users feel: the client is light, and the scheduler needs nothing."""

import subprocess
import sys

import pytest

import realtime_tts.client


def modules_after(statement: str) -> set[str]:
    """Modules a fresh interpreter has loaded after `statement`."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement", ["import realtime_tts", "import realtime_tts.cli", "import realtime_tts.cli.say"]
)
def test_the_client_and_the_command_line_import_nothing_heavy(statement: str) -> None:
    heavy = {"torch", "numpy", "starlette", "uvicorn", "tokenizers", "prometheus_client"}
    assert not heavy & modules_after(statement)


def test_a_server_starts_without_the_client_and_progress_bars() -> None:
    """Bars are for a terminal."""
    found = modules_after("import realtime_tts.cli.serve, realtime_tts.server.run")
    assert "realtime_tts.server.app" in found
    assert not {"realtime_tts.client", "websockets.asyncio.client", "rich.progress"} & found


def test_an_engine_s_process_and_the_voice_worker_start_without_asyncio() -> None:
    child = "from realtime_tts.parent_process import run; import realtime_tts"
    found = modules_after(f"{child}.engine.child, realtime_tts.engine.load")
    found |= modules_after(f"{child}.voices.worker")
    assert not {"asyncio", "ssl"} & found


def test_every_name_of_the_package_is_there() -> None:
    for name in realtime_tts.__all__:
        assert getattr(realtime_tts, name) is not None
    public = set(realtime_tts.client.__all__) | {"LexiconClient", "VoiceClient"}
    assert public <= set(realtime_tts.__all__)


def test_the_scheduler_imports_only_the_standard_library() -> None:
    third_party = {"torch", "numpy", "msgspec", "realtime_tts", "asyncio", "socket"}
    assert not third_party & modules_after("import tts_scheduler")


def test_the_fake_engine_runs_without_torch() -> None:
    assert "torch" not in modules_after("import realtime_tts.engine.fake")


def test_a_checkpoint_folder_is_found_without_the_hub_s_client() -> None:
    found = modules_after("from realtime_tts.checkpoint import find_checkpoint as f; f('.')")
    assert "huggingface_hub" not in found
