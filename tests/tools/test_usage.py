# SPDX-License-Identifier: GPL-2.0-only
"""How the command accepts and refuses arguments."""

import re
import subprocess

import pytest

from conftest import CHECKOUT, DONE, FAILED, USAGE

VERBS = {
    "format": ["--force", "--files", "--names", "--uuid", "--json"],
    "status": ["--json", "--watch"],
    "probe": ["--udev", "--json"],
    "check": ["--force", "--json", "--repair", "--yes", "--repair", "--yes"],
    "drain": ["--discard-unplaced", "--quiet"],
    "pin": [], "unpin": [], "attach": [], "detach": [],
    "drop": ["--json"],
    "advise": ["--seconds", "--json"],
    "doctor": ["--json"],
    "metrics": ["--output"],
    "top": ["--interval", "--count", "--batch", "--callers"],
    "log-preload": ["--pattern", "--chunk-size", "--low-water", "--pre-allocate"],
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


@pytest.mark.parametrize("arguments, option", [(["--json", "-xy"], "'-x'"), (["-h"], "'-h'"), (["--json", "-hx"], "'-h'"), (["--help=x"], "'--help=x'"),
                                               (["--json=1"], "'--json=1'"), (["--bad"], "'--bad'"), (["-é"], "'-?'"),
                                               (["--bad\x1b"], "'--bad?'"), (["-\x1b"], "'-?'"), (["x", "-\x01"], "'-?'")])
def test_the_refused_option_is_named(forebay, arguments, option):
    result = forebay("status", *arguments)
    assert result.status == USAGE and result.err.startswith(f"forebay status: unknown option {option}")


def test_names_cannot_steer_the_terminal(forebay, tmp_path):
    """Neither by escape sequences nor by a second line; other characters stay."""
    result = forebay("status", tmp_path / "ä\x1b[31m\n\x9bb\x7f")
    assert result.status == FAILED
    assert result.err == f"forebay status: cannot find {tmp_path}/ä?[31m???b?: No such file or directory\n"
    image = tmp_path / "a\x1b[31m\nb"
    image.write_bytes(bytes(4 << 20))
    for words in ("format",), ("check",), ("check", "--repair"), ("status",), ("probe",), ("writelog", "format", "--force"), \
            ("writelog", "check"), ("writelog", "status"), ("probe",):
        result = forebay(*words, image)
        assert result.status == DONE and f"{tmp_path}/a?[31m?b" in result.out and "\x1b" not in result.out


def test_names_cannot_steer_the_terminal_through_mount(command, tmp_path):
    done = subprocess.run([command.parent / "mount.forebay", tmp_path, tmp_path / "a\x1b[31m\nb", "-o", "cache=/x"], capture_output=True,
                          text=True, check=False)
    name = f"{tmp_path}/a?[31m?b"
    assert done.returncode == 32
    assert done.stderr == f"mount.forebay: {name}: there is no mount point {name}: No such file or directory\n"


def test_a_static_program_gets_no_preload(forebay, tmp_path):
    """It would run without it, and nothing would say so."""
    program = tmp_path / "program"
    for how in "-static", "-static-pie":
        subprocess.run(["gcc", how, "-o", program, "-x", "c", "-"], input="int main(void) { return 0; }", text=True, check=True)
        result = forebay("log-preload", "--", program)
        assert result.status == FAILED and f"{program} is linked statically" in result.err
    result = forebay("log-preload", "--", "program", PATH=f"/nowhere:{tmp_path}")
    assert result.status == FAILED and "program is linked statically" in result.err


def test_a_library_that_can_not_be_named(command, tmp_path):
    """LD_PRELOAD is a list, which spaces and colons part. The command would run without the library."""
    for name in "a folder", "a:folder":
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "lib").mkdir()
        (tmp_path / name / "lib/libforebay-log-preload.so").touch()
        (tmp_path / name / "bin/forebay").write_bytes(command.read_bytes())
        (tmp_path / name / "bin/forebay").chmod(0o755)
        done = subprocess.run([tmp_path / name / "bin/forebay", "log-preload", "--", "true"], capture_output=True, text=True, check=False)
        assert done.returncode == FAILED and "has a space or a colon in its path" in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_names_its_options(forebay, verb):
    for arguments in ([*verb.split(), "--help"], ["help", *verb.split()], ["--help", *verb.split()]):
        result = forebay(*arguments)
        assert result.status == DONE and not result.err
        assert result.out.startswith(f"usage: forebay {verb} ")
        assert result.out.endswith(f"\n\nforebay-{verb.split()[0]}(8) has the details.\n")
        for option in [*VERBS[verb], "--help"]:
            assert re.search(rf"\n  {option}[ [][^\n]", result.out), option


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("option", ["--nonsense", "-x"])
def test_unknown_option(forebay, verb, option):
    result = forebay(*verb.split(), option)
    assert result.status == USAGE and not result.out
    assert result.err.startswith(f"forebay {verb}: unknown option")
    assert option in result.err
    assert f"usage: forebay {verb} " in result.err


def test_help_of_a_noun_lists_its_verbs_alone(forebay):
    for noun, about in {"writelog": "write logs", "emu": "ordinary memory", "transit": "transit caches"}.items():
        for arguments in ([noun, "--help"], ["help", noun]):
            result = forebay(*arguments)
            assert result.status == DONE and not result.err
            assert result.out.startswith(f"usage: forebay {noun} VERB ") and about in result.out.splitlines()[2]
            assert f"\n  {noun} create " in result.out and "\n  check " not in result.out


@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"log-preload"}))
def test_an_empty_argument(forebay, verb):
    """A script's variable was not set. There is no file without a name, and the message would have a gap."""
    for arguments in [""], ["x", ""]:
        result = forebay(*verb.split(), *arguments)
        assert result.status == USAGE and result.err.startswith(f"forebay {verb}: an argument is empty")


def test_an_empty_argument_of_a_program(forebay):
    """It is that program's."""
    result = forebay("log-preload", "--", "/nowhere", "")
    assert result.status == FAILED and "is empty" not in result.err


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
    """As the target's params.c has them, except origin_id and any_origin, which create sets itself."""
    source = (CHECKOUT / "dm" / noun / "params.c").read_text(encoding="utf-8")
    found = re.findall(r'^\tDWL_NUMBER\((\w+),.*(?:true|false)\),$|^\t\[\w+\] = { "(\w+)"', source, re.MULTILINE)
    taken = {first or second for first, second in found} | set(re.findall(r'strcmp\(key, "(\w+)"', source))
    assert taken - {"origin_id", "any_origin"} == set(OPTIONS[noun])
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
    assert "unknown verb 'drian'" in result.err
    assert "Did you mean `forebay drain`" in result.err
    assert "Did you mean" not in forebay("xyz").err
    for noun, verbs in {"writelog": "format, create, status, check, ", "emu": "create, list, ", "transit": "create, status, "}.items():
        result = forebay(noun)
        assert result.status == USAGE and f"{noun} needs a verb: {verbs}" in result.err and f"`forebay {noun} --help`" in result.err
    result = forebay("transit", "xx")
    assert result.status == USAGE and "unknown verb 'transit xx'" in result.err and "`forebay transit --help`" in result.err
    for option in "-V", "--hel":
        result = forebay(option)
        assert result.status == USAGE and f"unknown option '{option}'" in result.err and "`forebay --help`" in result.err
    assert "unknown option '-x'" in forebay("writelog", "-x").err
    result = forebay("writelog", "chekc")
    assert result.status == USAGE
    assert "unknown verb 'writelog chekc'" in result.err
    assert "Did you mean `forebay writelog check`" in result.err
    assert "Did you mean `forebay transit remove`" in forebay("transit", "remvoe").err


def test_help_for_what_there_is_not(forebay):
    for words in ["frobnicate"], ["writelog", "frob"], ["writelogs", "check"]:
        result = forebay("help", *words)
        assert result.status == USAGE and "unknown verb" in result.err and not result.out
    assert "Did you mean `forebay writelog check`" in forebay("help", "writelog", "chekc").err
    for words in [], ["writelog"], ["writelog", "check"], ["--help"], ["writelog", "--help"]:
        assert forebay("help", *words).status == DONE


@pytest.mark.parametrize("words", [["--help"], ["help", "check"], ["--version"], ["check", "--help"], ["writelog", "--help"]])
def test_output_that_cannot_be_written(command, words):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([command, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == FAILED and "cannot write to standard output" in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_report_that_cannot_be_written(command, cache, log, options):
    """On a full device, and where standard output is closed."""
    store, entries = cache("bind"), log("open 0")
    for words in ["status", store], ["probe", store], ["check", store], ["format", store], ["writelog", "status", entries], \
            ["writelog", "check", entries], ["writelog", "format", entries], ["status"], ["emu", "list"], ["doctor"]:
        for to in ">/dev/full", ">&-":
            done = subprocess.run(["sh", "-c", f'"$@" {to}', "sh", command, *words, *options], stderr=subprocess.PIPE,
                                  text=True, check=False)
            assert done.returncode == FAILED and "cannot write to standard output" in done.stderr, (words, to)


@pytest.mark.parametrize("words", [["remove", "/dev/nvme0n1"], ["cut", "/dev/nvme0n1:forebay-emu1"]])
def test_a_device_that_is_not_emulated(forebay, words):
    """The command line is a right one."""
    result = forebay("emu", *words)
    assert result.status == FAILED and "/dev/nvme0n1 is not an emulated device" in result.err


def test_a_backing_device_that_is_none(forebay, tmp_path):
    for path, why in (tmp_path, "is not a block device"), (tmp_path / "missing", "cannot be the backing: No such file or directory"):
        result = forebay("emu", "create", "--size", "1M", "--backing", path)
        assert result.status == FAILED and result.err.startswith(f"forebay emu create: {path} {why}\n")


DESTRUCTIVE = {"format", "writelog format", "emu remove", "emu cut"}


def near_misses(word):
    """Each word with a letter left out, doubled or replaced, and with two letters swapped."""
    for i in range(len(word)):
        yield word[:i] + word[i + 1:]
        yield word[:i] + word[i] + word[i:]
        yield word[:i] + "q" + word[i + 1:]
        yield word[:i] + word[i + 1:i + 2] + word[i] + word[i + 2:]


@pytest.mark.parametrize("words", ["flush", "fsck", "umount", "mount", "mkfs", "mkfs.forebay", "f", "for", "formatt", "fromat", "", "x" * 300,
                                   "writelog fmt", "writelog formta", "writelog fsck", "writelog rm", "emu rm", "emu rmove", "emu cat", "transit rm"])
def test_what_no_verb_is_proposed_for(forebay, words):
    """Not for a word of another program, and not if the nearest verb destroys data."""
    result = forebay(*(words.split() or [""]))
    assert result.status == USAGE and "unknown verb" in result.err
    assert "Did you mean" not in result.err


@pytest.mark.parametrize("verb", VERBS)
def test_a_near_miss_proposes_nothing_that_destroys(forebay, verb):
    *noun, word = verb.split()
    proposed = set()
    for miss in set(near_misses(word)) - {name.split()[-1] for name in VERBS}:
        said = forebay(*noun, miss).err
        proposed |= set(re.findall("Did you mean `forebay (.*)`", said))
    assert not proposed & DESTRUCTIVE
    assert verb in proposed or verb in DESTRUCTIVE


@pytest.mark.parametrize("arguments, complaint", [
    (["format"], "expected one device"),
    (["format", "a", "b"], "expected one device"),
    (["format", "--files"], "--files needs a value"),
    (["format", "--files", "0", "x"], "--files 0"),
    (["format", "--files", "-1", "x"], "--files -1"),
    (["format", "--files", "4194305", "x"], "from 1 to 4194304"),
    (["format", "--files", "3k", "x"], "--files 3k"),
    (["format", "--uuid", "zzz", "x"], "--uuid zzz"),
    (["format", "--json=yes", "x"], "--json=yes"),
    (["check"], "expected one device or image"),
    (["drain"], "expected one mount point"),
    (["probe"], "expected one device or image"),
    (["emu", "create", "--size", "1m", "--node", "4294967296"], "--node needs a number, not 4294967296"),
    (["emu", "create", "--size", "1m", "--node", "-1"], "not -1"),
    (["emu", "create", "--size", " -4096"], "--size needs a multiple of 4096 bytes, not  -4096"),
    (["emu", "create", "--size", "+4096"], "not +4096"),
    (["emu", "create", "--size", "1m", "--bandwidth", "1k"], "--bandwidth needs bytes a second, at least 1m, not 1k"),
    (["emu", "create", "--size", "1m", "--persistence", "x"], "--persistence needs mem-ctrl or cpu, not x"),
    (["emu", "create", "--size", "1m", "--write-delay-ns", "1g"], "--write-delay-ns needs a number up to 1000000, not 1g"),
    (["emu", "cut", "a"], "a: expected FROM:TO, two devices\n    usage: forebay emu cut "),
    (["top", "--interval", "0"], "--interval 0: expected seconds, up to 3600"),
    (["top", "--count", "-1"], "--count -1: expected a number of looks"),
    *((["top", "--interval", wrong], f"--interval {wrong}: expected seconds")
      for wrong in ("1e3", "0x10", " 5", "+5", "nan", "inf", "", ".")),
    (["top", "--count", "1e3"], "--count 1e3: expected a number of looks"),
    (["advise", "--seconds", "0x10", "/"], "--seconds 0x10: not a number"),
    (["writelog", "format"], "expected one device"),
    (["writelog", "format", "--generations", "1", "x"], "--generations needs a number from 2 to 4096, not 1"),
    (["writelog", "format", "--generations", "4097", "x"], "not 4097"),
    (["writelog", "format", "--chunk-size", "20000", "x"], "--chunk-size needs a multiple of 4096 from 16384 to 16777216"),
    (["writelog", "format", "--chunk-size", "8192", "x"], "from 16384 to 16777216, not 8192"),
    (["writelog", "format", "--align", "768", "x"], "--align needs 256, 512, 1024, 2048 or 4096, not 768"),
    (["writelog", "format", "--uuid", "zzz", "x"], "--uuid needs a UUID, not zzz"),
    (["writelog", "create", "a", "b"], "expected a name, an origin and a log"),
    (["writelog", "create", "--option", "slots", "a", "b", "c"], "--option slots: expected KEY=VALUE"),
    (["writelog", "create", "--option", "slots=1 2", "a", "b", "c"], "expected KEY=VALUE"),
    (["writelog", "create", "--option", "slot=1", "a", "b", "c"], "--option slot=1: unknown option; the options are slots, block_size, "),
    (["writelog", "create", "--option", "origin_id=00", "a", "b", "c"], "unknown option"),
    (["writelog", "check"], "expected one device or image"),
    (["writelog", "flush"], "expected the name of one mapped device"),
    (["writelog", "remove", "a", "b"], "expected the name of one mapped device"),
    (["writelog", "resume"], "expected the name of one mapped device"),
    (["writelog", "set", "a"], "expected the name of a mapped device, and options to set"),
    (["writelog", "set", "a", "depth"], "depth: expected KEY=VALUE"),
    (["writelog", "latency"], "expected the name of one mapped device"),
    (["writelog", "latency", "a", "o"], "o: expected on or off"),
    (["transit", "create", "a"], "expected a name and a device"),
    (["transit", "create", "--option", "slots=3", "a", "b"], "unknown option; the options are cache_size, "),
    (["transit", "flush"], "expected the name of one mapped device"),
    (["transit", "create", "--option", "workers", "a", "b"], "--option workers: expected KEY=VALUE"),
    (["transit", "remove"], "expected the name of one mapped device"),
    (["advise"], "expected a directory"),
    (["advise", "--seconds", "0", "/"], "--seconds 0: not a number from 1 to 86400"),
    (["log-preload"], "expected a command"),
    (["log-preload", "--chunk-size", "5000", "--", "true"], "--chunk-size 5000: not a multiple of 4096 up to 1G"),
    (["log-preload", "--low-water", "0", "--", "true"], "--low-water 0: not a number of chunks from 1 to 1024"),
    (["log-preload", "--pre-allocate", "1025", "--", "true"], "--pre-allocate 1025: not a number of chunks from 1 to 1024"),
    (["log-preload", "--chunk-size", "1G", "--pre-allocate", "16", "--", "true"], "so many chunks have 16G or more"),
    (["log-preload", "--chunk-size", "64M", "--low-water", "256", "--", "true"], "so many chunks have 16G or more"),
    (["log-preload", "--pattern", "x" * 5000, "--", "true"], "empty, of two lines or too long"),
    (["log-preload", "--pattern", "", "--", "true"], "--pattern '': empty"),
])
def test_wrong_arguments(forebay, arguments, complaint):
    result = forebay(*arguments)
    assert result.status == USAGE
    assert complaint in result.err
