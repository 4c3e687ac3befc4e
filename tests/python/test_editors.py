"""Editors as runtimes with PyPI's python-socketio, over polling, websocket and an upgrade.

`cargo xtask test` installs it and says where Ward is (WARD_BIN).
"""

import json
import os
import re
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import socketio

PATIENCE = 60


class Ward:
    """A `ward serve` of one's own."""

    def __init__(self, home: Path):
        self.workspace = home / "work"
        self.workspace.mkdir()
        env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "WARD_TOKEN"))}
        self.process = subprocess.Popen(
            [os.environ["WARD_BIN"], "serve", "--addr", "127.0.0.1:0", "--no-open", "--workspace", self.workspace],
            env=env | {"HOME": str(home), "WARD_LOG": "warn"},
            stdout=subprocess.PIPE,
            text=True,
        )
        said = ""
        for line in self.process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        self.url = re.search(r"http://\S+", said).group()
        self.token = (home / ".config/ward/token").read_text().strip()

    def call(self, method, path, body=None):
        """Status and body of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("authorization", f"Bearer {self.token}")
        if data is not None:
            request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Editors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ward-python-")
        self.addCleanup(folder.cleanup)
        self.ward = Ward(Path(folder.name).resolve())
        self.addCleanup(self.ward.end)

    def connect(self, transports, token=None):
        client = socketio.Client(reconnection=False)
        self.addCleanup(client.disconnect)
        self.addCleanup(client.shutdown)
        auth = {"token": token or self.ward.token}
        client.connect(self.ward.url, auth=auth, transports=transports, wait_timeout=PATIENCE)
        return client

    def register(self, client):
        status, body = self.ward.call("POST", "/runtimes", {
            "socket_id": client.get_sid(),
            "kind": "python",
            "workspace_path": str(self.ward.workspace),
            "capabilities": ["fs.read"],
        })
        self.assertEqual(status, 201, body)
        return body["runtime_id"]

    def routed(self, transports):
        client = self.connect(transports)
        cancelled = threading.Event()
        asked = []

        @client.on("action:execute")
        def execute(request):
            asked.append((request["id"], request["action"], request["params"]))
            if request["id"] == "stopped":
                cancelled.wait(PATIENCE)
                return {"ok": False, "error": "It was stopped.", "kind": "cancelled"}
            for seq, data in enumerate(["one\n", "two – 2\n"]):
                client.emit("action:output", {"id": request["id"], "seq": seq, "stream": "stdout", "data": data})
            return {"ok": True, "result": {"content": f"what {request['params']['path']} holds"}}

        @client.on("action:cancel")
        def cancel(event):
            if event == {"id": "stopped"}:
                cancelled.set()

        runtime = self.register(client)
        if transports is None:
            self.assertEqual(client.transport(), "websocket", "it was upgraded")
        else:
            self.assertEqual([client.transport()], transports)

        read = {"action": "fs.read", "params": {"path": "ä.txt"}, "runtime": runtime}
        status, body = self.ward.call("POST", "/actions", {"id": "done", **read})
        self.assertEqual((status, body["outcome"].get("result")), (200, {"content": "what ä.txt holds"}), body)
        with urllib.request.urlopen(self.events("done"), timeout=PATIENCE) as answer:
            told = [json.loads(line[6:]) for line in answer.read().decode().splitlines() if line.startswith("data: ")]
        printed = "".join(event["data"] for event in told if event.get("stream") == "stdout")
        self.assertEqual(printed, "one\ntwo – 2\n")

        # One that is cancelled is told to stop.
        self.ward.call("POST", "/actions", {"id": "stopped", "wait": 0, **read})
        while self.ward.call("GET", "/actions/stopped")[1]["state"] != "running":
            pass
        self.ward.call("POST", "/actions/stopped/cancel")
        self.assertTrue(cancelled.wait(PATIENCE), "it was told to stop")
        self.assertEqual(asked, [("done", "fs.read", {"path": "ä.txt"}), ("stopped", "fs.read", {"path": "ä.txt"})])

        # A connection that ends is away at once.
        client.disconnect()
        while self.ward.call("GET", "/runtimes?kind=python")[1]["runtimes"][0]["state"] != "away":
            pass

    def events(self, action):
        request = urllib.request.Request(f"{self.ward.url}/actions/{action}/events?from=0")
        request.add_header("authorization", f"Bearer {self.ward.token}")
        return request

    def test_an_action_is_routed_over_polling_and_answered(self):
        self.routed(["polling"])

    def test_an_action_is_routed_over_websocket_and_answered(self):
        self.routed(["websocket"])

    def test_an_action_is_routed_over_an_upgrade_and_answered(self):
        self.routed(None)

    def test_a_wrong_token_is_refused_with_a_reason(self):
        for transports in (["polling"], ["websocket"]):
            reasons = []
            client = socketio.Client(reconnection=False)
            self.addCleanup(client.shutdown)
            client.on("connect_error", lambda data: reasons.append(data))
            with self.assertRaises(socketio.exceptions.ConnectionError):
                client.connect(self.ward.url, auth={"token": "ward_person_wrong"}, transports=transports, wait_timeout=PATIENCE)
            self.assertRegex(json.dumps(reasons), "wrong")


if __name__ == "__main__":
    unittest.main()
