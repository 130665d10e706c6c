# SPDX-License-Identifier: GPL-2.0-only
"""The model about names must find each violation that is made here by hand, and nothing in what a sound system leaves."""

import copy
import random

import pytest

from ..iteration import NOISE_BYTES
from .found import Found, Object, load
from .model import ANY, CLOCK, FILE, FOLDER, ROOT, SYMLINK, Writer
from .ops import FIELDS, Op, data_of, target_of, unpack
from .plan import Plan, Shape

NOW = 17 * 10 ** 17
USUAL = {"mode": 0o644, "owner": 0, "group": 0, "atime": NOW, "mtime": NOW, "xattr": -1}


def found_now(writer):
    """What a dump would tell if everything that was done were there."""
    found = Found(dict(writer.tree.entries))
    for id_ in sorted(set(found.entries.values())):
        kind = writer.tree.kinds[id_]
        content = writer.targets.get(id_, b"")
        if kind == FILE:
            content = bytes(writer.files[id_].now)
        values = {field: USUAL[field] if values[-1] in (ANY, CLOCK) else values[-1]
                  for field, values in writer.attributes[id_].values.items()}
        links = list(found.entries.values()).count(id_)
        if kind == FOLDER:
            links = 2 + sum(folder == id_ and writer.tree.kinds[each] == FOLDER for (folder, _), each in found.entries.items())
        found.objects[id_] = Object(kind, id_, links, values, content)
    found.look_for_faults()
    assert not found.faults
    return found


def after(*ops, start=None):
    """A writer that did these operations, all of them acknowledged."""
    writer = Writer(start or Found(), NOISE_BYTES)
    for op in ops:
        writer.apply(op)
    return writer


def without(found, folder, name):
    """The same with a name less."""
    found = copy.deepcopy(found)
    id_ = found.entries.pop((folder, name))
    if id_ not in found.entries.values():
        del found.objects[id_]
    return found


CREATED = (Op("create", "f", id=1, x=0o644, y=-1), Op("write", "f", id=1, n=3, x=0, y=5000))
SYNCED = (*CREATED, Op("fsync", "f"))


class TestNames:
    def test_a_created_and_synced_file_is_there(self):
        found = found_now(after(*SYNCED))
        assert not after(*SYNCED).check(found)
        assert after(*SYNCED).check(without(found, ROOT, "f"))
        assert not after(*CREATED).check(without(found, ROOT, "f"))
        assert after(*CREATED, Op("fdatasync", "f")).check(Found())

    def test_a_synced_file_is_not_there_under_another_name(self):
        found = found_now(after(*SYNCED))
        found.entries = {(ROOT, "g"): 1}
        assert after(*SYNCED).check(found)

    def test_later_changes_may_be_there_or_not_in_their_order(self):
        ops = (*SYNCED, Op("rename", "f", "g"), Op("mkdir", "d", id=2, x=0o777))
        writer = after(*ops)
        assert not writer.check(found_now(writer))
        assert not writer.check(found_now(after(*ops[:-1])))
        assert not writer.check(found_now(after(*SYNCED)))
        early = found_now(after(*SYNCED, Op("mkdir", "d", id=2, x=0o777)))
        assert "no moment" in writer.check(early)[0], "the later change without the earlier one"

    def test_a_synced_rename_is_not_undone(self):
        ops = (*SYNCED, Op("rename", "f", "g"))
        before = found_now(after(*SYNCED))
        assert not after(*ops).check(before)
        assert not after(*ops, Op("fdatasync", "g")).check(before)
        assert "before the last synced" in after(*ops, Op("fsync", "g")).check(before)[0]
        assert after(*ops, Op("fsync", ".")).check(before)
        assert after(*ops, Op("syncfs", ".")).check(before)

    def test_a_sync_that_did_not_return_promises_nothing(self):
        writer = after(*CREATED)
        writer.apply(Op("fsync", "f"), returned=False)
        assert not writer.check(Found())

    def test_the_sync_of_another_folder_promises_nothing(self):
        base = (Op("mkdir", "a", id=10, x=0o777), Op("mkdir", "b", id=11, x=0o777), Op("fsync", "."))
        ops = (*base, Op("create", "a/f", id=1, x=0o644, y=-1))
        before = found_now(after(*base))
        assert not after(*ops, Op("fsync", "b")).check(before)
        assert after(*ops, Op("fsync", "a")).check(before)

    def test_maildir(self):
        base = (Op("mkdir", "tmp", id=10, x=0o777), Op("mkdir", "new", id=11, x=0o777), Op("create", "tmp/m", id=1, x=0o600, y=0),
                Op("write", "@0", id=1, n=1, x=0, y=100), Op("fsync", "@0"))
        ops = (*base, Op("rename", "tmp/m", "new/m"))
        assert not after(*ops).check(found_now(after(*base)))
        assert after(*ops, Op("fsync", "new")).check(found_now(after(*base)))
        twice = found_now(after(*ops))
        twice.entries[10, "m"] = 1
        assert after(*ops).check(twice), "the mail is in both folders"

    def test_replaced_file(self):
        base = (*SYNCED, Op("create", "t", id=2, x=0o644, y=-1), Op("write", "t", id=2, n=9, x=0, y=300), Op("fsync", "t"))
        ops = (*base, Op("rename", "t", "f"))
        assert not after(*ops).check(found_now(after(*base)))
        assert after(*ops, Op("fsync", ".")).check(found_now(after(*base)))
        neither = found_now(after(*ops))
        del neither.entries[ROOT, "f"], neither.objects[2]
        assert after(*ops).check(neither), "neither the old file nor the new one"

    def test_unlinked_file(self):
        ops = (*SYNCED, Op("unlink", "f"))
        assert not after(*ops).check(found_now(after(*SYNCED)))
        assert after(*ops, Op("fsync", ".")).check(found_now(after(*SYNCED)))

    def test_moved_folder(self):
        base = (Op("mkdir", "a", id=10, x=0o777), Op("create", "a/f", id=1, x=0o644, y=-1), Op("fsync", "a/f"))
        ops = (*base, Op("rename", "a", "b"))
        assert not after(*ops, Op("fsync", "b/f")).check(found_now(after(*base))), "the folder's name is not the file's"
        assert after(*ops, Op("fsync", "b")).check(found_now(after(*base)))
        both = found_now(after(*ops))
        both.entries[ROOT, "a"] = 10
        both.faults = []
        both.look_for_faults()
        assert both.faults and after(*ops).check(both)

    def test_nameless_file(self):
        base = (Op("tmpfile", ".", id=1, x=0o600, y=3), Op("write", "@3", id=1, n=2, x=0, y=10), Op("fsync", "@3"))
        assert not after(*base).check(Found())
        assert not after(*base, Op("link", "@3", "f")).check(Found())
        assert after(*base, Op("link", "@3", "f"), Op("fsync", "@3")).check(Found())

    def test_hard_link_and_exchange(self):
        ops = (*SYNCED, Op("link", "f", "g"), Op("fsync", "f"))
        assert after(*ops).check(without(found_now(after(*ops)), ROOT, "g"))
        base = (*SYNCED, Op("mkdir", "d", id=2, x=0o777), Op("fsync", "."))
        ops = (*base, Op("exchange", "f", "d"))
        assert not after(*ops).check(found_now(after(*base)))
        half = found_now(after(*ops))
        half.entries[ROOT, "f"] = 1
        assert after(*ops).check(half)

    def test_an_object_that_was_never_made(self):
        found = found_now(after(*SYNCED))
        found.entries[ROOT, "g"] = 99
        found.objects[99] = found.objects[1]
        assert any("never made" in text for text in after(*SYNCED).check(found))


class TestObjects:
    def test_content_and_size(self):
        writer = after(*SYNCED)
        for content in (b"", bytes(5000), found_now(writer).objects[1].content[:4999]):
            found = found_now(writer)
            found.objects[1].content = content
            assert writer.check(found)
            assert not after(*CREATED).check(found) or len(content) == 4999

    def test_another_files_bytes(self):
        ops = (*SYNCED, Op("create", "g", id=77777, x=0o644, y=-1), Op("write", "g", id=77777, n=8, x=0, y=5000), Op("fsync", "g"))
        found = found_now(after(*ops))
        found.objects[1].content = found.objects[77777].content
        assert any("written to file 77777" in text for text in after(*ops).check(found))

    def test_what_is_written_says_whose_it_is(self):
        data = data_of(NOISE_BYTES, Op("write", "f", id=500000001, n=7, x=0, y=200))
        assert len(data) == 200 and data.count((500000001).to_bytes(4, "little")) == 4

    @pytest.mark.parametrize("change, field, old", [
        (Op("chmod", "f", x=0o600), "mode", 0o644), (Op("chown", "f", id=1, n=1, x=0), "owner", 0),
        (Op("chown", "f", id=1, n=0, x=7), "group", 0), (Op("utimes", "f", x=100, y=200), "mtime", NOW),
        (Op("utimes", "f", x=100, y=200), "atime", NOW), (Op("xattr", "f", x=3), "xattr", -1)])
    def test_attributes_are_those_of_then_or_later(self, change, field, old):
        ops = (*SYNCED, change)
        found = found_now(after(*ops))
        found.objects[1].attributes[field] = old
        assert not after(*ops).check(found)
        assert not after(*ops, Op("fdatasync", "f")).check(found)
        assert field in after(*ops, Op("fsync", "f")).check(found)[0]
        found.objects[1].attributes[field] = 12345
        assert after(*ops, Op("fsync", "f")).check(found)

    def test_mtime_after_a_write_is_the_clocks(self):
        writer = after(*SYNCED, Op("utimes", "f", x=100, y=200), Op("write", "f", id=1, n=4, x=0, y=5), Op("fsync", "f"))
        found = found_now(writer)
        assert not writer.check(found)
        found.objects[1].attributes["mtime"] = 200
        assert "mtime" in writer.check(found)[0], "the write's time is lost"
        writer = after(Op("mkdir", "d", id=2, x=0o777), Op("utimes", "d", x=1, y=2), Op("create", "d/f", id=1, x=0o644, y=-1),
                       Op("fsync", "d"))
        found = found_now(writer)
        assert not writer.check(found)
        found.objects[2].attributes["mtime"] = 2
        assert "mtime" in writer.check(found)[0]

    @pytest.mark.parametrize("code, kept", [("rename", True), ("exchange", False)])
    def test_mtime_of_a_folder_that_moves(self, code, kept):
        target = () if code == "rename" else (Op("mkdir", "b/e", id=4, x=0o777),)
        writer = after(Op("mkdir", "a", id=1, x=0o777), Op("mkdir", "a/d", id=2, x=0o777), Op("mkdir", "b", id=3, x=0o777),
                       *target, Op("utimes", "a/d", x=1, y=2), Op("fsync", "a/d"), Op(code, "a/d", "b/e"), Op("fsync", "b/e"))
        found = found_now(writer)
        found.objects[2].attributes["mtime"] = 2
        assert not writer.check(found)
        found.objects[2].attributes["mtime"] = NOW
        assert bool(writer.check(found)) == kept
        found.objects[3].attributes["mtime"] = 2
        assert "mtime" in writer.check(found)[-1], "the new parent's is the clock's"

    def test_kinds_and_targets(self):
        ops = (Op("symlink", "l", id=5, x=60), Op("fifo", "p", id=6, x=0o644), Op("fsync", "."))
        found = found_now(after(*ops))
        assert found.objects[5].content.decode() == target_of(5, 60) and len(found.objects[5].content) == 60
        assert not after(*ops).check(found)
        found.objects[5].content = b"elsewhere"
        assert "leads to" in after(*ops).check(found)[0]
        found = found_now(after(*ops))
        found.objects[6].kind = FILE
        assert "kind" in after(*ops).check(found)[0]


def test_dump_is_read(tmp_path):
    """Lines as dump.c writes them."""
    (tmp_path / "found.data").write_bytes(b"abctarget")
    (tmp_path / "found.index").write_text(
        "0 0 d d 2147483658 20 2 511 7 1 2 -1 4096 0\n" "0 2147483658 f f 1 21 2 420 0 3 4 9 3 0\n"
        "0 0 g f 1 21 2 420 0 3 4 9 3 0\n" "1 0 l l 2 30 1 511 0 5 6 -1 6 3\n" "1 0 x f 3 31 2 420 0 3 4 9 0 9\n")
    first, second = load(tmp_path / "found", 2)
    assert first.entries == {(0, "d"): 10, (10, "f"): 1, (0, "g"): 1} and not first.faults
    assert first.objects[10].attributes == {"mode": 0o777, "owner": 1, "group": 7, "atime": 1, "mtime": 2, "xattr": -1}
    assert first.objects[1].content == b"abc" and first.path(1) in ("d/f", "g")
    assert (second.objects[2].kind, second.objects[2].content) == (SYMLINK, b"target")
    assert second.faults == ["object 3 (x) has a link count of 2, not 1"]


def a_sound_systems(writer, chooser):
    """Any state that the model's promises allow: names of one moment, attributes and contents each old or new."""
    state = chooser.choice(writer.history.states[writer.history.durable:])
    everything = copy.copy(writer)
    everything.tree = copy.copy(writer.tree)
    everything.tree.entries = state
    found = found_now(everything)
    for id_, what in found.objects.items():
        if what.kind == FILE:
            file = writer.files[id_]
            what.content = chooser.choice((bytes(file.now), bytes(file.synced)))
            if what.content == bytes(file.synced) and len(file.synced) not in file.sizes:
                what.content = bytes(file.now)
        for field, values in writer.attributes[id_].values.items():
            value = chooser.choice(values)
            what.attributes[field] = USUAL[field] if value in (ANY, CLOCK) else value
    return found


@pytest.mark.parametrize("syncs", [1, 0.3, 0])
@pytest.mark.parametrize("seed", range(12))
def test_plans_run_and_a_sound_system_passes(seed, syncs):
    chooser = random.Random(seed)
    ops = Plan(random.Random(seed), Found(), 5 * 10 ** 8, Shape(syncs=syncs)).ops(500)
    assert list(unpack(b"".join(op.pack() for op in ops))) == ops
    assert syncs or not any("sync" in op.code for op in ops)
    writer = after(*ops[:-1])
    writer.apply(ops[-1], returned=False)
    found = a_sound_systems(writer, chooser)
    assert not writer.check(found)
    later = Plan(random.Random(seed), found, 6 * 10 ** 8, Shape(syncs=syncs)).ops(200)
    writer = after(*later, start=found)
    assert not writer.check(a_sound_systems(writer, chooser))


@pytest.mark.parametrize("seed", range(12))
def test_one_wrong_thing_is_found(seed):
    """After syncfs: any name that is gone, or leads elsewhere, any attribute, any byte."""
    chooser = random.Random(seed)
    writer = after(*Plan(random.Random(seed), Found(), 5 * 10 ** 8).ops(600), Op("syncfs", "."))
    assert not writer.check(found_now(writer))
    place, id_ = chooser.choice(sorted(writer.tree.entries.items()))
    found = found_now(writer)
    del found.entries[place]
    assert writer.check(found)
    found.entries[place[0], place[1] + "x"] = id_
    assert writer.check(found)
    found = found_now(writer)
    found.objects[id_].attributes["mode"] ^= 1
    assert writer.check(found)
    victim = max((what for what in found.objects.values() if what.kind == FILE), key=lambda what: len(what.content))
    found = found_now(writer)
    for what in found.objects.values():
        if what.inode == victim.inode:
            what.content = what.content[:-1] + bytes([what.content[-1] ^ 1])
    assert len(writer.check(found)) == 1


def test_every_scene_and_operation_occurs():
    ops = Plan(random.Random(1), Found(), 5 * 10 ** 8).ops(4000)
    missing = set(FIELDS) - {op.code for op in ops}
    assert not missing
