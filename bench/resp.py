# SPDX-License-Identifier: GPL-2.0-only
"""A connection to Redis: its protocol (RESP2) as far as it is needed here. python3-redis takes seconds to import in an
emulated guest, and says less about when a reply arrived."""

import socket


class ErrorReply(Exception):
    """The server answered with an error."""


class Connection:
    def __init__(self, host: str = "127.0.0.1", port: int = 6379, timeout: float | None = None):
        self._socket = socket.create_connection((host, port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._replies = self._socket.makefile("rb")

    def close(self) -> None:
        self._socket.close()

    def call(self, *words):
        self.send(*words)
        return self.reply()

    def send(self, *words) -> None:
        self._socket.sendall(encode(*words))

    def reply(self):
        return decode(self._replies)


def encode(*words) -> bytes:
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def decode(stream):
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("Redis closed the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"+":
        return rest
    if kind == b"-":
        raise ErrorReply(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if rest == b"-1" else stream.read(int(rest) + 2)[:-2]
    if kind == b"*":
        return [decode(stream) for _ in range(int(rest))]
    raise ConnectionError(f"not a reply: {line!r}")
