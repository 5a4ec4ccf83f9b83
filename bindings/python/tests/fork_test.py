# SPDX-License-Identifier: BSD-3-Clause
"""Children of os.fork(): what is their parent's stays as it is."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

PRELUDE = """
import asyncio, gc, logging, multiprocessing, os, signal, sys, threading
import nessie
from nessie import nssi
from support import Serving

PROGRAM, VERSION = 0x20001234, 1
SIZE = 100_000

class Service:
    def __init__(self):
        self.release = threading.Event()

    def add_to(self, runtime):
        for op, handler in enumerate((self.total, self.block, self.fork)):
            runtime.add_operation(PROGRAM, VERSION, op, handler)
        for op, kind in ((3, nssi.HandlerKind.SHORT), (4, nssi.HandlerKind.FIBER)):
            runtime.add_operation(PROGRAM, VERSION, op, self.fork_and_leave, kind=kind, name="leave")

    def total(self, request):
        data = bytearray(request.data_bytes)
        request.get_data(data)
        return sum(data).to_bytes(8, "big")

    def block(self, request):
        self.release.wait(60)

    def fork(self, request):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            sys.exit(0)
        return os.waitpid(child, 0)[1].to_bytes(8, "big")

    def fork_and_leave(self, request):
        how, child = request.args, os.fork()
        if child == 0:
            signal.alarm(20)
            if how == b"raise":
                raise KeyError("in the child")
            if how == b"exit":
                sys.exit(7)
            return b"from the child"
        return os.waitpid(child, 0)[1].to_bytes(8, "big")

service = Service()
serving = Serving(service)
client = nssi.Runtime.open(transports=["shm"], listen=False)
peer = client.connect(serving.runtime.url)
borrowed = client.register(bytes([1]) * SIZE, nssi.Rights.REMOTE_READ)
allocated = client.allocate(SIZE)
blocked = client.call(nssi.Service(peer, PROGRAM, VERSION), 1)

def total(buffer, runtime=client, peer=peer):
    return int.from_bytes(runtime.call_and_wait(nssi.Service(peer, PROGRAM, VERSION), 0, data=buffer), "big")

async def await_one():
    return await client.call(nssi.Service(peer, PROGRAM, VERSION), 0, data=borrowed)

assert total(borrowed) == SIZE

def fork():
    child = os.fork()
    if child == 0:
        signal.alarm(20)
    return child

def succeeded(child):
    return os.waitpid(child, 0)[1] == 0

def check_parent():
    assert total(borrowed) == SIZE and total(allocated) == 0
    assert int.from_bytes(asyncio.run(await_one()), "big") == SIZE
    service.release.set()
    assert blocked.result(20) == b""
    client.close()
    serving.__exit__()
"""


A_CALL_THAT_IS_OVER = """
asyncio.run(await_one())
over = client.call(nssi.Service(peer, PROGRAM, VERSION), 0, data=borrowed)
over.wait()
"""


class Forks(unittest.TestCase):
    def run_script(self, script):
        text = PRELUDE + textwrap.dedent(script) + "\nprint('through', flush=True)"
        paths = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths}
        command = [sys.executable, "-B", "-c", text]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "through\n"), done.stderr)
        return done.stderr

    def run_child(self, work="", before="asyncio.run(await_one())"):
        """Has a child do `work` and exit, while its parent goes on as if there were none."""
        work = textwrap.indent(textwrap.dedent(work), "    ")
        return self.run_script(
            f"{before}\nchild = fork()\nif child == 0:\n{work}\n    sys.exit(0)\n"
            "assert succeeded(child)\ncheck_parent()"
        )

    def test_a_child_that_exits_leaves_its_parents_runtimes_alone(self):
        self.assertEqual(self.run_child(before=""), "")

    def test_so_does_one_of_a_parent_that_has_awaited(self):
        self.assertEqual(self.run_child(), "")

    def test_so_does_one_that_closes_and_drops_everything(self):
        errors = self.run_child(
            """
            client.close()
            del over, blocked, borrowed, allocated, client, service, serving, total
            gc.collect()
            """,
            A_CALL_THAT_IS_OVER,
        )
        self.assertEqual(errors, "")

    def test_what_is_the_parents_cannot_be_used(self):
        self.run_child(
            """
            for use in (
                lambda: total(borrowed),
                lambda: client.call(nssi.Service(peer, PROGRAM, VERSION), 1),
                lambda: client.connect("shm://x"),
                lambda: client.allocate(10),
                lambda: client.register(bytes(10), nssi.Rights.REMOTE_READ),
                lambda: asyncio.run(await_one()),
                lambda: asyncio.run(asyncio.wait_for(blocked, 5)),
                client.start_progress,
                blocked.test,
                blocked.wait,
                blocked.result,
                over.result,
                borrowed.unregister,
                serving.runtime.run,
                serving.runtime.stop,
            ):
                try:
                    use()
                except nessie.InvalidArgument as error:
                    assert "open one here" in error.message, error
                else:
                    os._exit(1)
            """,
            A_CALL_THAT_IS_OVER,
        )

    def test_a_child_may_open_its_own(self):
        errors = self.run_child(
            """
            with nssi.Runtime.open(transports=["shm"], listen=False) as own:
                at = own.connect(serving.runtime.url)
                assert total(own.register(b"abc", nssi.Rights.REMOTE_READ), own, at) == sum(b"abc")
                own.start_progress()
                grandchild = fork()
                if grandchild == 0:
                    sys.exit(0)
                assert succeeded(grandchild)
                assert total(own.register(b"abc", nssi.Rights.REMOTE_READ), own, at) == sum(b"abc")
            """
        )
        self.assertEqual(errors, "")

    def test_a_process_of_multiprocessing_ends(self):
        self.run_script(
            """
            asyncio.run(await_one())
            process = multiprocessing.get_context("fork").Process(target=gc.collect)
            process.start()
            process.join(60)
            assert process.exitcode == 0, process.exitcode
            check_parent()
            """
        )

    def test_a_handler_that_forks_answers_once(self):
        self.run_script(
            """
            status = client.call_and_wait(nssi.Service(peer, PROGRAM, VERSION), 2, timeout=60)
            assert int.from_bytes(status, "big") == 0
            check_parent()
            """
        )

    def test_a_child_that_leaves_the_handler_it_was_forked_in_ends(self):
        for op in (3, 4):
            errors = self.run_script(
                f"""
                def leave(how):
                    answer = client.call_and_wait(nssi.Service(peer, PROGRAM, VERSION), {op}, how, timeout=60)
                    return os.waitstatus_to_exitcode(int.from_bytes(answer, "big"))
                assert [leave(how) for how in (b"return", b"exit", b"raise")] == [1, 7, 1]
                check_parent()
                """
            )
            self.assertEqual(errors.count("os._exit()"), 1, errors)
            self.assertIn(f"forked in the handler of operation {op} (leave) ends as it returns", errors)
            self.assertEqual(errors.count("KeyError: 'in the child'"), 1, errors)

    def test_what_the_parent_announced_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "a.contact")
            self.run_script(
                f"""
                serving.runtime.announce("file:{place}")
                child = fork()
                if child == 0:
                    del serving
                    gc.collect()
                    sys.exit(0)
                assert succeeded(child)
                assert os.path.exists("{place}")
                check_parent()
                """
            )
            self.assertEqual(os.listdir(folder), [], "its parent has withdrawn it")


if __name__ == "__main__":
    unittest.main()
