# SPDX-License-Identifier: GPL-2.0-only
"""A connection to one member of etcd, by its HTTP gateway, and what an Operation (history.py) asks of it.

Every error after a request was sent is an OSError or a ValueError: the outcome is unknown then.
"""

import http.client
import json
from base64 import b64decode, b64encode

PORT = 2379
PROBE, ANSWER = 10, 45          # seconds; etcd itself gives a request up after 5 s and two election timeouts


def encoded(words):
    return b64encode(words.encode()).decode()


def decoded(words):
    return b64decode(words).decode()


class Connection:
    def __init__(self, port):
        """OSError or ValueError if no etcd answers at that port of the host: nothing was asked of it then."""
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE)
        self._exchange("GET", "/version")
        self._http.sock.settimeout(ANSWER)

    def close(self):
        self._http.close()

    def carry_out(self, operation):
        """Asks, and fills the answer in."""
        key, write = encoded(operation.key), {"key": encoded(operation.key), "value": encoded(operation.value)}
        if operation.kind == "put":
            self.call("kv/put", **write)
        elif operation.kind == "get":
            operation.found = _value(self.call("kv/range", key=key))
        else:
            answer = self.call(
                "kv/txn", success=[{"requestPut": write}], failure=[{"requestRange": {"key": key}}],
                compare=[{"key": key, "target": "VALUE", "result": "EQUAL", "value": encoded(operation.expected)}])
            operation.succeeded = answer.get("succeeded", False)
            if not operation.succeeded:
                operation.found = _value(answer["responses"][0]["response_range"])

    def everything(self):
        """{key: value}, by one read that isn't older than the last acknowledged write."""
        pairs = self.call("kv/range", key="AA==", range_end="AA==").get("kvs", [])
        return {decoded(pair["key"]): decoded(pair["value"]) for pair in pairs}

    def leads(self):
        """True if this member takes itself for the leader."""
        status = self.call("maintenance/status")
        return status.get("leader") == status["header"]["member_id"]

    def call(self, what, **arguments):
        return self._exchange("POST", f"/v3/{what}", json.dumps(arguments))

    def _exchange(self, method, path, content=None):
        try:
            self._http.request(method, path, content)
            answer = self._http.getresponse()
            content = answer.read()
        except http.client.HTTPException as problem:
            raise OSError(f"broken answer: {problem!r}") from None
        if answer.status != 200:
            raise ValueError(f"etcd: {answer.status} {content[:200]!r}")
        return json.loads(content)


def _value(answer):
    pairs = answer.get("kvs", [])
    return decoded(pairs[0]["value"]) if pairs else ""
