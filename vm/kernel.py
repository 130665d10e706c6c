# SPDX-License-Identifier: GPL-2.0-only
"""Which kernel the machine boots, and its modules as the guest gets them.

Debian's modules are xz-compressed, and unpacking them in an emulated guest takes longer than booting it. So the ones
a storage test can want are unpacked once into the cache, and `depmod` runs here on the host and never in the guest.
"""

import fcntl
import hashlib
import lzma
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import fetched
from .settings import BUILD, CACHE, CHECKOUT, SetupError

DEBUG_KERNEL = CACHE / "debug-kernel"

# Whole folders of the module tree, and single modules, that the guest can load; what these depend on comes along.
WANTED = re.compile(r"""kernel/(
    fs/ | mm/ | block/ | lib/ | crypto/ | arch/x86/crypto/ | net/9p/ | net/sunrpc/ |
    drivers/(md|nvme|nvdimm|dax|block|cxl|acpi/nfit|char/hw_random)/ | drivers/net/virtio_net[.] | drivers/scsi/(sd_mod|scsi_debug)[.] )""", re.VERBOSE)

# Loaded before the command runs, in this order, each after what it depends on.
AT_BOOT = ["overlay", "nfit", "nd_pmem", "nd_btt", "dax_pmem", "nvme", "configfs"]
AT_BOOT_FOR = {"virtiofs": ["virtiofs"], "9p": ["9pnet_virtio", "9p"]}
CXL_AT_BOOT = ["cxl_acpi", "cxl_pmem", "cxl_pci", "cxl_mem"]

# What depmod reads besides the modules.
FOR_DEPMOD = ("modules.order", "modules.builtin", "modules.builtin.modinfo")


@dataclass
class Kernel:
    release: str
    image: Path             # what QEMU boots
    modules: Path           # unpacked: <modules>/kernel/..., modules.dep and so on

    def boot_modules(self, share_kind, cxl=False):
        """Files to load at boot, in order."""
        depends = {}
        for line in (self.modules / "modules.dep").read_text().splitlines():
            path, _, rest = line.partition(":")
            depends[module_name(path)] = [path, *rest.split()]
        ordered = []
        for name in AT_BOOT_FOR[share_kind] + AT_BOOT + (CXL_AT_BOOT if cxl else []):
            for path in reversed(depends.get(name, [])):        # absent: built in
                if path not in ordered:
                    ordered.append(path)
        return [self.modules / path for path in ordered]


def module_name(path):
    return Path(path).name.split(".ko")[0].replace("-", "_")


def find(which):
    """The kernel called `which`: 'stock', 'debug', a fetched one's series such as '7.3', or the path of a bzImage."""
    if which == "debug":
        release_file = DEBUG_KERNEL / "release"
        if not release_file.exists():
            raise SetupError("there is no debug kernel yet: make debug-kernel")
        release = release_file.read_text().strip()
        return Kernel(release, DEBUG_KERNEL / "vmlinux", _unpacked(release, DEBUG_KERNEL / "lib/modules" / release))
    if re.fullmatch(r"\d+\.\d+", which):
        folder = fetched.fetched(which)
        if not folder:
            raise SetupError(f"there is no kernel {which} yet: scripts/setup --for kernels")
        release = (folder / "release").read_text().strip()
        return Kernel(release, _uncompressed(fetched.image(folder, release), release),
                      _unpacked(release, folder / "root/usr/lib/modules" / release))
    if which == "stock":
        images = sorted(Path("/boot").glob("vmlinuz-6.12*-amd64"), key=_version_key)
        if not images:
            raise SetupError("no /boot/vmlinuz-6.12*-amd64: run scripts/setup")
        image = images[-1]
    else:
        image = Path(which)
        if not image.exists():
            raise SetupError(f"no such kernel image: {image}")
    release = _release(image)
    return Kernel(release, _uncompressed(image, release), _unpacked(release, Path("/lib/modules") / release))


def _version_key(path):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _release(image):
    """The kernel's own word for its release, from the header of the bzImage."""
    with open(image, "rb") as file:
        head = file.read(0x8000)
    if head[0x202:0x206] != b"HdrS":
        raise SetupError(f"{image} is not a bzImage")
    offset = int.from_bytes(head[0x20E:0x210], "little") + 0x200
    return head[offset:head.index(b"\0", offset)].split()[0].decode()


def _uncompressed(image, release):
    """The ELF kernel inside a zstd-compressed bzImage, which boots a second sooner; else the image itself."""
    stat = image.stat()
    key = hashlib.sha256(f"{image.resolve()} {stat.st_mtime_ns} {stat.st_size}".encode()).hexdigest()[:12]
    target = CACHE / "kernels" / f"vmlinux-{release}-{key}"
    if target.exists():
        return target
    data = image.read_bytes()
    start = data.find(b"\x28\xb5\x2f\xfd")
    if start < 0 or not shutil.which("zstd"):
        return image
    done = subprocess.run(["zstd", "-dcq"], input=data[start:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if not done.stdout.startswith(b"\x7fELF"):      # zstd's status is no help: other bytes follow the frame
        return image
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}")
    part.write_bytes(done.stdout)
    part.rename(target)
    return target


@contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _unpacked(release, source):
    """A module tree without compression, made once for each build of a kernel, and for each choice of modules: checkouts
    of different age share the cache, and their machines may be running."""
    if not source.is_dir():
        raise SetupError(f"no modules for this kernel: {source}")
    stamp = f'{(source / "modules.dep").stat().st_mtime_ns} {WANTED.pattern}'
    choice = hashlib.sha256(WANTED.pattern.encode()).hexdigest()[:8]
    target = CACHE / "modules" / f"{release}-{choice}"
    with locked(CACHE / f"modules-{release}.lock"):
        made = target / "stamp"
        if made.exists() and made.read_text() == stamp:
            return target
        shutil.rmtree(target, ignore_errors=True)
        base = target.with_name(f"{release}.base")
        shutil.rmtree(base, ignore_errors=True)
        tree = base / "lib/modules" / release
        for path in _closure(source):
            _unpack(source / path, tree / re.sub(r"\.(xz|gz|zst)$", "", path))
        for name in FOR_DEPMOD:
            if (source / name).exists():
                shutil.copyfile(source / name, tree / name)
        subprocess.run(["/sbin/depmod", "-b", base, release], check=True, stderr=subprocess.DEVNULL)
        (tree / "stamp").write_text(stamp)
        tree.rename(target)
        shutil.rmtree(base)
    return target


def _closure(source):
    depends = {}
    for line in (source / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        depends[path] = rest.split()
    chosen = set()
    for path, rest in depends.items():
        if WANTED.match(path):
            chosen.add(path)
            chosen.update(rest)
    return sorted(chosen)


def _unpack(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".xz":
        target.write_bytes(lzma.decompress(source.read_bytes()))
    elif source.suffix == ".zst":
        target.write_bytes(subprocess.run(["zstd", "-dcq", source], check=True, stdout=subprocess.PIPE).stdout)
    else:
        shutil.copyfile(source, target)


def staged_modules(kernel):
    """(folder, files): the index of all modules, ours among them, as the guest's /lib/modules/<release> gets it.

    The index is rebuilt only when a module of ours comes, goes, or changes what it says about itself.
    """
    ours = sorted((CHECKOUT / "build/kmod" / kernel.release).rglob("*.ko"))
    facts = "".join(f"{path.name} {_module_facts(path)}\n" for path in ours)
    key = hashlib.sha256((facts + (kernel.modules / "stamp").read_text()).encode()).hexdigest()[:12]
    target = BUILD / "modules" / f"{kernel.release}-{key}"
    with locked(BUILD / "modules.lock"):
        if not target.exists():
            _index(kernel, ours, target)
    return target, ours


def _index(kernel, ours, target):
    base = target.with_name(f"{target.name}.base")
    shutil.rmtree(base, ignore_errors=True)
    tree = base / "lib/modules" / kernel.release
    (tree / "updates").mkdir(parents=True)
    (tree / "kernel").symlink_to(kernel.modules / "kernel")
    for name in FOR_DEPMOD:
        if (kernel.modules / name).exists():
            shutil.copyfile(kernel.modules / name, tree / name)
    for path in ours:
        shutil.copyfile(path, tree / "updates" / path.name)
    subprocess.run(["/sbin/depmod", "-b", base, kernel.release], check=True)
    shutil.rmtree(tree / "updates")
    tree.rename(target)
    shutil.rmtree(base)


def _module_facts(path):
    """What of a module is in the index: a change of its code alone leaves the index as it is."""
    told = subprocess.run(["/sbin/modinfo", path], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [line for line in told.splitlines() if re.match("alias:|depends:|softdep:", line)]
