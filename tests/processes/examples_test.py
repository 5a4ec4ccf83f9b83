# SPDX-License-Identifier: BSD-3-Clause
"""examples/{rpc,bulk,nnti,idl,service,streams}: the commands at the head of each file print what it says there.

They run in a shell, in a folder that has the topic's files and, as `build`, its programs. A head is the file's first
comment; a command begins with "$ ", goes on in the next line after a "\\", and is followed by what it prints.
"""
import os
import re
import unittest

from harness import BUILD, ProcessTestCase
from sessions import ON_THIS_NODE, run_session, session_of

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
SUFFIXES = (".c", ".cpp", ".f90", ".py")
HAS_PYTHON = os.path.isdir(os.path.join(BUILD, "lib", "python"))


def head_of(path):
    """The lines of the file's first comment that are indented in it."""
    lines = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = re.match(r"(?://| \*|!|)   +(.*)$", line)
            if found:
                lines.append(found[1])
            elif line.strip() and not re.match(r"//|/\*| \*|!|#|\"\"\"", line):
                break
    return "\n".join(lines)


class Examples(ProcessTestCase):
    def prepare(self, topic):
        """A folder as a user has it who has built the topic in it."""
        folder = self.path(topic)
        os.makedirs(os.path.join(folder, "build"))
        source, built = os.path.join(EXAMPLES, topic), os.path.join(BUILD, "examples", topic)
        for name in os.listdir(source):
            os.symlink(os.path.join(source, name), os.path.join(folder, name))
        for name in os.listdir(built):
            os.symlink(os.path.join(os.path.abspath(built), name), os.path.join(folder, "build", name))
        return folder

    def check(self, topic):
        source = os.path.join(EXAMPLES, topic)
        heads = {name: session_of(head_of(os.path.join(source, name)))
                 for name in sorted(os.listdir(source)) if name.endswith(SUFFIXES)}
        sessions = {name: session for name, session in heads.items() if session}
        self.assertTrue(sessions)
        env = {"PATH": os.path.join(BUILD, "bin") + ":" + os.environ["PATH"],
               "PYTHONPATH": os.path.join(BUILD, "lib", "python"), **ON_THIS_NODE}
        folder = self.prepare(topic)
        for name, session in sessions.items():
            if name.endswith(".py") and not HAS_PYTHON:
                continue
            with self.subTest(topic + "/" + name):
                run_session(self, folder, session, env)
        self.assert_nothing_left()


for each in ("rpc", "bulk", "nnti", "idl", "service", "streams"):
    setattr(Examples, "test_" + each, lambda self, topic=each: self.check(topic))

if __name__ == "__main__":
    unittest.main()
