# SPDX-License-Identifier: GPL-2.0-only
"""How the command takes and refuses its arguments."""

import re

import pytest

from conftest import CHECKOUT, DONE, USAGE

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
    "writelog resume": [],
    "writelog set": [],
    "writelog latency": ["--json"],
    "writelog remove": ["--no-flush", "--quiet"],
    "emu create": ["--size", "--backing", "--read-delay-ns", "--write-delay-ns", "--bandwidth", "--persistence", "--node",
                   "--track", "--json"],
    "emu list": ["--json"],
    "emu remove": [],
    "emu cut": ["--seed"],
    "transit create": ["--option"],
    "transit status": ["--json"],
    "transit flush": ["--quiet"],
    "transit set": [],
    "transit latency": ["--json"],
    "transit remove": ["--no-flush", "--quiet"],
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
    for noun, about in {"writelog": "write logs", "emu": "ordinary memory", "transit": "transit caches"}.items():
        for arguments in ([noun, "--help"], ["help", noun]):
            result = forebay(*arguments)
            assert result.status == DONE and not result.err
            assert result.out.startswith(f"usage: forebay {noun} VERB ") and about in result.out.splitlines()[2]
            assert f"\n  {noun} create " in result.out and "\n  check " not in result.out


OPTIONS = {
    "writelog": ["slots", "block_size", "high_mark", "low_mark", "depth", "error_timeout", "on_damage", "allow_volatile"],
    "transit": ["cache_size", "block_size", "workers", "policy", "eager_eviction", "bypass"],
}
SETTABLE = {"high_mark", "low_mark", "depth", "error_timeout", "workers", "eager_eviction", "bypass"}


@pytest.mark.parametrize("noun", OPTIONS)
def test_help_lists_the_options_of_the_target(forebay, noun):
    for verb, keys in {"create": OPTIONS[noun], "set": [key for key in OPTIONS[noun] if key in SETTABLE]}.items():
        listed = forebay(noun, verb, "--help").out.split("\nKEY and VALUE:\n")[1]
        assert [line.split()[0] for line in listed.splitlines() if re.match("  [a-z]", line)] == keys


@pytest.mark.parametrize("noun", OPTIONS)
def test_options_are_those_of_the_target(noun):
    """What the kernel takes; origin_id is for create itself."""
    source = (CHECKOUT / "dm" / noun / "params.c").read_text(encoding="utf-8")
    found = re.findall(r'^\tDWL_NUMBER\((\w+),.*(?:true|false)\),$|^\t\[\w+\] = { "(\w+)"', source, re.MULTILINE)
    taken = {first or second for first, second in found} | set(re.findall(r'strcmp\(key, "(\w+)"', source))
    assert taken - {"origin_id"} == set(OPTIONS[noun])
    later = re.findall(r'DWL_NUMBER\((\w+),.*true\)|{ "(\w+)", true', source)
    assert {first or second for first, second in later} == SETTABLE & set(OPTIONS[noun])


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
    for noun, verbs in {"writelog": "format, create, status, check, ", "emu": "create, list, ", "transit": "create, status, "}.items():
        result = forebay(noun)
        assert result.status == USAGE and f"{noun} wants a verb: {verbs}" in result.err and f"`forebay {noun} --help`" in result.err
    result = forebay("transit", "xx")
    assert result.status == USAGE and "no such verb: transit xx" in result.err and "`forebay transit --help`" in result.err
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
    (["writelog", "format", "--chunk-size", "20000", "x"], "--chunk-size wants a multiple of 4096 from 16384 to 16777216"),
    (["writelog", "format", "--chunk-size", "8192", "x"], "from 16384 to 16777216, not 8192"),
    (["writelog", "format", "--align", "768", "x"], "--align wants 256, 512, 1024, 2048 or 4096, not 768"),
    (["writelog", "format", "--uuid", "zzz", "x"], "--uuid wants a UUID, not zzz"),
    (["writelog", "create", "a", "b"], "want a name, an origin and a log"),
    (["writelog", "create", "--option", "slots", "a", "b", "c"], "--option slots: want KEY=VALUE"),
    (["writelog", "create", "--option", "slots=1 2", "a", "b", "c"], "want KEY=VALUE"),
    (["writelog", "create", "--option", "slot=1", "a", "b", "c"], "--option slot=1: there is no such option; there are slots, block_size, "),
    (["writelog", "create", "--option", "origin_id=00", "a", "b", "c"], "there is no such option"),
    (["writelog", "check"], "want one device or image"),
    (["writelog", "flush"], "want the name of one mapped device"),
    (["writelog", "remove", "a", "b"], "want the name of one mapped device"),
    (["writelog", "resume"], "want the name of one mapped device"),
    (["writelog", "set", "a"], "want the name of a mapped device, and what to set"),
    (["writelog", "set", "a", "depth"], "depth: want KEY=VALUE"),
    (["writelog", "latency"], "want the name of one mapped device"),
    (["writelog", "latency", "a", "o"], "o: want on or off"),
    (["transit", "create", "a"], "want a name and a device"),
    (["transit", "create", "--option", "slots=3", "a", "b"], "there is no such option; there are cache_size, "),
    (["transit", "flush"], "want the name of one mapped device"),
    (["transit", "create", "--option", "workers", "a", "b"], "--option workers: want KEY=VALUE"),
    (["transit", "remove"], "want the name of one mapped device"),
])
def test_wrong_arguments(forebay, arguments, complaint):
    result = forebay(*arguments)
    assert result.status == USAGE
    assert complaint in result.err
