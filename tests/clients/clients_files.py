# SPDX-License-Identifier: BSD-3-Clause
"""Compares the files of a run with those of several native runs, but for the bytes that these do not agree on."""
import os
from dataclasses import dataclass

import numpy as np

CHUNK_BYTES = 16 << 20
MOST_LEFT_OUT = 0.1   # of all bytes: where the native runs disagree on more, a comparison says nothing


@dataclass
class Verdict:
    """`said`: "same", "differ: …" or "cannot tell: …"."""
    said: str
    left_out_bytes: int = 0

    @property
    def is_same(self):
        return self.said == "same"


def sizes_below(folder):
    """{name relative to `folder`: bytes} of all files below it."""
    paths = [os.path.join(base, name) for base, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(path, folder): os.path.getsize(path) for path in paths}


def chunks(*paths):
    """Arrays of the bytes of each of the files, which are equally long, piece by piece."""
    files = [open(path, "rb") for path in paths]
    try:
        while True:
            pieces = [np.frombuffer(file.read(CHUNK_BYTES), np.uint8) for file in files]
            if not len(pieces[0]):
                return
            yield pieces
    finally:
        for file in files:
            file.close()


class Reference:
    """The files of one native run, and which of their bytes other native runs wrote otherwise."""

    def __init__(self, folder):
        """`folder` is borrowed, and must stay as it is."""
        self.folder = folder
        self.sizes = sizes_below(folder)
        self.left_out = {}   # (name, number of the piece): which of its bytes, eight to a byte
        self.disagreement = None if self.sizes else "the native runs left no file"

    def differences(self, folder):
        """(name, number of the piece, array that says which of its bytes differ) of every piece that does."""
        for name in sorted(self.sizes):
            pairs = chunks(os.path.join(self.folder, name), os.path.join(folder, name))
            for number, (ours, theirs) in enumerate(pairs):
                if not np.array_equal(ours, theirs):
                    yield name, number, ours != theirs

    def add(self, folder):
        """Another native run's files: from now on bytes that differ there are left out."""
        if sizes_below(folder) != self.sizes:
            self.disagreement = "native runs left files of other names or lengths"
            return
        for name, number, differs in self.differences(folder):
            before = self.left_out.get((name, number), np.zeros(0, np.uint8))
            packed = np.packbits(differs)
            self.left_out[name, number] = packed | before if len(before) else packed

    def left_out_bytes(self):
        return sum(int(np.unpackbits(packed).sum()) for packed in self.left_out.values())

    def compare(self, folder):
        left_out = self.left_out_bytes()
        if self.disagreement:
            return Verdict(f"cannot tell: {self.disagreement}")
        if left_out > MOST_LEFT_OUT * sum(self.sizes.values()):
            return Verdict("cannot tell: too many bytes differ between native runs", left_out)
        return Verdict(self.first_difference(folder) or "same", left_out)

    def first_difference(self, folder):
        sizes = sizes_below(folder)
        for name in sorted(self.sizes.keys() | sizes.keys()):
            if self.sizes.get(name) != sizes.get(name):
                return f"differ: {name} has {sizes.get(name, 'no')} bytes, natively {self.sizes.get(name, 'no')}"
        for name, number, differs in self.differences(folder):
            if (name, number) in self.left_out:
                differs &= ~np.unpackbits(self.left_out[name, number], count=len(differs)).astype(bool)
            if differs.any():
                return f"differ: {name} at {number * CHUNK_BYTES + int(differs.argmax())}"
        return None
