"""`stepladder mcp`: the loop of `try` over the Model Context Protocol; with the reference client where it is installed."""
import asyncio
import json
import os
import subprocess
import time
import unittest

from program import PATIENCE_S, PROGRAM
from tried_checkout import KEPT, TriedCheckout

try:
    import mcp
except ImportError:
    mcp = None


class Server:
    def __init__(self, place, folder):
        self.process = subprocess.Popen([PROGRAM, "mcp"], env=place.environment, cwd=folder, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.number = 0

    def write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def begin(self, method, parameters=None):
        self.number += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters or {}}))
        return self.number

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, parameters=None):
        number = self.begin(method, parameters)
        answer = self.read()
        assert answer["id"] == number, answer
        return answer

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


class Mcp(TriedCheckout):
    def setUp(self):
        super().setUp()
        self.commit()
        self.server = Server(self.place, self.repository)

    def tearDown(self):
        if self.server.process.stdin and not self.server.process.stdin.closed:
            self.server.close()
        super().tearDown()

    def test_the_loop(self):
        hello = self.server.ask("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        self.assertEqual(hello["result"]["protocolVersion"], "2025-03-26")
        self.assertEqual(self.server.ask("initialize", {"protocolVersion": "1999-01-01"})["result"]["protocolVersion"], "2025-11-25")
        self.server.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        tools = {tool["name"]: tool for tool in self.server.ask("tools/list")["result"]["tools"]}
        self.assertEqual(list(tools), ["status", "begin", "try", "log", "query"])
        self.assertEqual(tools["try"]["inputSchema"]["required"], ["message"])
        nothing = self.server.call("status")
        self.assertTrue(nothing["isError"])
        self.assertIn("no run", nothing["structuredContent"]["result"]["error"]["message"])
        began = self.server.call("begin", command=["python3", "train.py"], metric="val_bpb", runs=4, seal=[])
        self.assertFalse(began["isError"], began)
        self.assertEqual(began["structuredContent"]["result"]["runs"], 4)
        self.change("GAIN = 0.0", "GAIN = 0.01")
        kept = self.server.call("try", message="--strict", commit=False)  # a text, no option
        self.assertEqual(kept["structuredContent"]["exit_status"], KEPT, kept)
        self.assertEqual(json.loads(kept["content"][0]["text"]), kept["structuredContent"])
        self.change("GAIN = 0.01", "GAIN = 0.0")
        dropped = self.server.call("try", message="a step back", revert_if_dropped=True)
        self.assertEqual((dropped["structuredContent"]["exit_status"], dropped["isError"]), (10, False))
        self.assertIn("GAIN = 0.01", (self.repository / "train.py").read_text())
        log = self.server.call("log")["structuredContent"]["result"]
        self.assertEqual([each["message"] for each in log], ["--strict", "a step back"])
        runs = self.server.call("query", filter="status=finished", columns="id,name", limit=3)
        self.assertEqual(len(runs["structuredContent"]["result"]), 3)
        self.assertEqual(self.server.close(), 0)

    def test_what_is_no_request(self):
        for line, code in (("{", -32700), ("[" * 5000, -32700), ("[]", -32600), ("3", -32600), ('{"id": 1}', -32600)):
            self.server.write(line)
            self.assertEqual(self.server.read()["error"]["code"], code, line)
        self.assertEqual(self.server.ask("resources/list")["error"]["code"], -32601)
        for parameters in ({}, {"name": "delete"}, {"name": "try"}, {"name": "try", "arguments": {"message": 3}},
                           {"name": "try", "arguments": {"message": "x", "db": "/elsewhere"}}, {"name": "try", "arguments": 3},
                           {"name": "query", "arguments": {"limit": "3"}}, {"name": "begin", "arguments": {"command": "python"}}):
            self.assertEqual(self.server.ask("tools/call", parameters)["error"]["code"], -32602, parameters)
        self.assertEqual(self.server.ask("ping")["result"], {})

    def test_what_was_asked_before_the_end_of_stdin_is_answered(self):
        asked = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": name, "arguments": {}}}) + "\n"
                        for i, name in enumerate(("query", "status")))
        done = subprocess.run([PROGRAM, "mcp"], env=self.place.environment, cwd=self.repository, input=asked.rstrip("\n"), text=True,
                              capture_output=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, sorted(json.loads(line)["id"] for line in done.stdout.splitlines())), (0, [0, 1]), done.stderr)

    def test_a_call_can_be_cancelled(self):
        self.server.call("begin", command=["python3", "train.py"], metric="val_bpb", runs=4)
        self.change("GAIN = 0.0", "GAIN = 0.01")
        wait = self.counted.with_name("counted.wait")
        wait.write_text("")
        number = self.server.begin("tools/call", {"name": "try", "arguments": {"message": "for ever"}})
        deadline = time.time() + PATIENCE_S
        while len(self.counted.read_text().split()) == 4 and time.time() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.server.ask("ping")["result"], {}, "answers meanwhile")
        self.server.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}))
        state = "running"
        while state == "running" and time.time() < deadline:
            again = self.server.call("try", message="for ever") if wait.exists() and not wait.unlink() else None
            state = again["structuredContent"]["result"].get("verdict", "running") if again else "running"
            if again and again["isError"]:
                wait.write_text("")  # the cancelled one is still ending
        self.assertEqual(state, "kept")

    @unittest.skipIf(mcp is None, "PyPI's mcp isn't installed")
    def test_the_reference_client(self):
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        async def talk():
            server = StdioServerParameters(command=str(PROGRAM), args=["mcp"], env=self.place.environment, cwd=str(self.repository))
            async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                names = [tool.name for tool in (await session.list_tools()).tools]
                self.assertEqual(names, ["status", "begin", "try", "log", "query"])
                began = await session.call_tool("begin", {"command": ["python3", "train.py"], "metric": "val_bpb", "runs": 4})
                self.assertEqual(json.loads(began.content[0].text)["result"]["runs"], 4)
                self.change("GAIN = 0.0", "GAIN = 0.01")
                kept = await session.call_tool("try", {"message": "a gain"})
                self.assertEqual(json.loads(kept.content[0].text)["exit_status"], KEPT)
                status = await session.call_tool("status", {})
                self.assertEqual(json.loads(status.content[0].text)["result"]["kept"], 1)

        asyncio.run(talk())


if __name__ == "__main__":
    unittest.main()
