# SPDX-License-Identifier: BSD-3-Clause
"""nessie idl: what it writes, what it refuses, and what it leaves alone."""
import os
import unittest

from harness import NESSIE, ProcessTestCase

GOOD = "struct point { int x; int y; };\n"
PROGRAM = "program P { version V { int ADD(int, int) = 1; } = 1; } = 1;\n"
BAD = "struct point {\n  int x;\n  quadruple y;\n};\n"


class Idl(ProcessTestCase):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)
        return self.path(name)

    def idl(self, *arguments):
        return self.run_command([NESSIE, "idl", *arguments])

    def test_writes_a_header_beside_others(self):
        source = self.write("shapes.x", GOOD)
        os.mkdir(self.path("out"))
        code, out, err = self.idl(source, "--out", self.path("out"))
        self.assertEqual((code, out, err), (0, "", ""))
        self.assertEqual(os.listdir(self.path("out")), ["shapes.hpp"])
        with open(self.path("out/shapes.hpp"), encoding="ascii") as file:
            text = file.read()
        self.assertIn("namespace shapes {", text)
        self.assertIn("struct point {", text)

    def test_what_has_not_changed_is_left_so_that_nothing_is_compiled_anew(self):
        source, made = self.write("shapes.x", GOOD), self.path("shapes.hpp")
        for text, is_written in ((GOOD, True), (GOOD + "/* the same types */\n", False), (GOOD + "typedef int n;\n", True)):
            self.write("shapes.x", text)
            if os.path.exists(made):
                os.utime(made, (1, 1))
            self.assertEqual(self.idl(source, "--out", self.path(".")), (0, "", ""))
            self.assertEqual(os.stat(made).st_mtime != 1, is_written)

    def test_a_program_has_stubs_of_its_own(self):
        self.assertEqual(self.idl(self.write("sums.x", PROGRAM), "--out", self.path(".")), (0, "", ""))
        with open(self.path("sums_rpc.hpp"), encoding="ascii") as file:
            self.assertIn("namespace sums::P::V {", file.read())
        os.mkdir(self.path("c"))
        self.assertEqual(self.idl(self.path("sums.x"), "--out", self.path("c"), "--language", "c"), (0, "", ""))
        self.assertEqual(sorted(os.listdir(self.path("c"))), ["sums.h", "sums_rpc.c", "sums_rpc.h", "sums_xdr.c"])

    def test_writes_what_the_languages_are_made_of(self):
        source = self.write("shapes.x", GOOD)
        for languages, files in ((["c"], ["shapes.h", "shapes_xdr.c"]),
                                 (["python"], ["shapes.py"]),
                                 (["cpp,c"], ["shapes.h", "shapes.hpp", "shapes_xdr.c"]),
                                 (["c", "cpp"], ["shapes.h", "shapes.hpp", "shapes_xdr.c"])):
            folder = self.path("-".join(languages))
            os.mkdir(folder)
            options = [word for language in languages for word in ("--language", language)]
            self.assertEqual(self.idl(*options, source, "--out", folder), (0, "", ""))
            self.assertEqual(sorted(os.listdir(folder)), files)
        self.assertEqual(self.idl("--language", "cobol", source, "--out", self.path("."))[0], 2)

    def test_a_module_for_python_can_be_imported(self):
        for name in ("my-service.x", "1.5.x"):
            self.assertEqual(self.idl("--language", "python", self.write(name, GOOD), "--out", self.path(".")), (0, "", ""))
        self.assertTrue(os.path.exists(self.path("my_service.py")))
        self.assertTrue(os.path.exists(self.path("_1_5.py")))
        for name, why in (("nessie", "would hide the package 'nessie'"), ("class", "a word of its own")):
            code, out, err = self.idl("--language", "python", self.write(name + ".x", GOOD), "--out", self.path("."))
            self.assertEqual((code, out), (1, ""))
            self.assertIn(f"{name}.x: error: ", err)
            self.assertIn(why, err)
            self.assertFalse(os.path.exists(self.path(name + ".py")))

    def test_a_type_that_is_too_large_for_fortran_has_its_place(self):
        source = self.write("large.x", "typedef opaque half[1073741824];\nstruct whole { half a; half b; };\n")
        code, out, err = self.idl("--language", "fortran", source, "--out", self.path("."))
        self.assertEqual((code, out), (1, ""))
        self.assertIn(source + ":2:8: error: 'whole' has more bytes than a type may have in Fortran", err)
        self.assertFalse(os.path.exists(self.path("large.f90")))

    def test_a_fault_has_its_place_and_changes_nothing(self):
        source = self.write("shapes.x", BAD)
        self.write("shapes.hpp", "what was there")
        code, out, err = self.idl(source, "--out", self.path("."))
        self.assertEqual((code, out), (1, ""))
        self.assertIn(source + ":3:3: error: quadruple is not supported", err)
        self.assertIn("\n      quadruple y;\n      ^", err)
        with open(self.path("shapes.hpp"), encoding="ascii") as file:
            self.assertEqual(file.read(), "what was there")

    def test_the_other_files_are_compiled_all_the_same(self):
        bad, good = self.write("bad.x", BAD), self.write("good.x", GOOD)
        self.assertEqual(self.idl(bad, good, "--out", self.path("."))[0], 1)
        self.assertTrue(os.path.exists(self.path("good.hpp")))
        self.assertFalse(os.path.exists(self.path("bad.hpp")))

    def test_no_file_is_lost_for_another_one(self):
        os.mkdir(self.path("other"))
        for first, second, lost in (("shapes.x", "other/shapes.x", "shapes.hpp"), ("sums.x", "sums_rpc.x", "sums_rpc.hpp")):
            sources = self.write(first, PROGRAM), self.write(second, GOOD)
            code, out, err = self.idl(*sources, "--out", self.path("."))
            self.assertEqual((code, out), (1, ""))
            self.assertIn(f"{sources[1]}: error: {lost} is made of {sources[0]} already", err)
            with open(self.path(lost), encoding="ascii") as file:
                self.assertIn(f"by `nessie idl` from {first};", file.read())
        self.assertEqual(self.idl(sources[0], sources[0], "--out", self.path(".")), (0, "", ""))

    def test_what_one_language_cannot_say_is_refused_for_it(self):
        source = self.write("odd.x", "struct class { int a; };\nstruct class_ { int a; };\nconst EOF = 1;\n")
        for language, why in (("cpp", ":2:8: error: 'class_' is called class_ in C++, as 'class' of line 1 is"),
                              ("c", ":3:7: error: 'EOF' has a meaning of its own in C's headers")):
            code, out, err = self.idl("--language", language, source, "--out", self.path("."))
            self.assertEqual((code, out), (1, ""))
            self.assertIn(source + why, err)
        of_libtirpc = self.write("taken.x", "struct mine { int a; };\ntypedef mine array<>;\n")
        code, out, err = self.idl("--language", "c", of_libtirpc, "--out", self.path("."))
        self.assertEqual((code, out), (1, ""))
        self.assertIn(of_libtirpc + ":2:14: error: in C, libtirpc has an xdr_array of its own: rename 'array'", err)
        self.assertFalse(os.path.exists(self.path("odd.hpp")) or os.path.exists(self.path("odd.h")))
        self.assertEqual(self.idl("--language", "python,fortran", source, "--out", self.path(".")), (0, "", ""))

    def test_says_what_it_needs(self):
        code, _, err = self.idl(self.path("missing.x"), "--out", self.path("."))
        self.assertEqual(code, 1)
        self.assertIn("missing.x: error: cannot be read: No such file", err)
        code, _, err = self.idl(self.path("."), "--out", self.path("."))
        self.assertEqual(code, 1)
        self.assertIn("error: cannot be read: Is a directory", err)
        code, _, err = self.idl(self.write("1-2.x", GOOD), "--out", self.path("."))
        self.assertEqual(code, 1)
        self.assertIn("choose one with --namespace", err)
        self.assertEqual(self.idl(self.path("1-2.x"), "--out", self.path("."), "--namespace", "a::b")[0], 0)
        self.assertEqual(self.idl(self.path("1-2.x"), "--out", self.path("."), "--language", "c")[0], 0)
        self.assertEqual(self.idl()[0], 2)


if __name__ == "__main__":
    unittest.main()
