# SPDX-License-Identifier: GPL-2.0-only
"""The man pages and the completion say what the command does, and get installed."""

import re
import shutil
import subprocess

import pytest

from conftest import BUILD, CHECKOUT
from test_usage import VERBS

PAGES = [CHECKOUT / "docs/man" / name for name in ("forebay.8", "forebay.5", "forebay.3")]
COMPLETION = CHECKOUT / "packaging/completion/forebay"


@pytest.mark.skipif(not shutil.which("mandoc"), reason="no mandoc")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_page_is_well_formed(page):
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_man_page_has_every_option(verb):
    text = PAGES[0].read_text()
    section = re.search(rf"^\.Ss forebay {verb}\n(.*?)^\.S[sh] ", text, re.MULTILINE | re.DOTALL)[1]
    described = {f"-{option}" for option in re.findall(r"^\.It Fl (\S+)", section, re.MULTILINE)}
    assert described == set(VERBS[verb])
    words = r"\s+(?:\.Cm )?".join(verb.split())
    synopsis = re.search(rf"^\.Cm {words}\n(.*?)^\.Nm$", text, re.MULTILINE | re.DOTALL)[1]
    assert {f"-{option}" for option in re.findall(r"^\.Op Fl (\S+)", synopsis, re.MULTILINE)} == described


def complete(*words):
    script = f'. "{COMPLETION}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _forebay; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_completion_of_verbs():
    assert set(complete("forebay", "")) == {*(verb.split()[0] for verb in VERBS), "--help", "--version"}
    assert complete("forebay", "dr") == ["drain", "drop"]
    for noun in ("writelog", "transit", "emu"):
        assert set(complete("forebay", noun, "")) == {*(verb.split()[1] for verb in VERBS if verb.startswith(f"{noun} ")), "--help"}
    assert complete("forebay", "writelog", "rem") == ["remove"]


@pytest.mark.parametrize("verb", VERBS)
def test_completion_of_options(verb):
    assert set(complete("forebay", *verb.split(), "--")) == {*VERBS[verb], "--help"}


def test_install(command, tmp_path):
    subprocess.run(["make", "-s", "-C", CHECKOUT / "tools", f"O={BUILD}", f"DESTDIR={tmp_path}", "PREFIX=/usr", "install"],
                   check=True)
    installed = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert installed == {"usr/sbin/forebay", "usr/share/man/man8/forebay.8", "usr/share/man/man5/forebay.5",
                         "usr/share/bash-completion/completions/forebay"}
