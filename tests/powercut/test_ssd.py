# SPDX-License-Identifier: GPL-2.0-only
"""The SSD that loses its cache: what is flushed stays, what is not may go, and reads see the newest."""

import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from .drive import Drive

BLOCK = 4096
BYTES = 64 * BLOCK
READ, WRITE, DISCONNECT, FLUSH = range(4)
FUA = 1
GO = 7


class Client:
    """Just enough NBD."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self._take(18)
        self.socket.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">IIIH", GO, 6, 0, 0))
        kind = None
        while kind != 1:                # ACK
            _, _, kind, length = struct.unpack(">QIII", self._take(20))
            self._take(length)

    def ask(self, command, offset=0, length=0, data=b"", flags=0):
        self.send(command, offset, length, data, flags)
        return self.answer(length if command == READ else 0)

    def send(self, command, offset=0, length=0, data=b"", flags=0):
        self.socket.sendall(self.request(command, offset, length, data, flags))

    @staticmethod
    def request(command, offset=0, length=0, data=b"", flags=0):
        return struct.pack(">IHHQQI", 0x25609513, flags, command, 0, offset, len(data) or length) + data

    def answer(self, length=0):
        _, error, _ = struct.unpack(">IIQ", self._take(16))
        assert not error
        return self._take(length)

    def _take(self, length):
        data = b""
        while len(data) < length:
            data += self.socket.recv(length - len(data))
        return data


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    target = tmp_path_factory.mktemp("bin") / "ssd"
    subprocess.run(["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-Wall", "-Wextra", "-Werror", "-o", target,
                    Path(__file__).with_name("ssd.c")], check=True)
    return target


@pytest.fixture
def use(program, tmp_path):
    """use(seed, actions): what the image holds after `actions(client)` and a cut."""
    def use(seed, actions):
        path, image = tmp_path / "socket", tmp_path / "image"
        image.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        process = subprocess.Popen([program, path, image, str(BYTES), str(seed), tmp_path / "report"])
        while not path.exists():
            time.sleep(0.005)
        client = Client(path)
        actions(client)
        client.socket.close()
        assert process.wait(timeout=60) == 0
        return image.read_bytes()
    return use


def block(content, number):
    return content[number * BLOCK:(number + 1) * BLOCK]


OLD, NEW = b"o" * BLOCK, b"n" * BLOCK


@pytest.mark.parametrize("seed", range(5))
def test_flushed_writes_stay(use, seed):
    def actions(client):
        client.ask(WRITE, 0, data=OLD)
        client.ask(WRITE, 0, data=NEW)
        client.ask(WRITE, 3 * BLOCK + 512, data=b"x" * 100)
        client.ask(FLUSH)
    content = use(seed, actions)
    assert block(content, 0) == NEW
    assert content[3 * BLOCK:][:700] == bytes(512) + b"x" * 100 + bytes(88)


def test_unflushed_writes_stay_or_go_and_blocks_stay_whole(use):
    def actions(client):
        client.ask(WRITE, 0, data=OLD * 2)
        client.ask(FLUSH)
        client.ask(WRITE, 0, data=NEW * 2)
        assert client.ask(READ, BLOCK, BLOCK) == NEW
    seen = {(block(content, 0), block(content, 1)) for content in (use(seed, actions) for seed in range(40))}
    assert {(OLD, OLD), (NEW, NEW)} < seen
    assert {half for pair in seen for half in pair} == {OLD, NEW}


@pytest.mark.parametrize("seed", range(10))
def test_fua_writes_stay_without_a_flush(use, seed):
    def actions(client):
        client.ask(WRITE, 0, data=OLD)
        client.ask(WRITE, 0, data=NEW, flags=FUA)
    assert block(use(seed, actions), 0) == NEW


def test_a_flush_does_not_cover_what_was_still_on_its_way(use):
    def actions(client):
        client.socket.sendall(client.request(WRITE, 0, data=NEW) + client.request(FLUSH))
        client.answer()
        client.answer()
    assert {block(use(seed, actions), 0) for seed in range(20)} == {NEW, bytes(BLOCK)}


@pytest.mark.parametrize("seed", range(10))
def test_a_second_flush_covers_it(use, seed):
    def actions(client):
        client.socket.sendall(client.request(WRITE, 0, data=OLD) + client.request(FLUSH))
        client.answer()
        client.answer()
        client.ask(FLUSH)
        client.ask(WRITE, BLOCK, data=NEW)
    content = use(seed, actions)
    assert block(content, 0) == OLD
    assert block(content, 1) in (NEW, bytes(BLOCK))


def test_drive_comes_again(program, tmp_path):
    """The SSD starts again with the same image, as for a second try after the emulator spoiled a boot."""
    with Drive(program, tmp_path / "image", BYTES, 1, tmp_path / "report", tmp_path / "socket") as drive:
        first = Client(drive.socket)
        first.ask(WRITE, 0, data=NEW, flags=FUA)
        first.socket.close()
        drive.again()
        second = Client(drive.socket)
        assert second.ask(READ, 0, BLOCK) == NEW
        second.socket.close()
        assert drive.lost()["lost"] == 0
