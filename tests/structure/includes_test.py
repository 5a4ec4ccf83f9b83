# SPDX-License-Identifier: BSD-3-Clause
"""Files include each other in one direction: no circle among units (a source with its header), nor among folders."""
import graphlib
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def sources():
    return {path.relative_to(ROOT) for room in ("src", "include") for path in (ROOT / room).rglob("*")
            if path.suffix in (".c", ".h", ".cpp", ".hpp")}


def included(path, files):
    """Those of `files` that it includes."""
    for name in INCLUDE.findall((ROOT / path).read_text(errors="replace")):
        places = (path.parent / name, pathlib.Path("src", name), pathlib.Path("include", name))
        yield from [place for place in places if place in files][:1]


def stands_above(path):
    """A test, what tests use, or a program's main(): it brings together what lies beside and below it."""
    return re.search(r"_(test|fuzz|main)\.|testing|/conformance/", str(path)) is not None


def circle_in(graph):
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


class Includes(unittest.TestCase):
    def setUp(self):
        files = sources()
        self.pairs = [(path, other) for path in files for other in included(path, files)]

    def check(self, group, pairs):
        """`group`: what a file is part of."""
        graph = {}
        for path, other in pairs:
            if group(path) != group(other):
                graph.setdefault(group(path), set()).add(group(other))
        circle = circle_in(graph)
        self.assertFalse(circle, " is included by ".join(map(str, circle)))

    def test_units_have_no_circle(self):
        self.check(lambda path: path.with_suffix(""), self.pairs)

    def test_folders_have_no_circle(self):
        self.check(lambda path: path.parent, [pair for pair in self.pairs if not stands_above(pair[0])])


if __name__ == "__main__":
    unittest.main()
