# SPDX-License-Identifier: BSD-3-Clause
"""docs/tutorial.md: its commands, with an installed Nessie, print what it says; the code in it is that of examples/service.

One shell carries out all blocks of ```console, as sessions.py says. Every other block is a piece of an example's file.
"""
import os
import re
import unittest

from harness import BUILD, ProcessTestCase
from sessions import ON_THIS_NODE, run_session, session_of

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
SERVICE = os.path.join(ROOT, "examples", "service")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BUILDING_S = 400


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Tutorial(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.blocks = BLOCK.findall(text_of(os.path.join(ROOT, "docs", "tutorial.md")))

    def test_prints_what_it_says(self):
        session = session_of("".join(block for language, block in self.blocks if language == "console"))
        self.assertIn("build/counter_client_cpp", [command for command, _ in session])
        folder = self.path("nessie")   # its own, built
        for name, place in (("build", BUILD), ("examples", os.path.join(ROOT, "examples")), ("dev", "/bin/true")):
            os.makedirs(folder, exist_ok=True)
            os.symlink(os.path.abspath(place), os.path.join(folder, name))
        home = self.path("home")
        os.mkdir(home)
        run_session(self, folder, session, {"HOME": home, "CMAKE_BUILD_PARALLEL_LEVEL": "2", **ON_THIS_NODE}, BUILDING_S)
        self.assert_nothing_left()

    def test_shows_the_code_of_the_example(self):
        files = [text_of(os.path.join(SERVICE, name)) for name in os.listdir(SERVICE)]
        pieces = [block for language, block in self.blocks if language != "console"]
        self.assertTrue(pieces)
        for piece in pieces:
            self.assertTrue(any(piece in file for file in files), piece)


if __name__ == "__main__":
    unittest.main()
