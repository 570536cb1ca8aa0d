"""A JupyterLab server on a fresh copy of the course, and a real browser on it.

These tests run by `make browser` only (it sets LESSON_BROWSER), because they need a browser and minutes. The browser is the
system's chromium, driven by playwright; where either is missing they are skipped and say so. Nothing leaves the machine.

Screenshots go to build/screenshots, for a person to look at.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lessonlib.lab.start import lab_command, lab_environment, start

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
LAPTOP = {"width": 1366, "height": 768}
TOKEN = "lesson"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 90


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_not()
    for item in items:
        if "tests/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.enable_socket)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


def why_not() -> str:
    """Why these tests cannot run here, "" if they can."""
    if not os.environ.get("LESSON_BROWSER"):
        return "browser tests run by `make browser`"
    if browser_path() is None:
        return f"no browser: none of {', '.join(BROWSERS)} is installed"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return ""


def browser_path() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@dataclass
class Lab:
    """A running JupyterLab. folder: the learner's copy of the course."""

    url: str
    folder: Path

    def notebook(self, name: str) -> str:
        """The address of one notebook, with every panel but the notebook closed."""
        return f"{self.url}/doc/tree/{name}?token={TOKEN}&reset"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course as `lesson start` writes it."""
    return start(tmp_path_factory.mktemp("learner") / "course", ROOT).folder


@pytest.fixture(scope="session", params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def lab(folder: Path, theme: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab in one theme, with settings of its own; stopped at the end."""
    config = tmp_path_factory.mktemp(f"config-{theme}")
    settings = config / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    chosen = {"theme": "JupyterLab Dark" if theme == "dark" else "JupyterLab Light"}
    (settings / "themes.jupyterlab-settings").write_text(json.dumps(chosen), encoding="utf-8")
    port = free_port()
    options = [f"--port={port}", f"--IdentityProvider.token={TOKEN}", "--ServerApp.port_retries=0", "--no-browser",
               "--expose-app-in-browser"]  # fmt: skip
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    places = {"JUPYTER_CONFIG_DIR": "", "JUPYTERLAB_SETTINGS_DIR": "lab/user-settings", "JUPYTER_DATA_DIR": "data",
              "IPYTHONDIR": "ipython"}  # fmt: skip
    env = {**lab_environment(), **{name: str(config / place) for name, place in places.items()}}
    log = (config / "log").open("wb")
    server = subprocess.Popen(lab_command(*options), cwd=folder, env=env, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", server, config / "log")
        yield Lab(f"http://127.0.0.1:{port}", folder)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--force-color-profile=srgb", "--font-render-hinting=none"]
        instance = playwright.chromium.launch(executable_path=browser_path(), args=arguments)
        yield instance
        instance.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page at laptop width that may ask nobody but this machine."""
    context = browser.new_context(viewport=LAPTOP)
    asked: list[str] = []

    def only_here(route: Any) -> None:
        url = route.request.url
        if url.startswith(("http://127.0.0.1", "data:", "blob:")):
            route.continue_()
        else:
            asked.append(url)
            route.abort()

    context.route("**/*", only_here)
    one = context.new_page()
    one.set_default_timeout(PATIENCE * 1000)
    yield one
    context.close()
    assert asked == [], f"the page asked the network: {asked}"
