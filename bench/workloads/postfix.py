# SPDX-License-Identifier: GPL-2.0-only
"""Postfix: mail comes by SMTP, goes through its queue and into the maildirs of local users. Queue and maildirs are on the mount.

cleanup(8) syncs each mail in the queue before smtpd(8) acknowledges it; local(8) syncs it in the maildir's tmp/ before it is
linked to new/ and leaves the queue. The settings that concern these steps are Postfix's defaults, but for in_flow_delay. With
its default, mail that comes faster than it is delivered is accepted once a second, and the rate jumps between two values.
"""

import os
import socket
import threading
import time

from .. import cost
from ..commands import run
from . import guest_only
from .redis import wait_until

USERS, CLIENTS, LINES = 4, 4, 50            # a mail has so many lines of 72 bytes
SLOWEST = 300                               # seconds until all are delivered
FIRST_UID = 61000
CONFIG, DATA, LOG = "/run/bench-postfix", "/run/bench-postfix-data", "/var/log/bench-postfix.log"
MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/spool
data_directory = {data}
mail_owner = postfix
setgid_group = postdrop
myhostname = bench.localdomain
mydestination = localhost
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
disable_dns_lookups = yes
smtpd_peername_lookup = no
alias_maps =
alias_database =
home_mailbox = Maildir/
biff = no
in_flow_delay = 0
maillog_file = {log}
"""
MASTER = """
smtp inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
local unix - n n - - local
virtual unix - n n - - virtual
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


def deliveries():
    """Mails/s until the last is in its maildir. Each of some clients sends its next mail when the last was acknowledged."""
    def measure(folder: str, seconds: float) -> dict:
        install()
        for user in range(USERS):
            os.mkdir(home(folder, user))
            os.chown(home(folder, user), FIRST_UID + user, FIRST_UID + user)
            os.symlink(home(folder, user), f"/run/bench-home{user}.new")
            os.replace(f"/run/bench-home{user}.new", f"/run/bench-home{user}")
        with Server(folder):
            clients = [Client(number) for number in range(CLIENTS)]
            for client in clients:
                client.send()                   # Postfix starts its processes
            await_delivery(folder, len(clients))
            os.sync()
            with cost.Spent() as spent:
                for client in clients:
                    client.start()
                time.sleep(seconds)
                for client in clients:
                    client.stop()
                sent = sum(client.acknowledged for client in clients)
                await_delivery(folder, sent)
            wait_until(lambda: not queued(folder), "the queue to be empty")
        check(folder, [client.acknowledged for client in clients])
        mails = sent - len(clients)
        return {"value": mails / spent.seconds, "acknowledged": sent, **spent.each(mails)}
    return measure


def install() -> None:
    """Postfix, and the users that it runs as and delivers to."""
    if os.path.exists("/run/bench-mail.installed"):
        return
    guest_only.install("mail")
    with open("/etc/passwd", "a") as users, open("/etc/group", "a") as groups:
        for number, name in enumerate(("postfix", "postdrop"), FIRST_UID - 10):
            users.write(f"{name}:x:{number}:{number}::/nonexistent:/usr/sbin/nologin\n")
            groups.write(f"{name}:x:{number}:\n")
        for user in range(USERS):
            users.write(f"bench{user}:x:{FIRST_UID + user}:{FIRST_UID + user}::/run/bench-home{user}:/usr/sbin/nologin\n")


def home(folder: str, user: int) -> str:
    return f"{folder}/home{user}"


def delivered(folder: str) -> int:
    return sum(len(os.listdir(f"{home(folder, user)}/Maildir/new")) for user in range(USERS)
               if os.path.isdir(f"{home(folder, user)}/Maildir/new"))


def await_delivery(folder: str, mails: int) -> None:
    """Looks ten times a second: reading the folders takes time from Postfix."""
    begin = time.monotonic()
    while (found := delivered(folder)) < mails:
        if time.monotonic() > begin + SLOWEST:
            raise RuntimeError(f"Postfix: {found} of {mails} mails are delivered after {SLOWEST} s")
        time.sleep(0.1)


def queued(folder: str) -> int:
    return sum(len(files) for name in ("maildrop", "incoming", "active", "deferred")
               for _, _, files in os.walk(f"{folder}/spool/{name}"))


def body(client: int, number: int) -> bytes:
    line = f"mail {number} of client {client} ".ljust(70, "m").encode() + b"\r\n"
    return b"Subject: %d %d\r\n\r\n" % (client, number) + line * LINES


def check(folder: str, acknowledged: list[int]) -> None:
    """Each mail that was acknowledged lies in its user's maildir, once and whole, and no other does."""
    must = {(client, number) for client, count in enumerate(acknowledged) for number in range(count)}
    for user in range(USERS):
        place = f"{home(folder, user)}/Maildir/new"
        for name in os.listdir(place):
            with open(f"{place}/{name}", "rb") as file:
                mail = file.read()
            words = mail.partition(b"Subject: ")[2].split(None, 2)
            client, number = int(words[0]), int(words[1])
            if (client, number) not in must or number % USERS != user:
                raise ValueError(f"Postfix: bench{user} has mail {number} of client {client}, once too often or not for it")
            if not mail.endswith(body(client, number).replace(b"\r\n", b"\n").partition(b"\n\n")[2]):
                raise ValueError(f"Postfix: mail {number} of client {client} isn't what was sent")
            must.remove((client, number))
        if left := os.listdir(f"{home(folder, user)}/Maildir/tmp"):
            raise ValueError(f"Postfix: {len(left)} files are left in bench{user}'s tmp")
    if must:
        raise ValueError(f"Postfix: {len(must)} of {sum(acknowledged)} acknowledged mails are in no maildir")


class Server:
    """Postfix with its queue in a folder."""

    def __init__(self, folder: str):
        self._folder = folder

    def __enter__(self):
        for path in (CONFIG, DATA, f"{self._folder}/spool"):
            os.makedirs(path, exist_ok=True)
        run("chown", "postfix:", DATA)
        for name, text in (("main.cf", MAIN.format(folder=self._folder, data=DATA, log=LOG)), ("master.cf", MASTER)):
            with open(f"{CONFIG}/{name}", "w") as file:
                file.write(text.lstrip())
        run("postfix", "-c", CONFIG, "start")
        return self

    def __exit__(self, *exception):
        run("postfix", "-c", CONFIG, "stop")


class Client(threading.Thread):
    """One SMTP connection, and how many mails were acknowledged on it."""

    def __init__(self, number: int):
        super().__init__(daemon=True)
        self.acknowledged = 0
        self._number, self._done, self._problem = number, False, None
        wait_until(self._connects, "Postfix to answer")
        self._expect(b"220")
        self._say(b"EHLO bench\r\n", b"250")

    def run(self) -> None:
        try:
            while not self._done:
                self.send()
            self._say(b"QUIT\r\n", b"221")
        except (OSError, RuntimeError) as problem:
            self._problem = problem

    def stop(self) -> None:
        """After the mail that is on its way."""
        self._done = True
        self.join(60)
        if self._problem or self.is_alive():
            raise RuntimeError(f"SMTP client {self._number}: {self._problem or 'has no answer'}")

    def send(self) -> None:
        """The next mail, and waits until it is acknowledged."""
        number = self.acknowledged
        self._say(f"MAIL FROM:<bench0@localhost>\r\nRCPT TO:<bench{number % USERS}@localhost>\r\nDATA\r\n".encode(),
                  b"250", b"250", b"354")
        self._say(body(self._number, number) + b".\r\n", b"250")
        self.acknowledged += 1

    def _connects(self) -> bool:
        try:
            self._file = socket.create_connection(("127.0.0.1", 25), 60).makefile("rwb")
            return True
        except ConnectionRefusedError:
            return False

    def _say(self, words: bytes, *answers: bytes) -> None:
        self._file.write(words)
        self._file.flush()
        for answer in answers:
            self._expect(answer)

    def _expect(self, code: bytes) -> None:
        """An answer with this code, of one line or several."""
        while True:
            line = self._file.readline()
            if not line.startswith(code):
                raise RuntimeError(f"Postfix said {line!r}, not {code!r}")
            if line[3:4] == b" ":
                return
