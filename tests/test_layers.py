"""Who may import whom: the imports are read from the source, so that a wrong one fails here before it ties a knot.

The table below is the architecture in short. What a module imports for its type annotations only is not counted; what it
imports at first use, inside a function, is.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lessonlib

ROOT = Path(lessonlib.__file__).parent

WIRE = {"wire.base", "history", "schema", "secrets", "capabilities", "sse", "types", "errors"}
POLICY = {"flow", "tools", "tokens", "estimate", "history", "results", "capabilities", "types", "errors"}

MAY: dict[str, set[str]] = {
    "errors": set(),
    "types": set(),
    "secrets": set(),
    "capabilities": set(),
    "docstrings": set(),
    "repair": set(),
    "sse": {"errors"},
    "history": {"types", "errors"},
    "schema": {"types", "errors"},
    "results": {"types"},
    "flow": {"types", "errors"},
    "tools": {"schema", "docstrings", "types", "errors"},
    "vocabulary": {"errors"},
    "estimate": {"capabilities", "types"},
    "tokens": {"vocabulary", "estimate", "capabilities", "types", "errors"},
    "wire.base": {"secrets", "sse", "types", "errors"},
    "wire.dialects": {"types", "errors"},
    "wire.openai_chat": WIRE | {"wire.dialects"},
    "wire": WIRE,  # every other wire format: never each other
    "exchange": {"wire.base", "secrets", "sse", "types", "errors"},
    "client": {"exchange", "wire.base", "secrets", "sse", "types", "errors"},
    "tape": {"secrets", "sse", "types", "errors"},
    "prices": {"types"},
    "ledger": {"prices", "types", "errors"},
    **{name: POLICY for name in ("retry", "fallback", "breaker", "limits", "resume", "compact")},
    "budget": POLICY | {"compact", "ledger", "prices"},
    "memory": POLICY | {"compact"},
    "healing": {"repair", "tools", "types"},
    "tool_loop": POLICY | {"healing"},
    "ports": {"tool_loop", "flow", "types"},
}
"""Module -> the modules of lessonlib that it may import; the name of a package stands for all that is in it."""

ABOVE: dict[str, set[str]] = {
    "sim": {
        "client",
        "tape",
        "wire",
        "tokens",
        "vocabulary",
        "estimate",
        "capabilities",
        "secrets",
        "sse",
        "types",
        "errors",
    },
    "curl": {"wire", "types", "errors"},
    "explain": {"exchange", "wire", "sse", "types", "errors"},
}

ON_TOP = {"cli", "cli_sim", "cli_course", "lab", "__main__", "example_tools"}
"""What a person starts or looks at: may import everything below."""

FOREIGN = {
    "httpx": {"client", "tape", "sim", "lab"},
    "tiktoken": {"vocabulary", "tokens"},
    "uvicorn": {"sim"},
    "click": {"cli", "cli_sim", "cli_course"},
    "rich": {"cli", "explain", "lab"},
    **{name: {"lab"} for name in ("pandas", "matplotlib", "ipywidgets", "IPython", "nbformat", "nbclient", "pytest")},
    **{name: {"lab"} for name in ("openai", "anthropic", "google")},  # sdk_grid.py measures the official packages
}
"""Which parts may know a package that is not at the bottom."""

BOTTOM = set(sys.stdlib_module_names) | {"lessonlib", "pydantic", "pydantic_core"}

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__").replace("__init__", "lessonlib"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def imported(path: Path) -> Iterator[str]:
    """The dotted names that a file imports when it runs, at the top or at first use."""
    for node in _running(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            yield from (_module(f"{node.module}.{alias.name}") for alias in node.names)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield child
            yield from _running(child)


def _module(name: str) -> str:
    """`from lessonlib.wire import base` imports a module, `from lessonlib.wire import WIRES` a name of one."""
    ours = name.removeprefix("lessonlib.")
    return name if name != ours and ours in MODULES else name.rpartition(".")[0]


def inside(path: Path) -> set[str]:
    """The modules of lessonlib that a file imports."""
    return {name.removeprefix("lessonlib.") for name in imported(path) if name.startswith("lessonlib.")}


def allowed(module: str) -> set[str] | None:
    """What a module may import, None for everything."""
    part = module.partition(".")[0]
    if part in ON_TOP or module == "lessonlib":
        return None
    if part in ABOVE:
        return ABOVE[part] | {part}
    return MAY[module] if module in MAY else MAY[part]


@pytest.mark.parametrize("module", [name for name in MODULES if name != "wire"])
def test_a_module_imports_only_what_is_below_it(module: str) -> None:
    may = allowed(module)
    if may is not None:
        assert {name for name in inside(MODULES[module]) if name not in may and name.partition(".")[0] not in may} == set()


def test_every_module_has_its_place_in_the_table() -> None:
    placed = {*MAY, *ABOVE, *ON_TOP, "lessonlib"}
    assert {module for module in MODULES if module not in placed and module.partition(".")[0] not in placed} == set()


def test_the_wire_formats_know_nothing_of_each_other() -> None:
    formats = {f"wire.{path.stem}" for path in (ROOT / "wire").glob("*.py")} - {
        "wire.__init__",
        "wire.base",
        "wire.dialects",
    }
    assert len(formats) >= 5
    for name in formats:
        assert inside(MODULES[name]) & formats == set()


@pytest.mark.parametrize("module", MODULES)
def test_packages_from_elsewhere_are_known_to_few(module: str) -> None:
    for name in imported(MODULES[module]):
        package = name.partition(".")[0]
        if package not in BOTTOM:
            assert module.partition(".")[0] in FOREIGN.get(package, set()), f"{module} must not know {package}"


def test_there_is_no_circle() -> None:
    """A circle of imports at the top of files works only until somebody sorts them."""
    graph = {name: {other for other in _at_the_top(path) if other != name} for name, path in MODULES.items()}
    assert len(list(TopologicalSorter(graph).static_order())) >= len(MODULES)


def _at_the_top(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {_module(f"{node.module}.{alias.name}") for alias in node.names}
    return {name.removeprefix("lessonlib.") for name in names if name.startswith("lessonlib.")}


HEAVY = ["httpx", "tiktoken", "pandas", "matplotlib", "ipywidgets", "IPython", "uvicorn", "rich", "click"]


@pytest.mark.parametrize(
    "code",
    [
        "import lessonlib",
        "import lessonlib; [getattr(lessonlib, name) for name in lessonlib.__all__]",
        "import lessonlib.wire",
    ],
)
def test_importing_the_library_loads_nothing_heavy(code: str) -> None:
    """httpx and tiktoken come at first use; what draws or serves never comes by itself."""
    program = f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT.parent
    )
    assert done.stdout.strip() == "[]"
