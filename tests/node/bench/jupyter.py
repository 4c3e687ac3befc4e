"""Executes `1+1` on an ipykernel with jupyter_client alone. It is asked over its standard streams, in
lines of JSON-RPC: `execute {count}` is answered with the seconds of each."""

import json
import sys
import time

from jupyter_client.manager import KernelManager

PATIENCE = 60


def execute(client):
    """From the request until the result, the reply and the word that the kernel is idle are there."""
    began = time.perf_counter()
    asked = client.execute("1+1")
    result = None
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE)
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        if message["msg_type"] == "execute_result":
            result = content["data"]["text/plain"]
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            break
    while client.get_shell_msg(timeout=PATIENCE)["parent_header"].get("msg_id") != asked:
        pass
    took = time.perf_counter() - began
    assert result == "2", result
    return took


manager = KernelManager(kernel_name="python3")
manager.start_kernel()
try:
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE)
    for line in sys.stdin:
        request = json.loads(line)
        seconds = [execute(client) for _ in range(request["params"]["count"])]
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"seconds": seconds}}
        print(json.dumps(answer), flush=True)
finally:
    manager.shutdown_kernel(now=True)
