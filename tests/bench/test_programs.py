# SPDX-License-Identifier: GPL-2.0-only
"""The workloads that run real programs notice what was not done. Only those whose programs the host has."""

from base64 import b64decode

import pytest

from bench import debs, guest, packages
from bench.commands import CommandFailed
from bench.workloads import dpkg, etcd, git, postfix, postgres


def test_git(tmp_path):
    folder = str(tmp_path)
    steps = git.commits()(folder, 0)["steps"]
    assert steps >= 5
    with pytest.raises(ValueError, match="commits after"):
        git.check(folder, steps + 1)
    git.run("git", "-C", folder, "reset", "-q", "--hard", "HEAD~1")
    git.check(folder, steps - 1)
    with pytest.raises(ValueError, match="commits after"):
        git.check(folder, steps)
    with open(f"{folder}/{git.path_of(0)}", "a") as file:
        file.write("more\n")
    with pytest.raises(ValueError, match="differ"):
        git.check(folder, steps - 1)


def test_git_with_a_damaged_object(tmp_path):
    folder = str(tmp_path)
    steps = git.commits()(folder, 0)["steps"]
    victim = git.git(folder, "rev-parse", f"HEAD~{steps}:{git.path_of(1)}").strip()
    path = tmp_path / ".git/objects" / victim[:2] / victim[2:]
    path.chmod(0o600)
    path.write_bytes(b"")
    with pytest.raises(CommandFailed):
        git.check(folder, steps)


def test_what_apt_would_install():
    said = "Reading package lists...\nInst etcd-server (3.4.23 Debian:12 [amd64])\nRemv exim4\nInst liblmdb0 [0.9] (1 D)\nConf x (1)\n"
    assert packages.missing(said) == ["etcd-server", "liblmdb0"]


def test_busy():
    assert guest.busy([0] * 8, [10, 0, 30, 50, 10, 0, 0, 0]) == 40


def test_dpkg(tmp_path):
    archives = f"{tmp_path}/debs"
    debs.make(archives, 2)
    root = dpkg.new_root(f"{tmp_path}/roots", 0)
    dpkg.unpack_into(root, range(2), archives)
    dpkg.check(root, 2, archives)
    with pytest.raises(ValueError, match="2 packages after 1"):
        dpkg.check(root, 1, archives)
    victim = next(path for path in (tmp_path / "roots").rglob("*.h"))
    content = victim.read_bytes()
    victim.write_bytes(content[:-1])
    with pytest.raises(ValueError, match="isn't what"):
        dpkg.check(root, 2, archives)
    victim.rename(f"{victim}.dpkg-new")
    with pytest.raises(ValueError, match="files"):
        dpkg.check(root, 2, archives)


def mailed(folder, acknowledged):
    """What Postfix leaves when all goes well."""
    for user in range(postfix.USERS):
        for name in ("new", "tmp"):
            (folder / f"home{user}/Maildir" / name).mkdir(parents=True)
    for client, count in enumerate(acknowledged):
        for number in range(count):
            mail = b"Return-Path: <x>\n" + postfix.body(client, number).replace(b"\r\n", b"\n")
            (folder / f"home{number % postfix.USERS}/Maildir/new/{client}.{number}").write_bytes(mail)


def test_mails(tmp_path):
    mailed(tmp_path, [3, 9])
    postfix.check(str(tmp_path), [3, 9])
    assert postfix.delivered(str(tmp_path)) == 12
    with pytest.raises(ValueError, match="in no maildir"):
        postfix.check(str(tmp_path), [3, 10])
    with pytest.raises(ValueError, match="once too often"):
        postfix.check(str(tmp_path), [2, 9])
    first = tmp_path / "home0/Maildir/new/1.0"
    mail = first.read_bytes()
    first.write_bytes(mail[:-1])
    with pytest.raises(ValueError, match="isn't what was sent"):
        postfix.check(str(tmp_path), [3, 9])
    first.write_bytes(mail)
    (first.parent / "again").write_bytes(mail)
    with pytest.raises(ValueError, match="once too often"):
        postfix.check(str(tmp_path), [3, 9])
    (first.parent / "again").rename(tmp_path / "home0/Maildir/tmp/left")
    with pytest.raises(ValueError, match="left in"):
        postfix.check(str(tmp_path), [3, 9])


class Etcd:
    """Answers of a server with these puts."""

    def __init__(self, puts, lost=()):
        self._puts, self._lost, self._revision = puts, lost, 1 + sum(puts) - len(lost)

    def call(self, what, key, range_end):
        client = int(b64decode(key).decode().rstrip("/"))
        pairs = [{"key": etcd.encoded(etcd.key(client, number)), "value": etcd.encoded(etcd.value(client, number))}
                 for number in range(self._puts[client]) if (client, number) not in self._lost]
        return {"header": {"revision": str(self._revision)}, "kvs": pairs}


def test_etcd():
    etcd.check(Etcd([3, 5]), [3, 5])
    with pytest.raises(ValueError, match="revision 8 after 8"):
        etcd.check(Etcd([3, 5], lost=[(1, 4)]), [3, 5])
    with pytest.raises(ValueError, match="3 keys of client 0"):
        etcd.check(Etcd([3, 5]), [4, 4])


PGBENCH = """pgbench (15.18)
number of transactions actually processed: 4321
number of failed transactions: 0 (0.000%)
latency average = 9.256 ms
tps = 432.146829 (without initial connection time)
"""


def test_pgbench():
    assert postgres.rate(PGBENCH) == 432.146829
    assert postgres.processed(PGBENCH) == 4321
    with pytest.raises(CommandFailed):
        postgres.rate(PGBENCH.replace("transactions: 0", "transactions: 1"))
