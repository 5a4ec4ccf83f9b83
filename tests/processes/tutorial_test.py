# SPDX-License-Identifier: BSD-3-Clause
"""docs/tutorial.md: its files, as they stand there, are built against an installed Nessie; its commands print what it says.

All files lie in one folder, where the commands of each section run, in a shell of its own. A section may need what an
earlier one has built. A file is a block of code under a line that is its name: `folder/name`:
A block of ```console has commands, each after "$ ", and what they print, in which … stands for anything.
"""
import os
import re
import unittest

from harness import BUILD, ProcessTestCase

TUTORIAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/tutorial.md")
FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BUILDING_S = 400
ENDED = "@@@ next command"


def sections():
    """(title, text) of each."""
    with open(TUTORIAL, encoding="utf-8") as file:
        parts = re.split(r"^## (.*)\n", file.read(), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


def commands(text):
    """(command, expected output) of each, in their order."""
    found = []
    for block in CONSOLE.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def pattern_of(output):
    return re.compile("".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", output.strip())),
                      re.DOTALL)


class Tutorial(ProcessTestCase):
    def install(self):
        code, out, err = self.run_command(["cmake", "--install", BUILD, "--prefix", self.path("home/nessie")])
        self.assertEqual(code, 0, out + err)

    def write_files(self, folder, text):
        for name, content in FILE.findall(text):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content)

    def run_in(self, folder, wanted):
        """What each command printed, one shell carrying them all out."""
        script = "".join(f"{command}\necho; echo '{ENDED}'\n" for command, _ in wanted)
        with open(os.path.join(folder, "commands.sh"), "w", encoding="utf-8") as file:
            file.write(f"exec 2>&1\ncd '{folder}'\n{script}wait\n")
        job = self.job(["bash", os.path.join(folder, "commands.sh")],
                       env={"HOME": self.path("home"), "CMAKE_BUILD_PARALLEL_LEVEL": "2"})
        code, out, err = job.finish(BUILDING_S)
        self.assertEqual(code, 0, out + err)
        return [part.strip() for part in out.split(ENDED)[:-1]]

    def test_does_what_it_says_in_every_language(self):
        self.install()
        folder = self.path("tutorial")
        texts = dict(sections())
        for text in texts.values():
            self.write_files(folder, text)
        languages = [title for title, text in texts.items() if commands(text)]
        self.assertLessEqual({"In C++", "In C", "In Fortran", "In Python"}, set(languages))
        for title in languages:
            with self.subTest(title):
                wanted = commands(texts[title])
                for (command, output), printed in zip(wanted, self.run_in(folder, wanted), strict=True):
                    self.assertTrue(pattern_of(output).fullmatch(printed), f"$ {command}\n{printed}")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
