"""The configuration check names unsafe settings with remedies; fatal ones prevent a start."""

from __future__ import annotations

import os
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from survey.errors import SettingsError
from survey.ops.config_check import (
    Deployment,
    findings,
    refuse_unsafe,
    refuse_unsafe_keeper,
)
from survey.ops.health import internal_address
from survey.settings import Settings
from tests.cases import each_case
from tests.conftest import ONION, SECRET

PUBLIC = "https://survey.example.org"
RESEARCH = "https://research.example.org"
LOOPBACK = {"trusted_proxies": 0, "public_url": "http://127.0.0.1:8000"}


def deployment(address="127.0.0.1", environment=None, *, has_keeper=True, **settings) -> Deployment:
    usual = {
        "secret": SECRET,
        "public_url": PUBLIC,
        "research_url": RESEARCH,
        "trusted_proxies": 1,
        "internal": "127.0.0.1:9464",
        "retention_days": 365,
        "database": "sqlite:////nowhere/at/all.db",
        "keys": "/dev/shm/survey-keys",
    }
    return Deployment(Settings(**(usual | settings)), environment or {}, address, has_keeper)


def fatal_settings(instance: Deployment) -> list[str]:
    return [finding.setting for finding in findings(instance) if finding.is_fatal]


def advised_settings(instance: Deployment) -> list[str]:
    return [
        finding.setting
        for finding in findings(instance)
        if not finding.is_fatal and finding.setting != "user"
    ]


def test_a_safe_deployment_has_no_findings():
    assert (fatal_settings(deployment()), advised_settings(deployment())) == ([], [])
    refuse_unsafe(deployment())


@pytest.mark.security
@each_case(
    ("unsafe", "name"),
    [
        ({"secret": ""}, "SURVEY_SECRET"),
        ({"secret": "change-me" * 5}, "SURVEY_SECRET"),
        ({"secret": SECRET[:31]}, "SURVEY_SECRET"),
        ({"environment": {"FLASK_DEBUG": "1"}}, "FLASK_DEBUG"),
        ({"environment": {"FLASK_DEBUG": "y"}}, "FLASK_DEBUG"),
        ({"environment": {"PYTHONDEVMODE": "0"}}, "PYTHONDEVMODE"),
        ({"secret": "12345678901234567890123456789012"}, "SURVEY_SECRET"),
        ({"secret": "qwertyui" * 4}, "SURVEY_SECRET"),
        ({"secret": "please-change-me-before-production!!"}, "SURVEY_SECRET"),
        ({"secret": "my-very-SECRET-and-long-passphrase-x"}, "SURVEY_SECRET"),
        ({"secret": "replace-this-with-32-random-characters"}, "SURVEY_SECRET"),
        ({"secret": "qwertyuiopasdfghjklzxcvbnm1234567890"}, "SURVEY_SECRET"),
        ({"trusted_proxies": 0}, "SURVEY_TRUSTED_PROXIES"),
        ({"address": "0.0.0.0", **LOOPBACK}, "--address"),
        ({"address": "192.168.1.5", **LOOPBACK}, "--address"),
        ({"internal": "[::ffff:0.0.0.0]:9464"}, "SURVEY_INTERNAL"),
        ({"internal": "0.0.0.0:9464"}, "SURVEY_INTERNAL"),
        ({"internal": "8.8.8.8:9464"}, "SURVEY_INTERNAL"),
        ({"internal": "no.such.name.invalid:9464"}, "SURVEY_INTERNAL"),
    ],
)
def test_boot_refuses_unsafe_settings_by_name(unsafe, name):
    instance = deployment(**unsafe)
    assert fatal_settings(instance) == [name]
    with pytest.raises(SettingsError, match=name):
        refuse_unsafe(instance)


@pytest.mark.security
@pytest.mark.parametrize("kind", ["", "-wal", "-shm"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_boot_refuses_a_database_that_others_can_read_or_change(tmp_path, kind, mode):
    file = tmp_path / "survey.db"
    for path in (file, tmp_path / f"survey.db{kind}"):
        path.touch(mode=0o600)
    instance = deployment(database=f"sqlite:///{file}")
    refuse_unsafe(instance)
    (tmp_path / f"survey.db{kind}").chmod(mode)
    with pytest.raises(SettingsError, match=f"chmod 600 {tmp_path}"):
        refuse_unsafe(instance)


@pytest.mark.security
def test_boot_refuses_a_database_whose_link_hides_files_that_others_can_read(tmp_path):
    file, link = tmp_path / "kept" / "survey.db", tmp_path / "survey.db"
    file.parent.mkdir()
    file.touch(mode=0o600)
    link.symlink_to(file)
    Path(f"{file}-wal").touch(mode=0o644)
    with pytest.raises(SettingsError, match=r"chmod 600 .*kept/survey\.db-wal"):
        refuse_unsafe(deployment(database=f"sqlite:///{link}"))


@pytest.mark.security
def test_boot_refuses_a_secret_that_others_can_change_and_advises_where_they_can_read(tmp_path):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    instance = deployment(environment={"SURVEY_SECRET_FILE": str(file)})
    by_mode = {}
    for mode in (0o600, 0o640, 0o644, 0o660):
        file.chmod(mode)
        by_mode[mode] = (fatal_settings(instance), advised_settings(instance))
    name = "SURVEY_SECRET_FILE"
    safe, advised, refused = ([], []), ([], [name]), ([name], [])
    assert by_mode == {0o600: safe, 0o640: advised, 0o644: refused, 0o660: refused}


@pytest.mark.security
def test_boot_refuses_a_database_below_a_folder_that_anybody_can_change(tmp_path):
    target, links = tmp_path / "open" / "kept", tmp_path / "links"
    target.mkdir(parents=True)
    links.mkdir()
    (target / "survey.db").touch(mode=0o600)
    (links / "survey.db").symlink_to(target / "survey.db")
    instance = deployment(database=f"sqlite:///{links / 'survey.db'}")
    assert fatal_settings(instance) == []
    for folder in (target, tmp_path / "open", links):
        folder.chmod(0o777)
        with pytest.raises(SettingsError, match=f"chmod 700 {folder}$"):
            refuse_unsafe(instance)
        folder.chmod(0o1777)  # the sticky bit: users may replace only their own files
        assert fatal_settings(instance) == []
        folder.chmod(0o755)


@pytest.mark.security
def test_a_group_may_share_a_database_only_in_a_directory_that_it_shares(tmp_path):
    file = tmp_path / "survey.db"
    file.touch()
    instance = deployment(database=f"sqlite:///{file}")
    by_mode = {}
    tmp_path.chmod(0o2770)
    for mode in (0o600, 0o640, 0o660, 0o664):
        file.chmod(mode)
        by_mode[mode] = (fatal_settings(instance), advised_settings(instance))
    name = "SURVEY_DATABASE"
    unusable, safe, refused = ([], [name]), ([], []), ([name], [])
    assert by_mode == {0o600: unusable, 0o640: unusable, 0o660: safe, 0o664: refused}
    file.chmod(0o660)
    for mode in (0o770, 0o2750, 0o2700):
        tmp_path.chmod(mode)
        with pytest.raises(SettingsError, match="chmod 600"):
            refuse_unsafe(instance)


@pytest.mark.security
def test_boot_refuses_private_keys_that_others_can_read(tmp_path):
    keys = tmp_path / "keys"
    instance = deployment(keys=str(keys))
    assert fatal_settings(instance) == []  # The keeper creates the directory.
    keys.mkdir()
    for mode, expected in ((0o700, []), *((m, ["SURVEY_KEYS"]) for m in (0o710, 0o750, 0o707))):
        keys.chmod(mode)
        assert fatal_settings(instance) == expected
    with pytest.raises(SettingsError, match=f"chmod 700 {keys}$"):
        refuse_unsafe_keeper(instance)
    for path in (tmp_path / "unmounted" / "keys", tmp_path / "file"):
        (tmp_path / "file").touch(mode=0o600)
        assert fatal_settings(deployment(keys=str(path))) == ["SURVEY_KEYS"]


@pytest.mark.security
def test_private_keys_that_a_server_without_a_keeper_can_use_get_advice(tmp_path):
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o700)
    database = "postgresql://survey@127.0.0.1/survey"
    for has_keeper, expected in ((True, []), (False, ["SURVEY_KEYS"])):
        instance = deployment(keys=str(keys), database=database, has_keeper=has_keeper)
        assert (fatal_settings(instance), advised_settings(instance)) == ([], expected)


@pytest.mark.security
def test_private_keys_on_the_database_s_file_system_get_advice(tmp_path):
    keys, database = str(tmp_path / "keys"), f"sqlite:///{tmp_path / 'survey.db'}"
    assert advised_settings(deployment(keys=keys, database=database)) == ["SURVEY_KEYS"]
    server = "postgresql://survey@127.0.0.1/survey"
    assert advised_settings(deployment(keys=keys, database=server)) == []
    assert advised_settings(deployment(database=database)) == []


@pytest.mark.security
@pytest.mark.parametrize("name", ["", "/dev/null"])
def test_a_path_that_is_not_a_file_gets_no_advice_about_its_mode(tmp_path, name):
    instance = deployment(database=f"sqlite:///{name or tmp_path}")
    with pytest.raises(SettingsError, match="is not a file; name a file"):
        refuse_unsafe(instance)


def test_settings_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Settings().release_minimum = 1


@each_case(
    "url",
    [
        *("sqlite:///", "sqlite:////", "sqlite://x", "sqlite:////nowhere/.."),
        *("postgresql://", "mysql://x", "", "postgresql://u:hid[den@127.0.0.1/x"),
        *("postgresql://u:hid@den@127.0.0.1/x", "postgresql://u:hid/den@127.0.0.1/x"),
    ],
)
def test_an_invalid_database_url_is_refused_without_repeating_it(url):
    with pytest.raises(SettingsError, match="SURVEY_DATABASE must be sqlite:///PATH") as refusal:
        Settings(database=url)
    assert "hid" not in str(refusal.value)
    assert "den@" not in str(refusal.value)


@pytest.mark.security
@each_case(
    "spelling",
    [
        "HTTPS://survey.example.org",
        " https://survey.example.org",
        "https://Survey.example.org",
        "https://me@survey.example.org",
        "https://survey.example.org/path",
        "https://survey.example.org?x",
        "https://",
        "https://-",
        "https://..",
        "https://[1:2]",
        "https://survey.example.org:65536",
        "survey.example.org",
    ],
)
def test_an_address_in_another_spelling_is_refused_before_cookies_lose_their_protection(spelling):
    with pytest.raises(SettingsError, match="SURVEY_PUBLIC_URL"):
        Settings(public_url=spelling)
    with pytest.raises(SettingsError, match="SURVEY_RESEARCH_URL"):
        Settings(research_url=spelling)


@pytest.mark.security
@each_case(
    "addresses",
    [
        {"public_url": PUBLIC, "research_url": PUBLIC},
        {"public_url": PUBLIC, "research_url": f"{PUBLIC}:443/"},
        {"public_url": f"{ONION}/", "onion_url": ONION},
        {"public_url": PUBLIC, "research_url": ONION, "onion_url": ONION},
    ],
)
def test_two_origins_with_the_same_host_and_port_are_refused(addresses):
    with pytest.raises(SettingsError, match="differ in host or port"):
        Settings(**addresses)


@pytest.mark.security
@each_case(
    "onion",
    [
        "http://research.example.org",
        "http://example.onion",
        ONION.replace("http:", "https:"),
        f"{ONION}:80",
        f"{ONION}/path",
        ONION.replace("aaaq", "aaar"),
        ONION.replace("http://", "http://www."),
    ],
)
def test_an_onion_address_with_a_typing_error_is_refused(onion):
    with pytest.raises(SettingsError, match="SURVEY_ONION_URL"):
        Settings(onion_url=onion)
    if not onion.startswith("https://"):
        with pytest.raises(SettingsError, match="SURVEY_PUBLIC_URL"):
            Settings(public_url=onion)


def test_an_onion_address_needs_no_https():
    assert Settings(public_url=ONION, onion_url="").secure_cookies is False
    separate = Settings(public_url=PUBLIC, research_url=RESEARCH, onion_url=f"{ONION}/")
    assert separate.secure_cookies
    assert separate.researchers_url == RESEARCH


def test_researchers_may_use_a_loopback_address_beside_a_public_one():
    tunnel = Settings(public_url=PUBLIC, research_url="http://127.0.0.1:8000")
    assert not tunnel.secure_cookies
    assert not tunnel.opens_here_only


@each_case(
    ("weak", "name"),
    [
        ({"internal": ""}, "SURVEY_INTERNAL"),
        ({"public_url": "http://127.0.0.1:8000"}, "SURVEY_PUBLIC_URL"),
        ({"research_url": ""}, "SURVEY_RESEARCH_URL"),
        ({"database": "postgresql://survey@/survey?password=word"}, "SURVEY_DATABASE"),
        ({"database": "postgresql:///survey?host=db.example.org"}, "SURVEY_DATABASE"),
        ({"database": "postgresql://survey:word@127.0.0.1/survey"}, "SURVEY_DATABASE"),
        ({"database": "postgresql://survey@db.example.org/survey"}, "SURVEY_DATABASE"),
        ({"address": "0.0.0.0"}, "--address"),
        ({"password_cost": 1}, "SURVEY_PASSWORD_COST"),
        ({"retention_days": 0}, "SURVEY_RETENTION_DAYS"),
        (
            {"database": f"sqlite:///{os.sep}tmp/x.db", "disk_minimum": 1_000_000},
            "SURVEY_DISK_MINIMUM",
        ),
    ],
)
def test_advice_names_a_remedy_and_does_not_prevent_a_start(weak, name):
    instance = deployment(**weak)
    assert (fatal_settings(instance), advised_settings(instance)) == ([], [name])
    assert all(finding.remedy for finding in findings(instance))
    refuse_unsafe(instance)


@pytest.mark.parametrize(
    "database",
    [
        "postgresql://survey@127.0.0.1/survey",
        "postgresql:///survey",
        "postgresql://survey@db.example.org/survey?sslmode=verify-full",
    ],
)
def test_a_local_or_verified_database_server_needs_no_advice(database):
    assert advised_settings(deployment(database=database)) == []


def test_no_database_password_appears_in_findings():
    instance = deployment(database="postgresql://survey:hidden-word@db.example.org/survey")
    assert "hidden-word" not in str(findings(instance))


@pytest.mark.parametrize("text", ["127.0.0.1:9464", "10.1.2.3:80", "[::1]:9464", "localhost:1"])
def test_internal_addresses_are_accepted(text):
    assert internal_address(text)[1] == int(text.rpartition(":")[2])


@pytest.mark.parametrize("text", ["127.0.0.1", "9464", ":9464", "127.0.0.1:0", "127.0.0.1:x"])
def test_an_invalid_internal_address_is_refused_by_name(text):
    with pytest.raises(SettingsError, match="SURVEY_INTERNAL"):
        Settings(internal=text)


def test_origins_of_other_hosts_are_separated_by_spaces_and_need_https():
    name = "SURVEY_CLIENT_ORIGINS"
    read = Settings.from_environment({name: " https://a.example:443/  http://127.0.0.1:8001"})
    # Browsers leave out the default port, so a comparison with it would never succeed.
    assert read.listed_origins == ("https://a.example", "http://127.0.0.1:8001")
    for wrong in ("*", "null", "http://a.example", "https://a.example/page", "https://A.example"):
        with pytest.raises(SettingsError, match=name):
            Settings.from_environment({name: f"https://b.example {wrong}"})
