# SPDX-License-Identifier: GPL-2.0-only
"""QEMU's command line, and the images behind the guest's devices."""

import os

from . import accel
from .settings import MIB
from .shares import quote

CXL_WINDOW = "4G"               # of addresses for CXL memory
LABEL = 128 << 10               # at the end of the NVDIMM's image: where the namespace's mode is remembered

KERNEL_ARGUMENTS = [
    "console=ttyS0", "loglevel=7", "printk.time=1", "panic=-1", "oops=panic", "mitigations=off",
    "tsc=reliable", "no_timer_check", "random.trust_cpu=on", "rdinit=/init",
    # An emulated processor is slow, and its host busy: stalls are told from slowness by generous limits.
    "watchdog_thresh=30", "rcupdate.rcu_cpu_stall_timeout=100", "workqueue.watchdog_thresh=120",
    "sysctl.kernel.hung_task_panic=1",
]


def make_images(settings, folder):
    """Creates what is missing; what is there stays as the last machine left it. Sparse files, all of them."""
    images = {}
    if settings.pmem and settings.keep:
        for number in settings.nvdimms:
            images[_pmem_name(number)] = folder / f"{_pmem_name(number)}.img"
            _make(images[_pmem_name(number)], pmem_bytes(settings))
    for number in range(settings.nvme_devices()):
        name = "nvme.img" if number == 0 else f"nvme{number}.img"
        images[f"nvme{number}"] = folder / name
        _make(images[f"nvme{number}"], settings.nvme)
    if settings.virtio_pmem:
        images["virtio-pmem"] = folder / "virtio-pmem.img"
        _make(images["virtio-pmem"], settings.virtio_pmem)
    return images


def pmem_bytes(settings):
    """An NVDIMM has its label too, so that the region is a whole number of the 16 MiB its namespaces are aligned to."""
    return settings.pmem + (0 if settings.cxl else LABEL)


def _make(path, size):
    if path.exists() and path.stat().st_size == size:
        return
    with open(path, "wb") as file:
        os.truncate(file.fileno(), size)


def _pmem_name(number):
    return f"pmem{number or ''}"


def _pmem_backend(settings, images, size, name="pmem"):
    if settings.keep:
        return f"memory-backend-file,id={name},mem-path={quote(images[name])},size={size},share=on"
    # Memory that is there: in a file's page the guest's first store would wait for the host to find it a place on
    # disk, which takes longer than all that forebay does.
    return f"memory-backend-memfd,id={name},size={size},share=on,prealloc=on,prealloc-threads=2"


def _cxl_arguments(settings, images):
    """A host bridge of its own, with a root port and a Type 3 device with persistent memory.

    Debian 12's QEMU 7.2 has no event interrupts, and the kernel gives up on a device without them. So the kernel is told
    to leave error reporting to the firmware (pcie_ports=compat). The kernel also sets up no region under a hypervisor,
    since it can't empty a host's caches, and QEMU has none: accel.py hides the hypervisor. Linux 7.3 wants the device to
    have a serial number.

    The labels are not kept. Debian 12's cxl gives a region another UUID each time, so the kernel would not take the
    namespace of an earlier run. A new namespace is at the same place.
    """
    return ["-M", f"cxl=on,cxl-fmw.0.targets.0=cxl.0,cxl-fmw.0.size={CXL_WINDOW}",
            "-object", _pmem_backend(settings, images, settings.pmem),
            "-object", "memory-backend-ram,id=cxl-label,size=1M",
            "-device", "pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.0",
            "-device", "cxl-rp,port=0,bus=cxl.0,id=cxl-port,chassis=0,slot=2",
            "-device", "cxl-type3,bus=cxl-port,memdev=pmem,lsa=cxl-label,sn=1,id=cxl-pmem"]


def memory_arguments(settings):
    """The machine's kind and its ordinary memory, with addresses for persistent memory."""
    memory = f"{settings.mem // MIB}M"
    machine = "q35,nvdimm=off"
    if settings.pmem and not settings.cxl:
        machine = f"q35,nvdimm=on,nvdimm-persistence={settings.persistence}"
    if settings.pmem or settings.virtio_pmem:
        pmem = settings.pmem * len(settings.nvdimms)
        memory += f",slots=4,maxmem={(settings.mem + pmem + settings.virtio_pmem) // MIB + 4096}M"
    return ["-M", machine, "-m", memory]


def device_arguments(settings, images):
    """NVDIMM, virtio-pmem, NVMe."""
    argv = []
    if settings.pmem and not settings.cxl:
        # QEMU makes the serial number of the slot, and the kernel checks labels with the serial number: so
        # an NVDIMM keeps its slot. The order in the firmware's table follows from the ids.
        for place, number in enumerate(settings.nvdimms):
            name = _pmem_name(number)
            argv += ["-object", _pmem_backend(settings, images, pmem_bytes(settings), name),
                     "-device", f"nvdimm,id=nvdimm{place},memdev={name},slot={number},label-size={LABEL}"]
    if settings.virtio_pmem:
        argv += ["-object", f"memory-backend-file,id=virtio-pmem,mem-path={quote(images['virtio-pmem'])},"
                            f"size={settings.virtio_pmem},share=on",
                 "-device", "virtio-pmem-pci,memdev=virtio-pmem"]
    for name, image in images.items():
        if name.startswith("nvme"):
            # writeback: a flush by the guest is an fdatasync of the image, with what that costs.
            argv += ["-drive", f"if=none,id={name},format=raw,cache=writeback,aio=threads,discard=unmap,"
                               f"file={quote(image)}",
                     "-device", f"nvme,drive={name},serial=forebay-{name}"]
    return argv


def arguments(settings, kernel, initrd, images, shares, ports, console):
    append = [*KERNEL_ARGUMENTS, *accel.kernel_arguments(),
              "sysctl.kernel.hung_task_timeout_secs=%d" % (360 if settings.is_debug() else 180)]
    if settings.cxl:
        append.append("pcie_ports=compat")
    if settings.append:
        append.append(settings.append)
    argv = ["qemu-system-x86_64", *accel.arguments(hypervisor=not settings.cxl), *memory_arguments(settings),
            "-smp", str(settings.smp), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-net", "none",
            "-kernel", str(kernel.image), "-initrd", str(initrd), "-append", " ".join(append),
            "-chardev", f"file,id=console,path={quote(console)}", "-serial", "chardev:console",
            "-device", "virtio-serial-pci,max_ports=8"]
    for name, path in ports.paths.items():
        argv += ["-chardev", f"socket,id={name},path={quote(path)}",
                 "-device", f"virtserialport,chardev={name},name={name}"]
    argv += shares.qemu_arguments(settings.mem)
    argv += device_arguments(settings, images)
    if settings.cxl:        # last: what comes behind is plugged into its bridge
        argv += _cxl_arguments(settings, images)
    return argv + settings.qemu
