"""Private keys reach the disk before anything is sealed with them, and leave it before their names.

strace records one pass of the keeper: killing processes cannot show what a power failure loses.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from survey.collect.release import SPARE_KEYS
from survey.settings import Settings
from survey.store import database_file
from tests.conftest import ROOT
from tests.forensics.mutants import SITE
from tests.store.databases import KINDS, DirectAccess
from tests.store.reports import add, random_reports

CALLS = "mkdir,openat,write,pwrite64,sendto,recvfrom,fsync,fdatasync,unlink,unlinkat"

LINE = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*)$")
RESUMED = re.compile(r"(?P<pid>\d+) +<\.\.\. \w+ resumed>(?P<arguments>.*)$")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
RESULTS = ("fsync", "fdatasync", "recvfrom")
"""Calls that count when they have ended; all others count when they begin."""

pytestmark = [pytest.mark.security, pytest.mark.parametrize("settings", KINDS, indirect=True)]


@pytest.fixture
def direct_access(settings: Settings) -> DirectAccess:
    return DirectAccess(settings.database)


@dataclass(frozen=True)
class Call:
    """A system call: its name, the path or socket it used, and the bytes or flags it passed."""

    name: str
    target: str
    content: bytes


def read_calls(trace: Path) -> list[Call]:
    """Return the calls in order."""
    calls: list[Call] = []
    unfinished: dict[str, tuple[str, str]] = {}
    for line in trace.read_text(encoding="latin-1").splitlines():
        if match := LINE.match(line):
            name, arguments = match["name"], match["arguments"]
            if name in RESULTS and arguments.endswith("<unfinished ...>"):
                unfinished[match["pid"]] = name, arguments
            else:
                calls.append(parse_call(name, arguments))
        elif (match := RESUMED.match(line)) and match["pid"] in unfinished:
            name, arguments = unfinished.pop(match["pid"])
            calls.append(parse_call(name, arguments + match["arguments"]))
    return calls


def parse_call(name: str, arguments: str) -> Call:
    """Return the call that a line of strace shows, with the path of its descriptor."""
    strings = TEXT.findall(arguments)
    if name == "openat":
        return Call(name, strings[0], arguments.rpartition('"')[2].encode())
    if name.startswith(("mkdir", "unlink")):
        return Call(name, strings[0], b"")
    descriptor, _, rest = arguments.partition(">")
    content = next(iter(TEXT.findall(rest)), "")
    return Call(
        name,
        # A socket's number means nothing.
        descriptor.partition("<")[2].partition("[")[0],
        codecs.decode(content, "unicode_escape").encode("latin-1"),
    )


def record_release(
    settings: Settings, trace: Path, mutant: str = "", n_released: int = 0
) -> list[Call]:
    """Run one pass of the keeper under strace; return its system calls."""
    if not (strace := shutil.which("strace")):
        pytest.skip("no strace on the path (apt-get install strace)")
    command = [
        *(strace, "-f", "-y", "-x", "-s", "100000", "-e", f"trace={CALLS}", "-o", trace),
        *(sys.executable, "-m", "survey.cli", "release"),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{SITE}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SURVEY_TEST_MUTANT": mutant,
        "SURVEY_DATABASE": settings.database,
        "SURVEY_KEYS": settings.keys,
    }
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert process.stdout == f"released {n_released} reports\n", process.stderr
    return read_calls(trace)


class Steps:
    """Looks for calls one after the other; `missing` is the first step that has no call."""

    def __init__(self, calls: Sequence[Call], log: str) -> None:
        self._calls = calls
        self._place = 0
        self._log = log
        self.missing = ""

    def then(
        self, step: str, names: str, target: str, content: bytes = b"", *, is_first: bool = False
    ) -> Steps:
        """Go on behind the next such call; if `is_first`, none may have come before."""
        places = [
            place
            for place, call in enumerate(self._calls)
            if call.name in names.split() and call.target == target and content in call.content
        ]
        later = [place for place in places if place >= self._place]
        if not later or (is_first and later != places):
            self.missing = self.missing or step
        else:
            self._place = later[0] + 1
        return self

    def then_commit(self, step: str, content: bytes) -> Steps:
        """Go on behind the transaction that first writes a content, when it is on the disk."""
        if self._log:
            self.then(step, "pwrite64", self._log, content, is_first=True)
            return self.then(step, "fdatasync fsync", self._log)
        self.then(step, "sendto", "socket:", content, is_first=True)
        # From the sixth on, a connection sends its commits as a number, but the server names them.
        return self.then(step, "recvfrom", "socket:", b"COMMIT")


def missing_steps(
    calls: Sequence[Call], settings: Settings, new_keys: Sequence[bytes], old_key: bytes, box: bytes
) -> set[str]:
    """Return the steps that are missing, or in the wrong order, in the lives of the keys.

    `box` is what the release seals again: its transaction deletes the last batch of the old key.
    """
    keys = settings.keys
    file = database_file(settings.database)
    log = f"{file}-wal" if file else ""
    missing = set()
    for new_key in new_keys:
        path = f"{keys}/{new_key.hex()}.key"
        content, name = Steps(calls, log), Steps(calls, log)
        content.then("create", "openat", path, b"O_CREAT").then("write", "write", path)
        content.then("sync the file", "fsync", path).then_commit("publish after that", new_key)
        name.then("create", "openat", path, b"O_CREAT")
        name.then("sync the directory", "fsync", keys).then_commit("publish after that", new_key)
        missing |= {content.missing, name.missing}
    path = f"{keys}/{old_key.hex()}.key"
    steps = Steps(calls, log).then_commit("seal again", box)
    steps.then("destroy after that", "openat", path, b"O_WRONLY", is_first=True)
    steps.then("overwrite", "write", path, bytes(32)).then("sync the zeros", "fsync", path)
    steps.then("unlink", "unlink unlinkat", path, is_first=True)
    steps.then("sync the removal", "fsync", keys)
    return (missing | {steps.missing}) - {""}


MISTAKES = {
    "": set(),
    "skip_file_sync": {"sync the file", "sync the zeros"},
    "skip_directory_sync": {"sync the directory", "sync the removal"},
    "publish_keys_first": {"publish after that"},
    "unlink_private_keys": {"destroy after that"},
    "destroy_keys_early": {"destroy after that"},
}
"""The steps that each version of the program leaves out, among others."""


@pytest.mark.parametrize("mutant", MISTAKES)
def test_private_keys_are_on_the_disk_before_they_are_used_and_off_it_before_they_are_forgotten(
    store, small, settings, direct_access, tmp_path, mutant
):
    add(store, small, random_reports(60))
    direct_access.run("DELETE FROM sealing_key WHERE survey = 0")
    old_keys = store.sealing_keys()
    store.close_connections()
    # Otherwise, the first release of a new survey would be an hour later.
    store.set_release_time(1, small.key)
    calls = record_release(settings, tmp_path / "trace", mutant, n_released=25)
    new_keys = [key for key in store.sealing_keys() if key not in old_keys]
    assert len(new_keys) == SPARE_KEYS + 1
    ((box,),) = direct_access.run("SELECT box FROM pending")
    steps = missing_steps(
        *(calls, settings, [key.public_key for key in new_keys], old_keys[0].public_key),
        # The ephemeral public key at the start of the box is in one page with its row.
        bytes(box)[:32],
    )
    assert bool(steps) == bool(mutant)
    assert steps >= MISTAKES[mutant]


def test_a_new_directory_of_keys_is_on_the_disk_before_its_first_key_is_used(
    store, settings, direct_access, tmp_path
):
    shutil.rmtree(settings.keys)
    direct_access.run("DELETE FROM sealing_key")
    store.close_connections()
    calls = record_release(settings, tmp_path / "trace")
    file = database_file(settings.database)
    for key in store.sealing_keys():
        steps = Steps(calls, f"{file}-wal" if file else "")
        steps.then("create the directory", "mkdir", settings.keys)
        steps.then("sync its name", "fsync", str(Path(settings.keys).parent))
        steps.then_commit("publish after that", key.public_key)
        assert steps.missing == ""
