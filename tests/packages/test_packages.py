# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages of `make deb`: what is in them, what they depend on, that two folders give the same files, and what their
maintainer scripts do. tests/systemd/test_packages.py installs them in a machine.

    make test-packages
"""

import lzma
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "tests/formats"
VERSION = (ROOT / "packaging/VERSION").read_text(encoding="utf-8").strip()
NAMES = {"forebay": "amd64", "forebay-dkms": "all", "libforebay1": "amd64", "libforebay-log0": "amd64", "libforebay-dev": "amd64",
         "python3-forebay": "amd64"}
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
LIBRARY_OF = {"libforebay1": "libforebay.so.1", "libforebay-log0": "libforebay-log.so.0"}
MODULES = {"forebay", "dm-forebay-writelog", "dm-forebay-transit", "forebay-emu", "forebay-ranges"}


def output(*command, **settings):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, **settings).stdout


def copy_checkout(folder):
    """A clone, with what is not committed here."""
    output("git", "clone", "-q", ROOT, folder)
    for name in output("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name and (ROOT / name).is_file():
            shutil.copy(ROOT / name, folder / name)
        elif name:
            (folder / name).unlink(missing_ok=True)
    return folder


def build(folder, **environment):
    """Builds the packages of a checkout; returns their folder."""
    done = subprocess.run([folder / "packaging/deb"], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout
    return folder / "build/deb"


@pytest.fixture(name="built", scope="session")
def fixture_built(tmp_path_factory):
    """The folder with the packages."""
    return build(copy_checkout(tmp_path_factory.mktemp("first") / "checkout"))


@pytest.fixture(name="package", scope="session")
def fixture_package(built):
    """The file of a package."""
    return lambda name: built / f"{name}_{VERSION}_{NAMES[name]}.deb"


@pytest.fixture(name="control", scope="session")
def fixture_control(package, tmp_path_factory):
    """A folder with the maintainer scripts of a package, and the rest of its control files."""
    def extract(name):
        folder = tmp_path_factory.mktemp("control")
        output("dpkg-deb", "-e", package(name), folder)
        return folder
    return extract


@pytest.fixture(name="root", scope="session")
def fixture_root(package, tmp_path_factory):
    """All packages, unpacked into one folder."""
    folder = tmp_path_factory.mktemp("root")
    for name in NAMES:
        output("dpkg-deb", "-x", package(name), folder)
    return folder


def field(package, name):
    return output("dpkg-deb", "-f", package, name).strip()


def contents(package):
    """The names of a package's files, without folders."""
    lines = output("dpkg-deb", "-c", package).splitlines()
    return {line.split(" -> ")[0].split()[5].removeprefix(".") for line in lines if not line.startswith("d")}


def test_packages(built):
    assert {path.name for path in built.glob("*.deb")} == {f"{name}_{VERSION}_{where}.deb" for name, where in NAMES.items()}


def test_contents(package):
    """Each file of `make install` is in one package, at the place that Debian gives it."""
    command = contents(package("forebay"))
    assert {"/usr/sbin/forebay", "/usr/sbin/mount.forebay", "/usr/lib/systemd/system-generators/forebay-generator",
            "/usr/lib/systemd/system/forebay-writelog@.service", "/usr/lib/systemd/system/forebay-transit@.service",
            "/usr/lib/systemd/system/forebay-unmounted@.service", "/usr/lib/systemd/system/forebay-metrics.service",
            "/usr/lib/systemd/system/forebay-metrics.timer", "/usr/lib/udev/rules.d/64-forebay.rules",
            "/usr/share/bash-completion/completions/forebay", "/usr/share/man/man5/forebay.5.gz",
            "/usr/share/man/man8/mount.forebay.8.gz", "/usr/share/man/man8/forebay-unpin.8.gz"} <= command
    pages = {f"/usr/share/man/man8/{path.name}.gz" for path in (ROOT / "docs/man").glob("*.8")}
    assert pages <= command
    assert not [name for name in command if name.startswith(("/etc/", "/usr/local", "/usr/src", "/lib", "/sbin"))]
    for name, library in LIBRARY_OF.items():
        assert {path for path in contents(package(name)) if "/doc/" not in path} == {f"{LIBRARIES}/{library}"}
    assert {f"{LIBRARIES}/libforebay.so", f"{LIBRARIES}/libforebay.a", f"{LIBRARIES}/pkgconfig/forebay.pc", "/usr/include/forebay.h",
            "/usr/include/linux/forebay.h", "/usr/share/man/man3/forebay_pin.3.gz"} <= contents(package("libforebay-dev"))
    assert {name for name in contents(package("python3-forebay")) if "/doc/" not in name} == {
        f"/usr/lib/python3/dist-packages/{name}" for name in ("forebay.py", "_forebay.abi3.so")}


def test_sources_of_the_modules(package, root):
    """All that the build of the modules reads, and nothing else; dkms.conf names each module and the version."""
    source = f"/usr/src/forebay-{VERSION}/"
    kept = {name.removeprefix(source) for name in contents(package("forebay-dkms")) if name.startswith(source)}
    folders = "compat core fs dm emu include"
    wanted = {name for name in output("git", "-C", ROOT, "ls-files", "--", *folders.split()).split()
              if name.endswith((".c", ".h", "features.sh", "Kbuild"))}
    assert kept == wanted | {"Kbuild", "dkms.conf"}
    conf = (root / source.lstrip("/") / "dkms.conf").read_text(encoding="utf-8")
    assert f'PACKAGE_VERSION="{VERSION}"' in conf
    assert set(re.findall(r'BUILT_MODULE_NAME\[\d\]="(.*)"', conf)) == MODULES


def test_dependencies(package):
    assert f"forebay-dkms (= {VERSION})" in field(package("forebay"), "Depends")
    assert "dkms" in field(package("forebay-dkms"), "Depends")
    for release in ("linux-headers-6.12-amd64", "linux-headers-amd64 (>= 6.12)"):
        assert release in field(package("forebay-dkms"), "Recommends")
    assert f"libforebay1 (= {VERSION})" in field(package("libforebay-dev"), "Depends")
    python = field(package("python3-forebay"), "Depends")
    assert "libforebay1 (>= 0.1.0)" in python and re.search(r"python3-cffi-backend-api-min \(<= \d{4,}\)", python)
    assert not re.search(r"python3 \(<<", python)       # the stable interface: any later Python will do
    for name in NAMES:
        assert field(package(name), "Version") == VERSION


def test_lintian(built):
    """No error and no warning; overrides have their reason beside them."""
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning,info", "--display-info", *built.glob("*.changes")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "", done.stdout
    for path in (ROOT / "packaging/debian").glob("*lintian-overrides"):
        assert path.read_text(encoding="utf-8").startswith("# ")


def test_reproducible(built, tmp_path):
    """Another folder, user settings and time zone, and files with other dates and modes, give the same bytes."""
    other = copy_checkout(tmp_path / "a-much/longer/path/of-another-checkout")
    for path in other.rglob("*"):
        if path.is_file() and ".git/" not in f"{path}":
            path.chmod(path.stat().st_mode & ~0o077)
            os.utime(path, (1_000_000_000, 1_000_000_000))
    again = build(other, TZ="Pacific/Auckland", LANG="C", CFLAGS="-O0", HOME=str(tmp_path), DEB_BUILD_OPTIONS="parallel=3")
    for path in built.glob("*.deb"):
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name


def test_scripts_of_maintainers(control):
    """They parse, shellcheck has nothing to say of them, and none of debhelper's marks is left."""
    scripts = [path for name in NAMES for kind in ("preinst", "postinst", "prerm", "postrm") if (path := control(name) / kind).exists()]
    assert {path.name for path in scripts} == {"postinst", "prerm", "postrm"}
    for path in scripts:
        output("sh", "-n", path)
        assert "#DEBHELPER#" not in path.read_text(encoding="utf-8")
    own = [*(ROOT / "packaging/debian").glob("*.p[or][es]*[mt]"), ROOT / "packaging/deb"]
    assert len(own) == 6
    output("shellcheck", *own)


@pytest.mark.parametrize("name", LIBRARY_OF)
def test_symbols(root, control, name):
    """The symbols file has each function of the library; a function without a line there would fail the build."""
    library = root / LIBRARIES.lstrip("/") / LIBRARY_OF[name]
    assert re.search(rf"SONAME +{LIBRARY_OF[name]}\n", output("objdump", "-p", library))
    defined = {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()}
    listed = set(re.findall(r"^ (\w+)@Base 0\.1\.0$", (control(name) / "symbols").read_text(encoding="utf-8"), re.M))
    assert defined == listed


def test_python_module(root):
    """Without a path of its own, it finds the library of the same packages."""
    module = root / "usr/lib/python3/dist-packages"
    assert not re.search(r"RUNPATH|RPATH", output("objdump", "-p", module / "_forebay.abi3.so"))
    said = output("/usr/bin/python3", "-B", "-c", "import forebay; print(forebay.__file__)",
                  env={"PYTHONPATH": str(module), "LD_LIBRARY_PATH": str(root / LIBRARIES.lstrip("/"))})
    assert said.strip() == str(module / "forebay.py")


def test_pkg_config(root):
    said = output("pkg-config", "--variable=libdir", "forebay",
                  env={**os.environ, "PKG_CONFIG_PATH": str(root / LIBRARIES.lstrip("/") / "pkgconfig")})
    assert said.strip() == LIBRARIES


class Machine:
    """What a maintainer script looks at, in a folder: devices in /sys and /dev, and programs with set answers."""

    def __init__(self, folder, root):
        self.folder, self.root = folder, root
        for name in ("bin", "sys/class/block", "dev", "etc", "images"):
            (folder / name).mkdir(parents=True)
        (folder / "dev/null").touch()
        (folder / "etc/fstab").touch()
        self.block = next(path for path in Path("/dev").iterdir() if path.is_block_device())
        self.program("findmnt", "exit 1")
        self.program("dmsetup", "echo 'No devices found'")
        self.program("modprobe", "true")
        self.program("dkms", "true")
        # The command of the package, which gets the image in place of a device
        self.program("forebay", f'eval "last=\\${{$#}}"; shift_last() {{ set -- "$@"; }}\n'
                     f'n=$(($# - 1)); i=0; for word; do shift; i=$((i + 1)); [ $i -gt $n ] || set -- "$@" "$word"; done\n'
                     f'exec {root}/usr/sbin/forebay "$@" "{folder}/images/${{last##*/}}"')

    def program(self, name, script):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def device(self, name, image):
        """Persistent memory with the contents of an image."""
        (self.folder / "sys/class/block" / name).mkdir()
        (self.folder / "dev" / name).symlink_to(self.block)
        contents_of = [lzma.open(path).read() for path in IMAGES.glob(f"*/{image}.img.xz")]
        assert len(contents_of) == (image is not None)
        (self.folder / "images" / name).write_bytes(b"".join(contents_of))

    def module(self, name, users):
        (self.folder / "sys/module" / name).mkdir(parents=True)
        (self.folder / "sys/module" / name / "refcnt").write_text(f"{users}\n", encoding="utf-8")

    def run(self, script, *arguments):
        """The script, with this folder in place of /sys, /dev, /etc, /run and what it deletes in /var."""
        text = re.sub(r"(?<![\w.])/(sys|dev|etc|run|var/lib/prometheus)/", rf"{self.folder}/\1/", script.read_text(encoding="utf-8"))
        done = subprocess.run(["sh", "-c", text, script.name, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env={"PATH": f"{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
        return done.returncode, done.stdout


@pytest.fixture(name="machine")
def fixture_machine(tmp_path, root):
    return Machine(tmp_path, root)


def test_removal_of_what_is_unused(machine, control):
    """Empty devices and those of others are no reason to refuse. A line of fstab is mentioned."""
    for number, image in enumerate(("cache-empty", "log-empty", None)):
        machine.device(f"pmem{number}", image)
    (machine.folder / "etc/fstab").write_text("/srv/ssd /srv/db forebay cache=/dev/pmem0 0 0\n#/a /b forebay x 0 0\n", encoding="utf-8")
    status, said = machine.run(control("forebay") / "prerm", "remove")
    assert status == 0 and "/etc/fstab still mounts with Forebay: /srv/db - remove" in said, said


@pytest.mark.parametrize("program, script, advice", [
    ("findmnt", "echo /srv/db", "umount /srv/db"),
    ("dmsetup", "[ $3 = forebay-transit ] || echo 'fast\t(254:0)'", "forebay writelog remove fast"),
    ("dmsetup", "[ $3 = forebay-wlog ] || echo 'quick\t(254:1)'", "forebay transit remove quick")])
def test_removal_is_refused_in_use(machine, control, program, script, advice):
    machine.program(program, script)
    prerm = control("forebay") / "prerm"
    status, said = machine.run(prerm, "remove")
    assert status == 1 and "not removed" in said and said.splitlines()[-1] == f"  {advice}", said
    assert machine.run(prerm, "upgrade", "0.2.0") == (0, "")


def test_timer_of_the_metrics(machine, control):
    """It stops with a removal, and neither with an upgrade nor with a removal that is refused."""
    (machine.folder / "run/systemd/system").mkdir(parents=True)
    machine.program("systemctl", '[ "$1" = is-active ] || echo "systemctl $*"')
    prerm = control("forebay") / "prerm"
    assert machine.run(prerm, "upgrade", "0.2.0") == (0, "")
    assert machine.run(prerm, "remove") == (0, "systemctl stop forebay-metrics.timer forebay-metrics.service\n")
    machine.program("findmnt", "echo /srv/db")
    status, said = machine.run(prerm, "remove")
    assert status == 1 and "systemctl" not in said, said


@pytest.mark.parametrize("active", [True, False])
def test_timer_after_a_removal_that_is_aborted(machine, control, active):
    """dpkg may give a removal up behind prerm. The timer goes on if it ran before."""
    (machine.folder / "run/systemd/system").mkdir(parents=True)
    machine.program("systemctl", f'[ "$1" != is-active ] || exit {0 if active else 3}; echo "systemctl $*"')
    assert machine.run(control("forebay") / "postinst", "abort-remove") == (0, "")
    machine.run(control("forebay") / "prerm", "remove")
    again = "systemctl start forebay-metrics.timer\n" if active else ""
    assert machine.run(control("forebay") / "postinst", "abort-remove") == (0, again)
    assert machine.run(control("forebay") / "postinst", "abort-remove") == (0, "")
    machine.run(control("forebay") / "prerm", "remove")
    machine.run(control("forebay") / "postrm", "remove")
    assert not [path.name for path in (machine.folder / "run").iterdir() if path.is_file()]


@pytest.mark.parametrize("image", ["log-used", "log-cut", "cache-used", "cache-cut", "cache-decided"])
def test_removal_is_refused_with_data(machine, control, image):
    """Not in use, as after a power cut: the SSD lacks what is there. cache-decided holds changes of names alone."""
    machine.device("pmem0", "log-empty")
    machine.device("pmem1", image)
    prerm = control("forebay") / "prerm"
    status, said = machine.run(prerm, "remove")
    assert status == 1 and f"not removed: {machine.folder}/dev/pmem1 holds data that the SSD lacks" in said, said
    assert machine.run(prerm, "upgrade", "0.2.0") == (0, "")


@pytest.mark.parametrize("module", ["forebay", "dm_forebay_writelog", "dm_forebay_transit"])
def test_modules_in_use_stay(machine, control, module):
    """With the package forebay gone already, or by force."""
    machine.program("dkms", 'echo "dkms $*"')
    machine.module("forebay_ranges", 1)
    machine.module(module, 2)
    prerm = control("forebay-dkms") / "prerm"
    status, said = machine.run(prerm, "remove")
    assert status == 1 and f"the module {module} is in use" in said and "dkms remove" not in said, said
    status, said = machine.run(prerm, "upgrade", "0.2.0")
    assert status == 0 and "dkms remove" in said, said
    (machine.folder / "sys/module" / module / "refcnt").write_text("0\n", encoding="utf-8")
    status, said = machine.run(prerm, "remove")
    assert status == 0 and f"dkms remove -m forebay -v {VERSION} --all" in said, said


def dkms_says(machine, control, kernel):
    """What the last part of forebay-dkms's postinst says, without DKMS."""
    machine.program("uname", f"echo {kernel}")
    text = (control("forebay-dkms") / "postinst").read_text(encoding="utf-8")
    own = machine.folder / "postinst"
    own.write_text(text[text.index("say() {"):], encoding="utf-8")
    status, said = machine.run(own, "configure")
    assert status == 0, said
    return said


def test_what_is_left_to_do(machine, control):
    """Nothing is said where all is well; else what to install, what to reload, and which key to enrol."""
    machine.program("modinfo", "echo NEW")
    machine.program("mokutil", "echo \"$2 is not enrolled\"")
    assert dkms_says(machine, control, "6.12.90-amd64") == ""
    machine.module("dm_forebay_writelog", 1)
    (machine.folder / "sys/module/dm_forebay_writelog/srcversion").write_text("OLD\n", encoding="utf-8")
    assert "modprobe -r dm_forebay_writelog; or reboot" in dkms_says(machine, control, "6.12.90-amd64")
    shutil.rmtree(machine.folder / "sys/module")
    machine.program("modinfo", "exit 1")
    assert "once linux-headers-6.12.90-amd64 is installed" in dkms_says(machine, control, "6.12.90-amd64")
    assert "reboot into that" in dkms_says(machine, control, "6.1.0-49-amd64")


@pytest.mark.parametrize("value, mokutil, said", [(1, "is not enrolled", True), (1, "is already enrolled", False),
                                                  (0, "is not enrolled", False)])
def test_secure_boot(machine, control, value, mokutil, said):
    """With secure boot on, the message names the key, unless it is enrolled."""
    machine.program("modinfo", "echo NEW")
    machine.program("mokutil", f"echo \"$2 {mokutil}\"")
    variables = machine.folder / "sys/firmware/efi/efivars"
    variables.mkdir(parents=True)
    (variables / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c").write_bytes(bytes((6, 0, 0, 0, value)))
    assert ("mokutil --import /var/lib/dkms/mok.pub" in dkms_says(machine, control, "6.12.90-amd64")) == said


def test_purge(machine, control):
    """Units that were enabled, and the settings, go with a purge and stay with a removal; what is of others stays."""
    wants = machine.folder / "etc/systemd/system/local-fs.target.wants"
    wants.mkdir(parents=True)
    timers = wants.parent / "timers.target.wants"
    timers.mkdir()
    for link in (wants / "forebay-writelog@fast.service", wants / "forebay-transit@quick.service", wants / "foreign.service",
                 timers / "forebay-metrics.timer"):
        link.symlink_to("/nowhere")
    (wants.parent / "forebay-metrics.service.d").mkdir()
    metrics = machine.folder / "var/lib/prometheus/node-exporter"
    metrics.mkdir(parents=True)
    for name in ("forebay.prom", "foreign.prom"):
        (metrics / name).touch()
    (machine.folder / "etc/forebay/writelog").mkdir(parents=True)
    (machine.folder / "etc/forebay/writelog/fast").touch()
    postrm = control("forebay") / "postrm"
    assert machine.run(postrm, "remove")[0] == 0
    assert [path.name for path in metrics.iterdir()] == ["foreign.prom"]
    assert len(list(wants.iterdir())) == 3 and len(list(timers.iterdir())) == 1 and (machine.folder / "etc/forebay/writelog/fast").exists()
    assert machine.run(postrm, "purge")[0] == 0
    assert [path.name for path in wants.iterdir()] == ["foreign.service"]
    assert sorted(path.name for path in wants.parent.iterdir()) == ["local-fs.target.wants"]
    assert not (machine.folder / "etc/forebay").exists()
