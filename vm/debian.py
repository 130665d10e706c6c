# SPDX-License-Identifier: GPL-2.0-only
"""Images of Debian with systemd, made by mmdebstrap and kept (vm/image); vm/system.py boots them.

An image is a folder with `root.ext4` and, for each kernel, `vmlinuz-6.12` and `initrd-6.12`. A system is
kept as `system.tar`, from which images are made: without `make install` of a checkout, with it, or with packages.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .settings import CACHE, CHECKOUT, SetupError

IMAGES = CACHE / "images"
HERE = Path(__file__).resolve().parent
RELEASES = {"12": "bookworm", "12-6.1": "bookworm", "13": "trixie"}

# What an administrator has there, what the tests use, and what `make install` would otherwise fetch in each image.
PACKAGES = """systemd-sysv udev dbus kmod initramfs-tools zstd e2fsprogs xfsprogs util-linux procps nvme-cli dmsetup ndctl postgresql
    ca-certificates make gcc dkms libndctl-dev libdaxctl-dev libblkid-dev libmount-dev uuid-dev libjson-c-dev libdevmapper-dev
    libncurses-dev libtracefs-dev libtraceevent-dev liburing-dev libpmem-dev pkg-config libudev-dev""".split()
KERNEL = {"12": ["linux-image-6.12-amd64", "linux-headers-6.12-amd64"], "12-6.1": ["linux-image-amd64"],
          "13": ["linux-image-amd64", "linux-headers-amd64"]}
# A machine with Debian 12's own kernel: `make install` has to bring everything else.
BARE = """systemd-sysv udev dbus kmod initramfs-tools zstd e2fsprogs util-linux procps
    ca-certificates make""".split()
# The kernel that an image runs while `make install` is carried out
RUNNING = {"12": "6.12", "12-6.1": "6.1", "13": "6.12"}

# Timers and daemons that only cost time in an emulated processor.
MASKED = """apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer man-db.timer
    logrotate.timer systemd-timesyncd.service nvmf-autoconnect.service nvmefc-boot-connections.service ndctl-monitor.service
    getty@tty1.service serial-getty@ttyS0.service""".split()

ROOT_SIZE = "6G"        # sparse
FSTAB = "/dev/vda / ext4 errors=remount-ro 0 1\n"
# The initial RAM disk holds what finds the root disk and no more: all other devices come later, with the system's udev.
INITRAMFS_MODULES = "virtio_pci\nvirtio_blk\next4\n"


def build(release, install=False, again=False, packages=False):
    """The folder of an image; it is made if it isn't there. `packages`: `make deb` and apt, in place of `make install`."""
    _check()
    IMAGES.mkdir(parents=True, exist_ok=True)
    with _locked(IMAGES / f"debian{release}.lock"):
        system = _system(release, again)
        target = system / ("packages" if packages else "installed" if install else "plain")
        key = _sources_key(install or packages)
        mark = target / "key"
        if mark.exists() and mark.read_text() == key:
            return target
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        with tempfile.TemporaryDirectory(prefix=".tree-", dir=system) as tree:
            _run("tar", "-xpf", system / "system.tar", "--xattrs-include=*", "-C", tree)
            if packages:
                _install_packages(Path(tree), target / "install.log", RUNNING[release])
            elif install:
                _install(Path(tree), target / "install.log", RUNNING[release])
            _make_image(Path(tree), target)
        mark.write_text(key)
        return target


def _check():
    if os.geteuid() != 0:
        raise SetupError("run me as root: the files of a system belong to root")
    for program in ("mmdebstrap", "mkfs.ext4", "qemu-img"):
        if not shutil.which(program):
            raise SetupError(f"{program} is missing: run scripts/setup --for image")


def _system(release, again):
    """The folder with the system's archive; the name says what it was made of."""
    packages = _packages(release)
    recipe = repr((RELEASES[release], packages, KERNEL[release], MASKED, FSTAB, INITRAMFS_MODULES,
                   archives(release)))
    folder = IMAGES / f"debian{release}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if again:
        shutil.rmtree(folder, ignore_errors=True)
    if not (folder / "system.tar").exists():
        for old in IMAGES.glob(f"debian{release}-{'[0-9a-f]' * 12}"):
            shutil.rmtree(old)
        folder.mkdir()
        _say(f"making Debian {release} with mmdebstrap, once ({folder}/mmdebstrap.log)")
        _mmdebstrap(release, folder)
    return folder


def _packages(release):
    return BARE if release == "12-6.1" else PACKAGES


def archives(release=None):
    """Lines for sources.list: what apt uses here, with the name of that release, or of the machine's own."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Identifier: Packages"],
                            stdout=subprocess.PIPE, check=True, text=True).stdout
    here = next(line.partition("=")[2].strip('"') for line in Path("/etc/os-release").read_text().splitlines()
                if line.startswith("VERSION_CODENAME="))
    lines = set()
    for line in listed.splitlines():
        address, suite, component, *_ = [*line.split(), "", ""]       # an archive without suites has no components
        if re.fullmatch(rf"{here}(-updates|-security)?", suite) and component == "main":
            lines.add(f"deb {address} {suite.replace(here, RELEASES.get(release, here))} main")
    if not lines:
        raise SetupError(f"apt has no archive of {here} here (apt-get update?)")
    return sorted(lines)


class Apt:
    """apt with sources and lists of its own, in a folder; the host's stay as they are. It begins by fetching the lists."""

    def __init__(self, place, sources, options=None):
        """`sources`: lines for sources.list. `options`: more of apt.conf, by name."""
        (place / "lists/partial").mkdir(parents=True, exist_ok=True)
        (place / "sources.list").write_text("".join(f"{line}\n" for line in sources))
        everything = {"Dir::Etc::sourcelist": place / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
                      "Dir::State::lists": place / "lists", "APT::Sandbox::User": "root", "Acquire::Retries": "3", **(options or {})}
        self.options = [word for name, value in everything.items() for word in ("-o", f"{name}={value}")]
        self.run("apt-get", "-q", "update")

    def run(self, program, *arguments, cwd=None):
        """Standard output of one of apt's programs, which must succeed."""
        done = subprocess.run([program, *self.options, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=cwd,
                              stderr=subprocess.PIPE, text=True, check=False,
                              env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})
        if done.returncode:
            raise SetupError(f"{program} {arguments[-1]} failed:\n{done.stderr.strip()}")
        return done.stdout


def _apt_options():
    """How this machine reaches the archive: proxies, and what it is told of dates."""
    dump = subprocess.run(["apt-config", "dump", "Acquire"], stdout=subprocess.PIPE, check=True, text=True).stdout
    options = [line.rstrip(";") for line in dump.splitlines() if re.match(r"Acquire::(Check-|Retries|https?::Proxy)", line)]
    return [f"--aptopt={line}" for line in ['Acquire::Retries "3"', *options]]


def _mmdebstrap(release, folder):
    """system.tar. Host and guest need not be of the same release; the keys of both are in debian-archive-keyring."""
    files = folder / "files"
    _put(files / "usr/share/initramfs-tools/modules.d/forebay-vm", INITRAMFS_MODULES)
    _put(files / "etc/initramfs-tools/conf.d/forebay-vm", "MODULES=list\n")
    _put(files / "etc/fstab", FSTAB)
    _put(files / "etc/hostname", "forebay\n")
    _put(files / "etc/kernel-img.conf", "do_symlinks=yes\n")
    masked = " ".join(MASKED)
    part = folder / "system.tar.part.tar"
    command = [
        "mmdebstrap", "--mode=root", "--variant=apt", "--format=tar",
        f"--include={','.join(_packages(release) + KERNEL[release])}",
        *_apt_options(), "--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
        f"--essential-hook=cp -a {files}/. \"$1\"",
        "--customize-hook=chroot \"$1\" systemd-machine-id-setup",
        "--customize-hook=mkdir -p \"$1\"/var/log/journal",
        f"--customize-hook=chroot \"$1\" systemctl mask {masked}",
        RELEASES[release], part, *archives(release)]
    with open(folder / "mmdebstrap.log", "wb") as log:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
    if done.returncode:
        part.unlink(missing_ok=True)
        last = (folder / "mmdebstrap.log").read_text(errors="replace").splitlines()[-12:]
        raise SetupError("mmdebstrap failed:\n" + "\n".join(last))
    part.rename(folder / "system.tar")


def _put(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _sources():
    """What belongs to the checkout, as git has it or would add it."""
    listed = subprocess.run(["git", "-C", CHECKOUT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, check=True, text=True).stdout
    return sorted(name for name in listed.split("\0") if name and (CHECKOUT / name).is_file())


# What of the checkout gets into an image by `make install`, or is read by it.
INSTALLED = ("compat/", "core/", "fs/", "dm/", "emu/", "include/", "lib/", "tools/", "packaging/", "docs/man/", "scripts/",
             "Makefile", "Kbuild")


def _sources_key(install):
    """Changes with every file that gets into the image, or that `make install` may look at."""
    sha = hashlib.sha256()
    for name in _sources():
        if name.startswith(("vm/agent/", *(INSTALLED if install else ()))):
            sha.update(name.encode() + b"\0" + (CHECKOUT / name).read_bytes() + b"\0")
    return sha.hexdigest()


def _kernel(tree, series):
    """The newest kernel of a series in an image, 6.12 for example; None if there is none."""
    found = sorted((tree / "boot").glob(f"vmlinuz-{series}.*"))
    return found[-1].name.removeprefix("vmlinuz-") if found else None


def _install(tree, log, series):
    """`make install` as root, as README has it."""
    checkout = tree / "usr/src/forebay-checkout"
    for name in _sources():
        target = checkout / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, target)
    _carry_out(tree, log, series, "make -C /usr/src/forebay-checkout install")


def _install_packages(tree, log, series):
    """`make deb` here, and `apt install` in the image, as README has it. The packages stay in /usr/src/forebay-packages."""
    _say("packaging/deb (build/deb/build.log)")
    _run(CHECKOUT / "packaging/deb")
    folder = tree / "usr/src/forebay-packages"
    folder.mkdir(parents=True)
    for path in sorted(CHECKOUT.glob("build/deb/*.deb")):
        shutil.copy2(path, folder)
    _carry_out(tree, log, series, "sh -c 'apt-get -qq update && cd /usr/src/forebay-packages && apt install -y ./*.deb'")


def _carry_out(tree, log, series, command):
    """Runs a command in an image, in namespaces: nothing that it starts or mounts stays.

    A chroot runs the host's kernel: a stand-in for `uname -r` names the kernel that the image will run. It is mounted over
    uname itself, because apt gives maintainer scripts a PATH of its own.
    """
    _say(f"{command} in the image ({log})")
    answer = f'[ "$*" != -r ] || {{ echo {_kernel(tree, series)}; exit; }}'
    _put(tree / "stand-in/uname", f'#!/bin/sh\n{answer}\nexec /stand-in/own-uname "$@"\n', 0o755)
    shutil.copy2(tree / "usr/bin/uname", tree / "stand-in/own-uname")
    if not (tree / "etc/resolv.conf").exists():
        shutil.copy("/etc/resolv.conf", tree / "etc/resolv.conf")
    script = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
              'mount --bind "$0/stand-in/uname" "$0/usr/bin/uname" && exec chroot "$0" env -i '
              'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root '
              f'LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive {command}')
    with open(log, "wb") as file:
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", script, tree],
                              stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False)
    if done.returncode:
        raise SetupError(f"{command} failed:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]))
    shutil.rmtree(tree / "stand-in")


def _make_image(tree, target):
    """root.ext4 of what is in the folder, with the agent, and what QEMU loads itself."""
    _put(tree / "usr/lib/forebay-vm/agent", (HERE / "agent/agent").read_text(), 0o755)
    units = tree / "etc/systemd/system"
    _put(units / "forebay-vm-agent.service", (HERE / "agent/forebay-vm-agent.service").read_text())
    wants = units / "sysinit.target.wants/forebay-vm-agent.service"
    wants.parent.mkdir(exist_ok=True)
    wants.unlink(missing_ok=True)
    wants.symlink_to("/etc/systemd/system/forebay-vm-agent.service")
    for cluster in (tree / "etc/postgresql").glob("*/main"):
        _put(cluster / "start.conf", "manual\n")      # it would take as long as the rest of a boot
    kernels = {series: _kernel(tree, series) for series in sorted({*RUNNING.values()})}
    if not any(kernels.values()):
        raise SetupError(f"the image has no kernel of {', '.join(kernels)}")
    for series, release in kernels.items():
        if release:
            shutil.copy(tree / "boot" / f"vmlinuz-{release}", target / f"vmlinuz-{series}")
            shutil.copy(tree / "boot" / f"initrd.img-{release}", target / f"initrd-{series}")
    image = target / "root.ext4"
    _run("truncate", "-s", ROOT_SIZE, image)
    _run("mkfs.ext4", "-q", "-F", "-d", tree, image)


def _run(*command):
    subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL)


def _say(text):
    print(f"vm/image: {text}", file=sys.stderr, flush=True)


@contextmanager
def _locked(path):
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
