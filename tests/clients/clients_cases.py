# SPDX-License-Identifier: BSD-3-Clause
"""The public programs that clients.py runs: how each is found, called, and says how fast its input and output were."""
import os
import re
from dataclasses import dataclass
from typing import Optional

DEPTH = 6   # of folders below the one that was named
NUMBER = r"([\d.]+)"


@dataclass(frozen=True)
class Case:
    """One way to call a program.

    `words`, `settings`: may name {out}, an empty folder for the program's files, and the words also {settings}, a file with
    `settings` in it, and {data}, the file called `data` that came with the program. `rate`: what the program prints matches
    it once for each of `labels`, in that order; its group is in MiB/s.
    """
    name: str
    executable: str
    processes: int
    words: tuple
    rate: str
    labels: tuple = ("",)
    settings: Optional[str] = None
    data: Optional[str] = None
    complaint: Optional[str] = None   # what the program prints, and ends with 0, when it reads back what is wrong

    def command(self, found, out, settings_path):
        """`found`: from find(). The words behind `mpiexec`'s."""
        names = {"out": out, "settings": settings_path, "data": found.get(self.data)}
        return [found[self.executable], *(word.format(**names) for word in self.words)]

    def rates(self, printed):
        """{label: MiB/s}; None for what was not printed, or as stars because it did not fit."""
        matches = re.findall(self.rate, printed, re.MULTILINE)
        values = [to_rate(text) for text in matches[:len(self.labels)]]
        return dict(zip(self.labels, values + [None] * (len(self.labels) - len(values))))

    def needs(self):
        return [self.executable] + ([self.data] if self.data else [])


def to_rate(text):
    try:
        return float(text)
    except ValueError:
        return None


def s3d(name, grid, layout, method):
    size, (x, y, z) = str(grid), layout
    return Case(f"s3d {name}", "s3d_io.x", x * y * z,
                (size, size, size, str(x), str(y), str(z), str(method), "F", "{out}"),
                rf"^ *I/O +bandwidth +: +{NUMBER} MiB/s")


def ior(name, *flags):
    return Case(f"ior {name}", "ior", 8,
                ("-a", "NCMPI", *flags, "-t", "1m", "-b", "32m", "-w", "-r", "-R", "-k", "-G", "1234", "-o", "{out}/ior.nc"),
                rf"^(?:write|read) +{NUMBER}", ("write", "read"), complaint="Incorrect data on")


def btio(name, method):
    return Case(f"btio {name}", "btio", 4, ("{settings}",), rf"^ *I/O bandwidth +:? +{NUMBER} MiB/s",
                settings=f"w\n{method}\n20\n64 64 64\n{{out}}\n")


def e3sm(letter, *labels):
    return Case(f"e3sm {letter.upper()}", "e3sm_io", 8, ("-k", "-o", f"{{out}}/{letter}.nc", "{data}"),
                rf"^I/O bandwidth in MiB/sec \(open-to-close\) += {NUMBER}", labels, data=f"map_{letter}_case_16p.nc")


def flash(name, *flags):
    return Case(f"flash {name}", "flash_benchmark_io", 8, (*flags, "-f", "{out}/flash."),
                rf"^ *\d+ +\d+ x +\d+ x +\d+ +[\d.]+ +{NUMBER}")


def benchmark(executable, rate, labels, *flags):
    return Case(executable, executable, 8, (*flags, "{out}/" + executable + ".nc"), rate, labels)


WRITE_AND_READ = rf"^(?:Write|Read) +bandwidth +[:=] +{NUMBER} MiB/s"
CASES = (
    s3d("64^3 blocking", 64, (2, 2, 2), 0),
    s3d("64^3 nonblocking", 64, (2, 2, 2), 1),
    s3d("128^3 blocking", 128, (2, 2, 2), 0),
    s3d("64^3 alone", 64, (1, 1, 1), 0),
    ior("collective", "-c"),
    ior("independent"),
    btio("blocking", 2),
    btio("nonblocking", 3),
    e3sm("f", "h0", "h1"),
    e3sm("g", ""),
    e3sm("i", "h0", "h1"),
    flash("nonblocking"),
    flash("blocking", "-b"),
    benchmark("aggregation", WRITE_AND_READ, ("write", "read"), "-l", "256"),
    benchmark("write_block_read_column", WRITE_AND_READ, ("write", "read"), "-l", "512"),
    benchmark("pnetcdf_put_vara", rf"open-to-close time:.*\nWrite bandwidth: +{NUMBER} MiB/s", ("",), "-l", "512", "-t", "4"),
)


def wanted(name, patterns):
    """Whether a case called `name` is to run: it has one of the patterns in it, or there is none."""
    return not patterns or any(pattern.lower() in name.lower() for pattern in patterns)


def walk(folder):
    """(depth, folder, names of files), those nearest to the top first."""
    level = [folder]
    for _ in range(DEPTH + 1):
        below = []
        for place in level:
            with os.scandir(place) as entries:
                known = sorted(entries, key=lambda entry: entry.name)
            yield place, [entry.name for entry in known if entry.is_file()]
            below += [entry.path for entry in known if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")]
        level = below


def find(folder, cases=CASES):
    """{name: path} of what the cases need and is somewhere below `folder`; executables are files that may be executed."""
    executables = {case.executable for case in cases}
    names = {name for case in cases for name in case.needs()}
    found = {}
    for place, files in walk(folder):
        for name in names.intersection(files) - found.keys():
            path = os.path.join(place, name)
            if name not in executables or os.access(path, os.X_OK):
                found[name] = path
    return found
