# SPDX-License-Identifier: BSD-3-Clause
"""The programs of package pnetcdf-bin, which nobody here wrote, natively and under `nessie run`."""
import shutil
import unittest

from harness import ProcessTestCase, mpiexec, read_file

CDL = """netcdf sample {
dimensions:
  x = 7 ; y = 5 ; time = UNLIMITED ;
variables:
  double temperature(time, y, x) ;
    temperature:units = "K" ;
    temperature:_FillValue = -1. ;
  int count(y) ;
  float grid(y, x) ;
  char name(x) ;
  short level(time) ;
  :title = "a sample" ;
data:
  count = 1, 2, 3, 4, 5 ;
  grid = %s ;
  name = "nessie" ;
  temperature = %s ;
  level = 10, 20, 30 ;
}
"""

MODES = [(mode, servers) for mode in ("direct", "caching") for servers in (1, 2)]


def numbers(count):
    return ", ".join(str(i * 0.5) for i in range(count))


@unittest.skipUnless(shutil.which("ncmpigen"), "ncmpigen is missing: apt-get install pnetcdf-bin")
class PnetcdfTools(ProcessTestCase):
    def setUp(self):
        super().setUp()
        with open(self.path("sample.cdl"), "w") as file:
            file.write(CDL % (numbers(35), numbers(105)))

    def native(self, command):
        code, out, err = self.run_command(command)
        self.assertEqual(code, 0, err)
        return out

    def staged(self, command, mode, servers):
        code, out, err = self.nessie_run(command, ["--mode", mode, "--servers", str(servers)])
        self.assertEqual(code, 0, err)
        return out, err

    def test_ncmpigen_makes_the_same_file(self):
        for version in ("1", "2", "5"):
            self.native(["ncmpigen", "-v", version, "-o", self.path("native.nc"), self.path("sample.cdl")])
            for mode, servers in MODES:
                with self.subTest(version=version, mode=mode, servers=servers):
                    target = self.path(f"{mode}{servers}-{version}.nc")
                    self.staged(["ncmpigen", "-v", version, "-o", target, self.path("sample.cdl")], mode, servers)
                    self.assertEqual(read_file(target), read_file(self.path("native.nc")))
        self.assert_nothing_left()

    def test_ncmpidump_prints_the_same_text(self):
        self.native(["ncmpigen", "-o", self.path("native.nc"), self.path("sample.cdl")])
        text = self.native(["ncmpidump", self.path("native.nc")])
        for mode, servers in MODES:
            with self.subTest(mode=mode, servers=servers):
                self.assertEqual(self.staged(["ncmpidump", self.path("native.nc")], mode, servers)[0], text)
        self.assert_nothing_left()

    def test_ncmpidiff_finds_the_same(self):
        self.native(["ncmpigen", "-o", self.path("a.nc"), self.path("sample.cdl")])
        with open(self.path("other.cdl"), "w") as file:
            file.write((CDL % (numbers(35), numbers(105))).replace("1, 2, 3, 4, 5", "1, 2, 9, 4, 5"))
        self.native(["ncmpigen", "-o", self.path("b.nc"), self.path("other.cdl")])
        for other in ("a.nc", "b.nc"):
            command = mpiexec(2, "ncmpidiff", self.path("a.nc"), self.path(other))
            code, out, _ = self.run_command(command)
            for mode, servers in MODES:
                with self.subTest(other=other, mode=mode, servers=servers):
                    staged_code, staged_out, _ = self.nessie_run(command, ["--mode", mode, "--servers", str(servers)])
                    self.assertEqual((staged_code, sorted(staged_out.splitlines())), (code, sorted(out.splitlines())))
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
