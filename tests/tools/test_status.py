# SPDX-License-Identifier: GPL-2.0-only
"""forebay status: of images, and of mounts that a made-up /sys and /proc show."""

import errno
import json
import os
import re
import subprocess

import pytest

from conftest import CHECKOUT, DONE, FAILED, MIB, USAGE

MOUNTED = {
    "cache_uuid": "11111111-1111-1111-1111-111111111111", "lower_uuid": "22222222-2222-2222-2222-222222222222",
    "mode": "auto", "persistence": "memory-controller", "volatile_cache": 0,
    "pages_total": 1000, "pages_free": 700, "pages_clean": 200, "pages_out_of_sync": 100, "pages_dirty": 0,
    "pages_unplaced": 0, "pages_lost": 0, "pages_busy": 0, "files_total": 64, "files_used": 3, "pages_recovered": 0, "syncs_absorbed": 300,
    "syncs_lower": 100, "pages_absorbed": 512, "pages_written_back": 256, "pages_reclaimed": 0, "cache_full": 0,
    "lower_sync_ns": 1234567, "lower_sync_page_ns": 20000, "absorb_ns": 5000, "absorb_page_ns": 1250, "absorb_max": 300,
    "writeback_age": 30, "copied_in": 3 << 20, "copied_out": 1 << 20, "copied_back": 1 << 19, "mapped_stores": 8192,
    "copy_limit": 1 << 30, "copy_limit_user": 1 << 28, "copy_tasks": 2,
    "names_state": "on", "names_size": 4 << 20, "names_used": 1 << 20, "names_recorded": 12345, "names_barriers": 6,
    "names_switched_off": 1, "names_replayed": 0,
    "sync_latency_memory": "300000 <2048:50 <4096:49 <8192:1", "sync_latency_move": "4000000 <16384:200",
    "sync_latency_storage": "0",
    "writeback_errors": 0, "last_error": 0, "pages_pinned": 0, "pin_limit": 500, "pin_limit_user": 250,
}

OFFLINE_KEYS = {"device", "mounted", "mountpoints", "lower", "cache_uuid", "lower_uuid", "pages_total", "pages_free",
                "pages_clean", "pages_out_of_sync", "files_total", "files_used", "files_unflushed", "records_damaged",
                "names_size", "names_records", "names_damaged"}


@pytest.fixture
def kernel(tmp_path):
    """A made-up kernel: kernel(pmem0={...}) is a mount with these values changed; lines are added to mountinfo."""
    root = tmp_path / "root"
    (root / "proc/self").mkdir(parents=True)
    (root / "sys/devices").mkdir(parents=True)

    def show(*lines, **caches):
        for name, changes in caches.items():
            folder = root / "sys/fs/forebay" / name
            folder.mkdir(parents=True)
            for key, value in {**MOUNTED, **changes}.items():
                (folder / key).write_text(f"{value}\n")
        mountinfo = ["1 0 8:1 / / rw - ext4 /dev/sda1 rw", *lines]
        (root / "proc/self/mountinfo").write_text("".join(f"{line}\n" for line in mountinfo))
        return {"FOREBAY_SYSROOT": str(root)}
    return show


MOUNT_LINE = r"40 1 0:50 / /srv/my\040db rw - forebay /srv/ssd rw,cache=/dev/pmem0,mode=auto"


def test_nothing_mounted(forebay, kernel):
    result = forebay("status", **kernel())
    assert (result.status, result.out, result.err) == (DONE, "No forebay file system is mounted.\n", "")
    assert forebay("status", "--json", **kernel()).json == []


def test_mounted(forebay, kernel):
    environment = kernel(MOUNT_LINE, pmem0={})
    result = forebay("status", **environment)
    assert result.status == DONE and not result.err
    assert result.out.startswith("/srv/my db\n")
    rows = dict(re.findall(r"^  (\S[a-z -]*?) {1,}(\S.*)$", result.out, re.MULTILINE))
    assert rows["cache"].startswith("/dev/pmem0, 3.9 MiB")
    assert rows["lower"] == "/srv/ssd on file system 22222222-2222-2222-2222-222222222222"
    assert rows["mode"] == "auto"
    assert "memory controller" in result.out
    assert rows["out-of-sync"] == "400 KiB  10.0 %"
    assert rows["files"] == "3 of 64"
    assert rows["costs"] == "a sync below 1.2 ms and 20.0 us a page, in the cache 5.0 us and 1.2 us"
    assert rows["absorbs"] == "syncs of up to 1.2 MiB"
    assert rows["syncs"] == "300 absorbed (75.0 %), 100 went below"
    assert "  in memory    100 syncs, half below 2.0 us, 99 of 100 below 4.1 us\n" in result.out
    assert "  with a move  200 syncs, half below 16.4 us, 99 of 100 below 16.4 us\n" in result.out
    assert "by storage" not in result.out, "there was none"
    assert re.search(r"^  name log +4.0 MiB, on, 1.0 MiB used$", result.out, re.MULTILINE)
    assert f"[####========{' ' * 28}]" in result.out
    assert "!" not in result.out and "\033" not in result.out


def test_a_cache_that_goes_meanwhile(forebay, kernel, tmp_path):
    """A list of all leaves it out; by name it is an error."""
    environment = kernel(MOUNT_LINE, MOUNT_LINE.replace("my\\040db", "x\\033[1m"), pmem0={})
    (tmp_path / "root/sys/fs/forebay/pmem9").symlink_to("nowhere")
    shown = forebay("status", **environment)
    assert shown.status == DONE and not shown.err and shown.out.startswith("/srv/my db, /srv/x?[1m\n")
    assert [cache["device"] for cache in forebay("status", "--json", **environment).json] == ["/dev/pmem0"]
    assert forebay("metrics", **environment).status == forebay("top", "--count", "1", **environment).status == DONE
    folder = tmp_path / "mounted"
    folder.mkdir()
    gone = forebay("status", folder, **kernel(f"40 1 0:50 / {folder} rw - forebay /srv/ssd rw,cache=/dev/pmem9"))
    assert gone.status == FAILED and "cannot read" in gone.err


def test_json_has_every_file_of_sysfs(forebay, kernel):
    shown, = forebay("status", "--json", **kernel(MOUNT_LINE, pmem0={"something_new": 7})).json
    latencies = {"sync_latency_memory": {"ns": 300000, "count": 100, "bins": [[2048, 50], [4096, 49], [8192, 1]]},
                 "sync_latency_move": {"ns": 4000000, "count": 200, "bins": [[16384, 200]]},
                 "sync_latency_storage": {"ns": 0, "count": 0, "bins": []}}
    assert shown == {**MOUNTED, **latencies, "something_new": 7, "device": "/dev/pmem0", "mounted": True,
                     "mountpoints": ["/srv/my db"], "lower": "/srv/ssd"}


def test_the_made_up_kernel_shows_what_is_documented():
    table = (CHECKOUT / "docs/sysfs.md").read_text()
    documented = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert documented == set(MOUNTED)


def test_several_mounts_and_several_mount_points(forebay, kernel):
    environment = kernel(MOUNT_LINE, MOUNT_LINE.replace("40 1", "41 1").replace("my\\040db", "bound"),
                         pmem0={}, pmem10={}, pmem2={})
    shown = forebay("status", "--json", **environment).json
    assert [cache["device"] for cache in shown] == ["/dev/pmem0", "/dev/pmem2", "/dev/pmem10"]
    assert [cache["mountpoints"] for cache in shown] == [["/srv/my db", "/srv/bound"], [], []]
    assert "mounted where this process cannot see it" in forebay("status", **environment).out


def test_a_mount_point_can_be_named(forebay, kernel, tmp_path):
    line = f"40 1 0:50 / {tmp_path} rw - forebay /srv/ssd rw,cache=/dev/pmem2"
    environment = kernel(line, pmem0={}, pmem2={})
    shown, = forebay("status", "--json", tmp_path, **environment).json
    assert shown["device"] == "/dev/pmem2"


@pytest.mark.parametrize("changes, sentences", [
    ({"pages_unplaced": 3, "pages_free": 697},
     ["3 pages (12 KiB) can't be placed", "`forebay drain --discard-unplaced '/srv/my db'`"]),
    ({"pages_lost": 1}, ["1 page (4 KiB) of files is lost"]),
    ({"last_error": -errno.ENOSPC, "writeback_errors": 4},
     ["Writing back fails: No space left on device (4 attempts so far)", "Make room on the lower file system"]),
    ({"last_error": -errno.EIO, "writeback_errors": 1}, ["Input/output error (1 attempt so far)", "dmesg"]),
    ({"writeback_errors": 1}, ["failed 1 time since mount; the latest attempt succeeded"]),
    ({"cache_full": 2}, ["2 syncs found too few free pages"]),
])
def test_what_somebody_should_do(forebay, kernel, changes, sentences):
    out = forebay("status", **kernel(MOUNT_LINE, pmem0=changes)).out
    assert "  ! " in out
    for sentence in sentences:
        assert sentence in out


def test_offline_json(forebay, cache):
    image = cache("bind", "file 0 0 live", "page 0 0 0 out-of-sync", "page 1 0 1 clean")
    result = forebay("status", "--json", image)
    assert result.status == DONE and not result.err
    shown, = result.json
    assert set(shown) == OFFLINE_KEYS
    assert shown["device"] == str(image)
    assert shown["mounted"] is False and shown["mountpoints"] == [] and shown["lower"] is None
    assert shown["lower_uuid"] == "22222222-2222-2222-2222-222222222222"
    assert (shown["pages_out_of_sync"], shown["pages_clean"]) == (1, 1)
    assert shown["pages_free"] == shown["pages_total"] - 2
    assert shown["records_damaged"] == 0


def test_offline_says_what_the_lower_file_system_lacks(forebay, cache):
    out = forebay("status", cache("bind", "file 0 0 live", "page 0 0 0 out-of-sync")).out
    assert "not mounted" in out
    assert "lacks what is out-of-sync" in out and "mount -t forebay -o cache=" in out
    assert "lacks" not in forebay("status", cache("bind", "file 0 0 live", "page 0 0 0 clean")).out


def test_offline_damage(forebay, cache, patch, tables):
    image = cache("file 0 0 live")
    patch(image, tables(image)[0] + 20, b"\xff")
    out = forebay("status", image).out
    assert f"1 record is damaged; `forebay check {image}` tells more" in out


@pytest.fixture(name="device")
def device_fixture(tmp_path):
    """Makes an image the made-up kernel's mapped device; its name leads from /dev/mapper to the image."""
    if not os.path.isdir("/dev/mapper"):
        pytest.skip("no /dev/mapper")

    def show(image):
        root = tmp_path / "root/sys"
        folder, numbers = root / "class/block/dm-9", root / "dev/block/253:9"
        for part in "queue", "dm":
            (folder / part).mkdir(parents=True)
        (folder / "queue/dax").write_text("1\n")
        (folder / "dev").write_text("253:9\n")
        (folder / "dm/name").write_text(f"../..{image}\n")
        numbers.parent.mkdir(parents=True)
        numbers.symlink_to(folder)
    return show


def test_an_unmounted_cache_is_listed(forebay, kernel, device, cache):
    device(cache("bind", "file 0 0 live", "page 0 0 0 out-of-sync"))
    assert "not mounted" in forebay("status", **kernel()).out


def test_an_unmounted_cache_with_nothing_in_it_is_not_listed(forebay, kernel, device, cache):
    device(cache("bind", "file 0 0 live", "page 0 0 0 clean"))
    assert forebay("status", **kernel()).out == "No forebay file system is mounted.\n"


def test_a_damaged_record_may_be_the_only_copy(forebay, kernel, device, cache, patch, tables):
    image = cache("bind", "file 0 0 live", "page 0 0 0 out-of-sync")
    patch(image, tables(image)[1] + 12, b"\xff\xff\xff\xff")
    device(image)
    environment = kernel()
    out = forebay("status", **environment).out
    assert re.search("1 record is damaged; `forebay check .*/cache.img` tells more", out)
    shown, = forebay("status", "--json", **environment).json
    assert shown["records_damaged"] == 1 and shown["pages_out_of_sync"] == 0


def test_a_cache_that_holds_only_a_size(forebay, kernel, device, cache):
    device(cache("bind", "file 0 8192 live"))
    environment = kernel()
    out = forebay("status", **environment).out
    assert "may lack the size or time of 1 file. To have it there, mount and unmount" in out
    shown, = forebay("status", "--json", **environment).json
    assert shown["files_unflushed"] == 1 and shown["pages_out_of_sync"] == 0


def test_a_cache_that_holds_only_names(forebay, kernel, device, cache):
    device(cache("bind", "names 2 1", options=("--names", "1m")))
    environment = kernel()
    assert "may lack 2 changes of names. To have it there, mount and unmount" in forebay("status", **environment).out
    shown, = forebay("status", "--json", **environment).json
    assert shown["names_records"] == 2 and shown["pages_out_of_sync"] == 0


def test_a_damaged_name_log_may_be_the_only_copy(forebay, kernel, device, cache, patch, names_offsets):
    image = cache("bind", "names 1 0", options=("--names", "1m"))
    patch(image, names_offsets(image)[2] + 40, b"\xff\xff")
    device(image)
    shown, = forebay("status", "--json", **kernel()).json
    assert shown["names_records"] == 0 and shown["names_damaged"] == 1


def test_an_empty_name_log_is_not_listed(forebay, kernel, device, cache):
    device(cache("bind", "names 0 1", options=("--names", "1m")))
    assert forebay("status", **kernel()).out == "No forebay file system is mounted.\n"


def test_damage_is_no_reason_to_mount(forebay, cache, patch, tables):
    image = cache("bind", "file 0 0 live", "page 0 0 0 out-of-sync", "page 1 0 1 clean")
    patch(image, tables(image)[1] + 16 + 12, b"\xff\xff\xff\xff")
    out = forebay("status", image).out
    assert "lacks what is out-of-sync" in out and "1 record is damaged" in out and "mount -t" not in out


def test_a_mapped_device_is_named_alike_mounted_or_not(forebay, kernel, tmp_path):
    environment = kernel(MOUNT_LINE.replace("pmem0", "dm-9"), **{"dm-9": {}})
    folder, numbers = tmp_path / "root/sys/class/block/dm-9", tmp_path / "root/sys/dev/block/253:9"
    (folder / "dm").mkdir(parents=True)
    (folder / "dev").write_text("253:9\n")
    (folder / "dm/name").write_text("fast\n")
    numbers.parent.mkdir(parents=True)
    numbers.symlink_to(folder)
    shown, = forebay("status", "--json", **environment).json
    assert shown["device"] == "/dev/mapper/fast" and shown["mountpoints"] == ["/srv/my db"]


@pytest.mark.parametrize("name, shown", [
    (b"na\xefve", "na\ufffdve"), ("na\u00efve \u20ac \U0001f600".encode(), "na\u00efve \u20ac \U0001f600"), (b"\xff\xfe", "\ufffd\ufffd"),
    (b"\xc0\xaf", "\ufffd\ufffd"), (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"), (b"cut\xe2\x82", "cut\ufffd\ufffd")])
def test_json_is_utf8_whatever_a_path_is(command, cache, name, shown):
    image = cache("bind", "file 0 0 live")
    path = os.path.join(os.fsencode(image.parent), name)
    os.rename(image, path)
    for words in (["status", "--json"], ["check", "--json"], ["probe", "--json"]):
        done = subprocess.run([command, *words, path], stdout=subprocess.PIPE, check=True)
        report = json.loads(done.stdout.decode())
        assert os.path.basename((report[0] if isinstance(report, list) else report)["device"]) == shown
    assert os.fsencode(path) in subprocess.run([command, "status", path], stdout=subprocess.PIPE, check=True).stdout


def test_one_bad_name_among_good_ones(forebay, cache, tmp_path):
    result = forebay("status", "--json", tmp_path / "missing", cache())
    assert result.status == FAILED
    assert "cannot find" in result.err and len(result.json) == 1


@pytest.mark.parametrize("words", [["status"], ["status", "--watch"], ["writelog", "status"]])
def test_nothing_is_printed_of_what_is_not_there(forebay, blank, tmp_path, words):
    """An empty array would say that there is no cache."""
    for path in tmp_path / "missing", tmp_path, "/dev/null", blank():
        for form in [], ["--json"]:
            result = forebay(*words, *form, path, TERM="dumb")
            assert result.status == FAILED and str(path) in result.err and not re.sub(r"== .*\n", "", result.out)


def test_what_is_no_cache(forebay, blank, tmp_path):
    result = forebay("status", blank(16 * MIB))
    assert result.status == FAILED and "not formatted" in result.err
    result = forebay("status", tmp_path)
    assert result.status == FAILED and "is not on a forebay mount" in result.err


def test_drain_wants_a_forebay_mount(forebay, tmp_path):
    result = forebay("drain", tmp_path)
    assert result.status == FAILED and "is not on a forebay mount" in result.err


def test_watch(command, kernel, tmp_path):
    """The status comes again and again, and says what has changed in between. It ends when its reader has gone."""
    environment = {**os.environ, **kernel(MOUNT_LINE, pmem0={})}
    with subprocess.Popen([command, "status", "--watch=0.1"], env=environment, text=True, stdout=subprocess.PIPE) as watch:
        lines = iter(watch.stdout.readline, "")
        assert re.fullmatch(r"== \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n", next(lines))
        assert any("300 absorbed" in line for line in lines)
        (tmp_path / "root/sys/fs/forebay/pmem0/syncs_absorbed").write_text("700\n")
        assert any("700 absorbed" in line for line in lines)
        watch.stdout.close()
        assert watch.wait(timeout=10)
    with subprocess.Popen([command, "status", "--json", "--watch=0.1"], env=environment, text=True, stdout=subprocess.PIPE) as watch:
        first, second = (json.loads(watch.stdout.readline()) for _ in range(2))
        watch.kill()
    assert first == second and first[0]["syncs_absorbed"] == 700


@pytest.mark.parametrize("wrong", ("0", "-1", "x", "86401", ""))
def test_watch_takes_seconds(forebay, kernel, wrong):
    result = forebay("status", f"--watch={wrong}", **kernel())
    assert result.status == USAGE and "seconds" in result.err


def test_a_file_whose_mount_is_not_there(forebay, kernel, log, tmp_path):
    """What is wrong with it as an image is not what the user asked, unless it is an image of ours."""
    assert "forebay mount" not in forebay("status", log(), **kernel()).err
    file = tmp_path / "base.db"
    for text in "", "not an image":
        file.write_text(text)
        result = forebay("status", file, **kernel())
        assert result.status == FAILED
        assert result.err.splitlines()[-1] == ("    It is on no forebay mount (`forebay status` lists them), "
                                               "so it was read as the image of a cache.")
