# SPDX-License-Identifier: GPL-2.0-only
"""How the command takes and refuses its arguments."""

import pytest

from conftest import DONE, USAGE

VERBS = {
    "format": ["--force", "--files", "--uuid", "--json"],
    "status": ["--json"],
    "check": ["--force", "--json", "--repair", "--yes", "--repair", "--yes"],
    "drain": ["--discard-unplaced", "--quiet"],
    "pin": [], "unpin": [], "attach": [], "detach": [],
    "drop": ["--json"],
    "writelog format": ["--force", "--generations", "--chunk-size", "--align", "--data-checksums", "--uuid", "--json"],
    "writelog create": ["--option", "--any-origin"],
    "writelog status": ["--json"],
    "writelog check": ["--force", "--json"],
    "writelog flush": ["--cleaner", "--quiet"],
    "writelog remove": ["--no-flush", "--quiet"],
    "emu create": ["--size", "--backing", "--read-delay-ns", "--write-delay-ns", "--bandwidth", "--persistence", "--node",
                   "--track", "--json"],
    "emu list": ["--json"],
    "emu remove": [],
    "emu cut": ["--seed"],
    "transit create": ["--option"],
    "transit status": ["--json"],
    "transit remove": ["--no-flush"],
}


def test_help_lists_every_verb(forebay):
    result = forebay("--help")
    assert result.status == DONE and not result.err
    for verb in VERBS:
        assert f"\n  {verb} " in result.out


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_names_its_options(forebay, verb):
    for arguments in ([*verb.split(), "--help"], ["help", *verb.split()], ["--help", *verb.split()]):
        result = forebay(*arguments)
        assert result.status == DONE and not result.err
        assert result.out.startswith(f"usage: forebay {verb} ")
        for option in [*VERBS[verb], "--help"]:
            assert f"\n  {option} " in result.out


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("option", ["--nonsense", "-x"])
def test_unknown_option(forebay, verb, option):
    result = forebay(*verb.split(), option)
    assert result.status == USAGE and not result.out
    assert result.err.startswith(f"forebay {verb}: no such option")
    assert option in result.err
    assert f"usage: forebay {verb} " in result.err


def test_help_of_a_noun_lists_its_verbs_alone(forebay):
    for arguments in (["writelog", "--help"], ["help", "writelog"]):
        result = forebay(*arguments)
        assert result.status == DONE and not result.err
        assert result.out.startswith("usage: forebay writelog VERB ")
        assert "\n  writelog check " in result.out and "\n  check " not in result.out


def test_version(forebay):
    result = forebay("--version")
    assert result.status == DONE
    assert result.out.startswith("forebay ") and result.out.split()[1][0].isdigit()


def test_no_verb_and_unknown_verb(forebay):
    assert forebay().status == USAGE
    result = forebay("drian")
    assert result.status == USAGE
    assert "no such verb: drian" in result.err
    assert "Did you mean `forebay drain`" in result.err
    assert "Did you mean" not in forebay("xyz").err
    assert "no such verb: writelog\n" in forebay("writelog").err
    result = forebay("writelog", "chekc")
    assert result.status == USAGE
    assert "no such verb: writelog chekc" in result.err
    assert "Did you mean `forebay writelog create`" in result.err
    assert "Did you mean `forebay transit remove`" in forebay("transit", "rm").err


@pytest.mark.parametrize("arguments, complaint", [
    (["format"], "want one device"),
    (["format", "a", "b"], "want one device"),
    (["format", "--files"], "--files wants a value"),
    (["format", "--files", "0", "x"], "--files 0"),
    (["format", "--files", "-1", "x"], "--files -1"),
    (["format", "--files", "4194305", "x"], "from 1 to 4194304"),
    (["format", "--files", "3k", "x"], "--files 3k"),
    (["format", "--uuid", "zzz", "x"], "--uuid zzz"),
    (["format", "--json=yes", "x"], "--json=yes"),
    (["check"], "want one device or image"),
    (["drain"], "want one mount point"),
    (["writelog", "format"], "want one device"),
    (["writelog", "format", "--generations", "1", "x"], "--generations wants a number from 2 to 4096, not 1"),
    (["writelog", "format", "--generations", "4097", "x"], "not 4097"),
    (["writelog", "format", "--chunk-size", "5000", "x"], "--chunk-size wants a multiple of 4096"),
    (["writelog", "format", "--align", "768", "x"], "--align wants 256, 512, 1024, 2048 or 4096, not 768"),
    (["writelog", "format", "--uuid", "zzz", "x"], "--uuid wants a UUID, not zzz"),
    (["writelog", "create", "a", "b"], "want a name, an origin and a log"),
    (["writelog", "create", "--option", "slots", "a", "b", "c"], "--option slots: want KEY=VALUE"),
    (["writelog", "create", "--option", "slots=1 2", "a", "b", "c"], "want KEY=VALUE"),
    (["writelog", "check"], "want one device or image"),
    (["writelog", "flush"], "want the name of one mapped device"),
    (["writelog", "remove", "a", "b"], "want the name of one mapped device"),
    (["transit", "create", "a"], "want a name and a device"),
    (["transit", "create", "--option", "workers", "a", "b"], "--option workers: want KEY=VALUE"),
    (["transit", "remove"], "want the name of one mapped device"),
])
def test_wrong_arguments(forebay, arguments, complaint):
    result = forebay(*arguments)
    assert result.status == USAGE
    assert complaint in result.err
