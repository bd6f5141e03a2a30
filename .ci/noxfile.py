"""Tasks for contributors and for continuous integration; `nox -f .ci/noxfile.py -l` lists them.

Each task installs what it needs into an environment of its own, which `-R` reuses.
"""

from __future__ import annotations

from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")

nox.options.sessions = ["lint", "types", "quick"]
nox.options.envdir = str(ROOT / ".nox")
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "venv"


def install(session: nox.Session, extras: str = "test") -> None:
    """Install the checkout with some of its extras, and work in the checkout's root."""
    session.chdir(ROOT)
    session.install("-e", f".[{extras}]")


def install_client(session: nox.Session) -> None:
    """Install what checks the client, and the forms that its adapter is tested with."""
    with session.chdir("client_js"):
        session.run("npm", "install", "--no-audit", "--no-fund", "--silent", external=True)


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Check style, import layers and the client's JavaScript and CSS."""
    install(session)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")
    install_client(session)
    with session.chdir("client_js"):
        session.run("npm", "run", "--silent", "check", external=True)


@nox.session(python="3.11")
def types(session: nox.Session) -> None:
    """Check types with mypy in strict mode."""
    install(session)
    session.run("mypy")


@nox.session(python=PYTHONS)
def quick(session: nox.Session) -> None:
    """Run the tests of definitions and statistics, which need no server or browser."""
    install(session)
    session.run("pytest", "-m", "quick", *session.posargs)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the README's test command."""
    install(session)
    session.run("pytest", *session.posargs)


@nox.session(python="3.11")
def web(session: nox.Session) -> None:
    """Run the slower tests of browsers, proxies, images and releases."""
    install(session)
    install_client(session)
    session.run("pytest", "-m", "web and not long and not scale", *session.posargs)


@nox.session(python="3.11")
def long(session: nox.Session) -> None:
    """Run the tests that take minutes each; do so before a release."""
    install(session)
    session.run("pytest", "-m", "long", *session.posargs)


@nox.session(python="3.11")
def scale(session: nox.Session) -> None:
    """Run the tests of very large collections on a local Spark cluster (needs Java 17)."""
    install(session, "test,scale")
    session.run("pytest", "-n", "0", "-m", "scale", *session.posargs)


@nox.session(python="3.11")
def demo(session: nox.Session) -> None:
    """Start the installed demo as a newcomer does, and load its pages."""
    session.install(str(ROOT))
    session.run("bash", str(ROOT / ".ci/demo"), session.create_tmp(), external=True)
