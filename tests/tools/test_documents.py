# SPDX-License-Identifier: GPL-2.0-only
"""The man pages and the completion say what the command does, and get installed."""

import contextlib
import os
import pty
import re
import shlex
import shutil
import subprocess
import threading
import time

import pytest

from conftest import BUILD, CHECKOUT
from test_usage import VERBS

PAGES = sorted((CHECKOUT / "docs/man").glob("*.[0-9]"))
# The verbs without a noun, by the page that describes them. man finds the other verbs of a page under their own names, too.
VERB_PAGES = {"forebay-advise.8": ("advise",), "forebay-doctor.8": ("doctor",), "forebay-metrics.8": ("metrics",), "forebay-top.8": ("top",),
              "forebay-log-preload.8": ("log-preload",),
              "forebay-cache.8": ("format", "status", "probe", "check", "drain"), "forebay-pin.8": ("pin", "unpin", "attach", "detach", "drop")}
COMPLETION = CHECKOUT / "packaging/completion/forebay"


def page_of(verb):
    """Name of the man page that describes a verb: one for each noun."""
    noun, _, rest = verb.partition(" ")
    return f"forebay-{noun}.8" if rest else next(page for page, verbs in VERB_PAGES.items() if verb in verbs)


def man(name):
    return (CHECKOUT / "docs/man" / name).read_text()


@pytest.mark.skipif(not shutil.which("mandoc"), reason="no mandoc")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_page_is_well_formed(page):
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("man"), reason="no man")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_page_fits_a_terminal(page):
    """A table that is too wide for 80 columns is unreadable."""
    done = subprocess.run(["man", "--warnings", "-l", page], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "MANWIDTH": "80"}, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("verb", VERBS)
def test_man_page_has_every_option(verb):
    text = man(page_of(verb))
    section = re.search(rf"^\.Ss forebay {verb}\n(.*?)^\.S[sh] ", text, re.MULTILINE | re.DOTALL)[1]
    described = {f"-{option}" for option in re.findall(r"^\.It Fl (\S+)", section, re.MULTILINE)}
    assert described == set(VERBS[verb])
    words = r"\s+(?:\.Cm )?".join(verb.split())
    synopsis = re.search(rf"^\.Cm {words}\n(.*?)^\.(?:Nm forebay$|Sh )", text, re.MULTILINE | re.DOTALL)[1]
    assert {f"-{option}" for option in re.findall(r"^\.(?:Op )?Fl (\S+)", synopsis, re.MULTILINE)} == described


@pytest.mark.parametrize("verb", VERBS)
def test_overview_leads_to_the_page_of_a_verb(verb):
    """forebay.8 lists the verbs with their pages; a verb without a noun is in the page's own NAME, so that apropos finds it."""
    page = page_of(verb).removesuffix(".8")
    noun, last = verb.split() if " " in verb else ("", verb)
    item = re.search(rf"^\.It Xr {page} 8\n\.Cm (.*?) :$", man("forebay.8"), re.MULTILINE)[1]
    assert last in re.findall(r"[\w-]+", item) and item.startswith(noun)
    assert f"\n.Xr {page} 8" in re.search(r"^\.Sh SEE ALSO\n.*", man("forebay.8"), re.MULTILINE | re.DOTALL)[0]
    if not noun:
        assert re.search(rf"^\.Nm forebay-{verb}( ,)?$", man(f"{page}.8"), re.MULTILINE)


def complete(*words, stubs=""):
    """What is offered for the last word. Words are given as bash splits them, "=" and ":" alone."""
    line = re.sub(r" ?(?<![^ ])([=:]+)(?![^ ]) ?", r"\1", " ".join(words))
    typed = "" if re.fullmatch("[=:]+", words[-1]) else words[-1].lstrip("'\"")
    script = f'. "{COMPLETION}"; {stubs} COMP_LINE=$1; shift; typed=$1; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
             '_forebay forebay "$typed"; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, "bash", line, typed, *words], capture_output=True, text=True, check=True)
    return [word for word in done.stdout.split("\n") if word]


class Shell:
    """A bash in which forebay only writes down its arguments, and each line ends with a tab."""

    def __init__(self, folder, setup=""):
        self.said, program, rc = folder / "said", folder / "bin/forebay", folder / "rc"
        program.parent.mkdir()
        program.write_text(f"#!/bin/bash\nprintf '%s\\n' \"$@\" >{self.said}.new; mv {self.said}.new {self.said}\n")
        program.chmod(0o755)
        rc.write_text(f'PATH={folder}/bin:$PATH; . "{COMPLETION}"; {setup}\n')
        self.terminal, there = pty.openpty()
        self.bash = subprocess.Popen(["bash", "--noprofile", "--rcfile", rc, "-i"], stdin=there, stdout=there, stderr=there,
                                     start_new_session=True, cwd=folder,
                                     env={**os.environ, "TERM": "dumb", "INPUTRC": "/dev/null"})
        os.close(there)
        threading.Thread(target=self.swallow, daemon=True).start()

    def swallow(self):
        """What bash prints, so that it never waits for a reader."""
        with contextlib.suppress(OSError):
            while os.read(self.terminal, 4096):
                pass

    def type(self, line):
        """The arguments that forebay gets once the last of them has been completed."""
        os.write(self.terminal, f"{line}\t\n".encode())
        deadline = time.monotonic() + 10
        while not self.said.exists():
            assert time.monotonic() < deadline, line
            time.sleep(0.01)
        arguments = self.said.read_text().splitlines()
        self.said.unlink()
        return arguments

    def end(self):
        self.bash.kill()
        self.bash.wait()


@pytest.fixture(name="shell")
def shell_fixture(tmp_path):
    shells = []

    def start(setup=""):
        shells.append(Shell(tmp_path, setup))
        return shells[-1].type
    yield start
    for shell in shells:
        shell.end()


BREAKS = ["", "COMP_WORDBREAKS=${COMP_WORDBREAKS//[:=]}"]


@pytest.mark.parametrize("breaks", BREAKS)
def test_names_at_which_readline_breaks_words(shell, breaks):
    """Typed in a terminal: bash has completed no more than what is behind the last of these characters."""
    names = ["/srv/a:b c", "/srv/k=v", "/srv/k==w:x", "/srv/@home", "/srv/$(touch ran)!x`'", '/srv/x"y\'"', "/srv/w!"]
    typed = shell(f"findmnt() {{ printf '%s\\n' {shlex.join(names)}; }}; _forebay_devices() {{ :; }}; {breaks}")
    for before, name in [
            ("/srv/a", 0), ("/srv/a:", 0), ("/srv/a:b", 0), (r"/srv/a\:b\ ", 0), ('"/srv/a:b ', 0), ("/srv/k=v", 1),
            ("/srv/k==", 2), ("/srv/k==w:", 2), ("/srv/@", 3), ("/srv/@ho", 3), (r"/srv/\$", 4), (r'"/srv/\$', 4),
            ("'/srv/$", 4), ("/srv/x", 5), ('"/srv/x', 5), ("'/srv/x", 5), ("/srv/w", 6), ('"/srv/w', 6), ("'/srv/w", 6)]:
        for verb in "drain", "status":
            assert typed(f"forebay {verb} {before}") == [verb, names[name]], before
    assert typed("forebay status /srv/a:b\\ c /srv/@h") == ["status", "/srv/a:b c", "/srv/@home"]


@pytest.mark.parametrize("breaks", BREAKS)
def test_files_at_which_readline_breaks_words(shell, breaks, tmp_path):
    for name in "an:image", "x=y z", "dir:1/deep@2":
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    typed = shell(breaks)
    for verb in ["check"], ["pin"], ["writelog", "check"], ["metrics", "--output"]:
        for before, name in [
                ("an:", "an:image"), ("an:im", "an:image"), ("x=", "x=y z"), ("./x=y", "./x=y z"), ("dir:1/d", "dir:1/deep@2"),
                ("dir:1/deep@", "dir:1/deep@2"), ("dir:", "dir:1/"), (r"dir\:1/deep@", "dir:1/deep@2")]:
            assert typed(f"forebay {' '.join(verb)} {before}") == [*verb, name], before


@pytest.mark.parametrize("breaks", BREAKS)
def test_values_in_a_terminal(shell, breaks):
    typed = shell(f"_forebay_transits() {{ echo quick; }}; {breaks}")
    assert typed("forebay format --names=a") == ["format", "--names=auto"]
    assert typed("forebay writelog create --option on_damage=sk") == ["writelog", "create", "--option", "on_damage=skip"]
    assert typed("forebay writelog create --option=on_damage=sk") == ["writelog", "create", "--option=on_damage=skip"]
    assert typed("forebay writelog create --option=on_d") == ["writelog", "create", "--option=on_damage="]
    assert typed("forebay transit set quick bypass=of") == ["transit", "set", "quick", "bypass=off"]


def test_completion_of_verbs():
    assert set(complete("forebay", "")) == {*(verb.split()[0] for verb in VERBS), "help", "--help", "--version"}
    assert complete("forebay", "dr") == ["drain", "drop"]
    for noun in ("writelog", "transit", "emu"):
        assert set(complete("forebay", noun, "")) == {*(verb.split()[1] for verb in VERBS if verb.startswith(f"{noun} ")), "--help"}
    assert complete("forebay", "writelog", "rem") == ["remove"]


@pytest.mark.parametrize("verb", VERBS)
def test_completion_of_options(verb):
    assert set(complete("forebay", *verb.split(), "--")) == {*VERBS[verb], "--help"}


def test_completion_runs_nothing(tmp_path):
    """Of what a mount point is called; special characters are quoted."""
    names = [f"/srv/$(touch {tmp_path}/ran)", f"/srv/`touch {tmp_path}/ran`", "/srv/my db", "/srv/it's", '/srv/"x', "/srv/*", "/mnt/other"]
    (tmp_path / "names").write_text("".join(f"{name}\n" for name in names))
    stubs = f"findmnt() {{ cat {tmp_path}/names; }}; _forebay_devices() {{ :; }};"
    offered = complete("forebay", "drain", "/srv/", stubs=stubs)
    assert not (tmp_path / "ran").exists()
    assert [shlex.split(word) for word in offered] == [[name] for name in names[:-1]]
    for typed in ("/srv/my", r"/srv/my\ d", "/srv/my d"):
        assert complete("forebay", "status", typed, stubs=stubs) == [r"/srv/my\ db"]
    assert complete("forebay", "status", '"/srv/my d', stubs=stubs) == ["/srv/my db"]


def test_completion_of_what_takes_nothing():
    """No device stands behind a verb without arguments, or in place of a number."""
    stubs = "_forebay_devices() { echo /dev/memory; };"
    for words in (["top"], ["metrics"], ["doctor"], ["top", "--interval"], ["top", "--count"], ["advise", "--seconds"]):
        assert complete("forebay", *words, "", stubs=stubs) == []


def test_completion_of_a_command():
    """Behind log-preload and its options; what follows are options and files of that command."""
    for before in ([], ["--"], ["--pattern", "*.log"], ["--pattern", "=", "*.log", "--low-water", "2", "--"]):
        assert "sort" in complete("forebay", "log-preload", *before, "sor")
        assert complete("forebay", "log-preload", *before, "sort", "--p") == []
    assert complete("forebay", "log-preload", "--p") == ["--pattern", "--pre-allocate"]


def test_completion_of_help():
    assert set(complete("forebay", "help", "")) == {verb.split()[0] for verb in VERBS}
    assert complete("forebay", "help", "writelog", "ch") == ["check"]
    assert complete("forebay", "help", "check", "") == []


def test_completion_of_keys_and_values():
    """bash splits the words at "="."""
    assert complete("forebay", "writelog", "create", "--option", "on") == ["on_damage="]
    assert complete("forebay", "writelog", "create", "--option", "on_damage", "=") == ["stop", "skip"]
    assert complete("forebay", "writelog", "create", "--option", "on_damage", "=", "sk") == ["skip"]
    assert complete("forebay", "transit", "create", "--option", "policy", "=", "pm") == ["pmbd", "pmbd70"]
    assert complete("forebay", "transit", "create", "--option", "bypass", "=", "of") == ["off"]
    assert complete("forebay", "transit", "create", "--option", "workers", "=") == []
    for value in [""], ["="], ["=", "a"]:
        assert complete("forebay", "format", "--names", *value) == ["auto"]
    assert complete("forebay", "writelog", "create", "--option", "=", "on") == ["on_damage="]
    assert complete("forebay", "writelog", "create", "--option", "=", "on_damage", "=") == ["stop", "skip"]
    assert complete("forebay", "writelog", "create", "--option", "=", "on_damage", "=", "sk") == ["skip"]
    assert complete("forebay", "emu", "create", "--persistence", "=", "c") == ["cpu"]
    assert complete("forebay", "metrics", "--output", "=", "x") == []


def test_completion_behind_the_device():
    stubs = "_forebay_writelogs() { echo fast; }; _forebay_transits() { echo quick; };"
    assert complete("forebay", "writelog", "set", "", stubs=stubs) == ["fast"]
    assert complete("forebay", "writelog", "set", "fast", "hi", stubs=stubs) == ["high_mark="]
    assert complete("forebay", "transit", "set", "quick", "bypass", "=", "on", "ea", stubs=stubs) == ["eager_eviction="]
    assert complete("forebay", "transit", "set", "quick", "bypass", "=", stubs=stubs) == ["on", "off"]
    assert complete("forebay", "transit", "latency", "--json", "", stubs=stubs) == ["quick"]
    assert complete("forebay", "transit", "latency", "quick", "o", stubs=stubs) == ["on", "off"]


def test_completion_of_what_to_create_from():
    """Disks for the device below, persistent memory for the log, nothing for the name."""
    stubs = "_forebay_disks() { echo /dev/disk; }; _forebay_devices() { echo /dev/memory; };"
    for options in ([], ["--any-origin"], ["--option", "slots", "=", "4"], ["--option", "slots=4"], ["--option", "=", "slots", "=", "4"]):
        create = ["forebay", "writelog", "create", *options]
        assert complete(*create, "", stubs=stubs) == []
        assert complete(*create, "fast", "", stubs=stubs) == ["/dev/disk"]
        assert complete(*create, "fast", "/dev/disk", "", stubs=stubs) == ["/dev/memory"]
    assert complete("forebay", "transit", "create", "", stubs=stubs) == []
    assert complete("forebay", "transit", "create", "quick", "", stubs=stubs) == ["/dev/disk"]


def test_completion_of_what_has_a_status(tmp_path):
    """Mapped devices, and the devices below them. The script prints what `dmsetup deps` prints for two devices."""
    program = tmp_path / "dmsetup"
    program.write_text("""#!/bin/sh
        case $* in
        'ls --target forebay-'*) printf 'one\\t(253:0)\\ntwo\\t(253:1)\\n' ;;
        'deps -o blkdevname one two') printf 'one: 2 dependencies  : (nvme0n1) (pmem0)\\n\\ntwo: 1 dependencies  : (dm-3)\\n\\n' ;;
        esac
    """)
    program.chmod(0o755)
    stubs = f"_forebay_devices() {{ :; }}; PATH={tmp_path}:$PATH;"
    for noun in "writelog", "transit":
        assert complete("forebay", noun, "status", "", stubs=stubs) == ["one", "two", "/dev/nvme0n1", "/dev/pmem0", "/dev/dm-3"]
    assert complete("forebay", "transit", "flush", "", stubs=stubs) == ["one", "two"]


def test_policies_are_those_of_the_target(forebay):
    """In the help, the documents and the completion."""
    policies = set(re.findall(r"&dtc_policy_(\w+)", (CHECKOUT / "dm/transit/params.c").read_text()))
    assert "transit" in policies and set(complete("forebay", "transit", "create", "--option", "policy", "=")) == policies
    table = re.search(r"^## Policies\n(.*?)\n\n", (CHECKOUT / "docs/transit.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == policies
    section = re.search(r"^\.It Cm policy\n(.*?)^\.It", man("forebay-transit.8"), re.MULTILINE | re.DOTALL)[1]
    for text in section, forebay("transit", "create", "--help").out:
        assert policies <= set(re.findall(r"\w+", text))


def test_json_of_a_log_is_documented(forebay, blank):
    """docs/writelog.md and the man page name every key of status and check for a log that is not in use."""
    log = blank(name="log.img")
    assert forebay("writelog", "format", log).status == 0
    keys = set(forebay("writelog", "status", "--json", log).json[0]) | set(forebay("writelog", "check", "--json", log).json)
    page = re.search(r"^## JSON\n(.*?)^## ", (CHECKOUT / "docs/writelog.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    assert keys <= set(re.findall(r"`(\w+)`", page))
    section = re.search(r"^\.Ss forebay writelog status\n(.*?)^\.Ss forebay writelog flush", man("forebay-writelog.8"),
                        re.MULTILINE | re.DOTALL)[1]
    assert keys <= set(re.findall(r"\w+", section))


JSON_SOURCES = {
    "forebay-advise.8": ["advise/advise.c"],
    "forebay-cache.8": ["cache/format.c", "cache/status.c", "cache/status_file.c", "cache/probe.c", "cache/check.c"],
    "forebay-doctor.8": ["doctor/doctor.c"],
    "forebay-emu.8": ["emu/create.c", "emu/list.c"],
    "forebay-pin.8": ["cache/drop.c"],
    "forebay-transit.8": ["transit/status.c", "mapped/report.c"],
    "forebay-writelog.8": ["writelog/status.c", "writelog/format.c", "writelog/check.c", "device/log.c", "mapped/report.c", "mapped/latency.c"],
}


@pytest.mark.parametrize("page", JSON_SOURCES)
def test_json_is_documented(page):
    """The man page of a verb names every key that the verb's source prints."""
    source = "".join((CHECKOUT / "tools" / name).read_text(encoding="utf-8") for name in JSON_SOURCES[page])
    keys = set(re.findall(r'json_(?:add_\w+|object_object_add)\(\w+, "(\w+)"', source))
    assert keys and not keys - set(re.findall(r"\w+", man(page)))


def test_install(command, tmp_path):
    subprocess.run(["make", "-s", "-C", CHECKOUT / "tools", f"O={BUILD}", f"DESTDIR={tmp_path}", "PREFIX=/usr", "install"],
                   check=True)
    installed = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    manuals = {f"usr/share/man/man{page.suffix[1:]}/{page.name}" for page in PAGES if page.suffix != ".3"}
    others = {f"usr/share/man/man8/forebay-{verb}.8" for verbs in VERB_PAGES.values() for verb in verbs}
    assert installed == manuals | others | {"usr/sbin/forebay", "sbin/mount.forebay", "usr/share/bash-completion/completions/forebay",
                                            "usr/lib/udev/rules.d/64-forebay.rules"}
    for page, verbs in VERB_PAGES.items():
        for verb in verbs:
            if page != f"forebay-{verb}.8":
                assert (tmp_path / f"usr/share/man/man8/forebay-{verb}.8").read_text() == f".so man8/{page}\n"
    assert 'IMPORT{program}="/usr/sbin/forebay probe --udev $devnode"' in (tmp_path / "usr/lib/udev/rules.d/64-forebay.rules").read_text()
    subprocess.run(["make", "-s", "-C", CHECKOUT / "tools", f"O={BUILD}", f"DESTDIR={tmp_path}", "PREFIX=/usr", "uninstall"], check=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
