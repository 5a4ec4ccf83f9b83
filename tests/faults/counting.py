# SPDX-License-Identifier: BSD-3-Clause
"""One process of a test is killed, or stopped, just before one of its calls that others can see (steps/steps.c)."""
import mmap
import os
import re
import struct
import subprocess

from harness import read_file

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps", "steps.c")


def build_library(path):
    """What is preloaded into the processes of the test."""
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", "-o", path, SOURCE,
                    "-ldl"], check=True)


class Counting:
    """The file by which the library is told whom to count, and tells what it did (struct counting in steps.c)."""
    HEAD, CALL, CALLS = struct.Struct("64s64s64s64s64sqqqq"), 64, 16384

    def __init__(self, path, words, kill_at=0, stops=False):
        """`words`: of struct counting, up to five. `kill_at`: 0: none. `stops`: is stopped there, not killed."""
        self.path = path
        words = [*words, "", "", "", ""][:5]
        with open(path, "wb") as file:
            file.write(self.HEAD.pack(*(word.encode() for word in words), kill_at, stops, 0, 0))
            file.truncate(self.HEAD.size + self.CALL * self.CALLS)

    def steps(self):
        with open(self.path, "rb") as file:
            return self.HEAD.unpack(file.read(self.HEAD.size))[-1]

    def folders(self):
        """Of its run, in shared memory, as far as its calls name them."""
        return {name.decode() for name in re.findall(rb"/dev/shm/nessie-[0-9A-Za-z]{6}", read_file(self.path))}

    def call(self, step):
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            at = self.HEAD.size + self.CALL * (step - 1)
            return memory[at:at + self.CALL].split(b"\0")[0].decode(errors="replace")
