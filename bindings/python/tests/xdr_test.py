# SPDX-License-Identifier: BSD-3-Clause
"""What nessie idl makes of golden.x in Python: its bytes, and what it refuses, are those of the C++."""
import random
import subprocess
import typing
import unittest

import awkward
import golden
import numpy
import same_names
from support import program

import nessie
from nessie import nssi, xdr

PEER = program("nessie_python_xdr_peer")


def peer(*arguments, text=None):
    return subprocess.run([PEER, *arguments], input=text, capture_output=True, text=True, check=True, timeout=100).stdout


def values_of_cpp(count):
    for line in peer("values", str(count)).splitlines():
        name, text = line.split(" ")
        yield name, bytes.fromhex(text)


def read(name, data):
    """The bytes encoded again; None: refused."""
    try:
        return getattr(golden, name).decode(data).encode()
    except nessie.BadMessage:
        return None


def mutant(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(3)):
        if data:
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 255, rng.randrange(256)))
    how = rng.randrange(8)
    if how == 0:
        del data[rng.randrange(len(data) + 1) :]
    elif how == 1:
        data += bytes(4)
    return bytes(data)


class Bytes(unittest.TestCase):
    def test_values_of_cpp_are_the_same_both_ways(self):
        names = set()
        for name, data in values_of_cpp(300):
            self.assertEqual(read(name, data), data)
            names.add(name)
        self.assertEqual(len(names), 7)

    def test_mutants_are_taken_and_refused_as_by_cpp(self):
        rng = random.Random(1)
        tried = [(name, mutant(rng, data)) for name, data in values_of_cpp(150) for _ in range(5)]
        answers = peer("judge", text="".join(f"{name} {data.hex()}\n" for name, data in tried)).splitlines()
        self.assertEqual(len(answers), len(tried))
        refused = 0
        for (name, data), answer in zip(tried, answers):
            again = read(name, data)
            self.assertEqual(answer, "refused" if again is None else f"{name} {again.hex()}", (name, data.hex()))
            refused += again is None
        self.assertGreater(refused, 500)
        self.assertGreater(len(tried) - refused, 500)

    def test_a_point_has_the_golden_bytes(self):
        data = golden.point(-2, 1.5, -0.25).encode()
        self.assertEqual(data.hex(), "fffffffe3fc00000bfd0000000000000")
        self.assertEqual(golden.point.decode(data), golden.point(x=-2, y=1.5, z=-0.25))

    def test_bytes_of_a_string_that_are_no_utf8_stay(self):
        title = golden.title
        self.assertEqual(title.encode(title.decode(b"\0\0\0\1\xff\0\0\0")), b"\0\0\0\1\xff\0\0\0")
        self.assertEqual(title.decode(title.encode("Größe")), "Größe")


class Rules(unittest.TestCase):
    def value(self):
        return golden.everything(c=golden.color.RED)

    def assert_no_value(self, value):
        with self.assertRaises(nessie.InvalidArgument):
            value.encode()

    def test_what_breaks_the_interface_is_not_encoded(self):
        self.assert_no_value(golden.everything(c=7))
        for name, wrong in {
            "bounded": "eight...", "titles": [""] * 4, "few": b"123456", "key": b"short", "corners": [golden.point()],
            "u": -1, "i": 1 << 31, "h": 1.5, "b": 2, "c": 7, "text": b"bytes", "maybe": 3, "blob": "text", "f": 1e39,
            "places": [1 << 63], "numbers": [1, 2, 3], "many": [None], "titles": 5,
        }.items():
            with self.subTest(name):
                value = self.value()
                setattr(value, name, wrong)
                self.assert_no_value(value)
        self.value().encode()

    def test_arrays_take_what_numpy_makes_integers_of(self):
        value = self.value()
        for places in ([1, -2], (1, -2), numpy.array([1, -2], "int8"), numpy.array([1, 0, -2])[::2], range(1, -3, -3)):
            value.places = places
            self.assertEqual(list(golden.everything.decode(value.encode()).places), [1, -2])
        for wrong in ([1.5], numpy.zeros((2, 2), int), ["1"], [1 << 70]):
            value.places = wrong
            self.assert_no_value(value)

    def test_arrays_of_floats_are_rounded_and_refused_if_they_do_not_fit(self):
        floats = xdr.Vector(xdr.FLOAT)
        self.assertEqual(list(floats.decode(floats.encode([0.1, numpy.inf]))), [numpy.float32(0.1), numpy.inf])
        for wrong in ([1e300], [-1e39, 0]):
            with self.assertRaises(nessie.InvalidArgument):
                floats.encode(wrong)
            with self.assertRaises(nessie.InvalidArgument):
                xdr.FLOAT.encode(wrong[0])

    def test_an_enum_without_a_zero_must_be_set(self):
        self.assertIsNone(golden.everything().c)
        self.assert_no_value(golden.everything())
        self.assertIs(golden.arms().at, golden.step.READY)

    def test_a_union_begins_with_its_first_arm_and_holds_what_it_says(self):
        value = golden.number()
        self.assertEqual((value.kind, value.small, value.large), (-1, 0, None))
        value.select(3)
        self.assertEqual(value.words, "")
        value.arm = "three"
        self.assertEqual(golden.number.decode(value.encode()), value)
        self.assertEqual(golden.number(77, b"x").raw, b"x")
        value.kind = 2  # behind its back
        self.assert_no_value(value)
        with self.assertRaises(nessie.InvalidArgument):
            golden.answer(7)

    def test_a_chain_of_many_is_read_and_dropped_without_recursion(self):
        links = 100_000
        link = b"\0\0\0\7\0\0\0\0"
        data = (link + b"\0\0\0\1") * (links - 1) + link + bytes(4)
        first = golden.node.decode(data)
        self.assertEqual(first.encode(), data)
        del first

    def test_a_tree_that_is_too_deep_is_refused(self):
        with self.assertRaises(nessie.BadMessage):
            golden.tree.decode(b"\0\0\0\0\0\0\0\1" * 100_000)
        value = golden.tree()
        for _ in range(5000):
            value = golden.tree(children=[value])
        self.assert_no_value(value)

    def test_a_count_costs_nothing_before_its_bytes_are_there(self):
        for codec in (golden.offsets, golden.keys, xdr.Opaque(), xdr.String(), xdr.Vector(golden.node)):
            with self.assertRaisesRegex(nessie.BadMessage, "a count is larger than the rest"):
                codec.decode(b"\xff\xff\xff\xff")

    def test_an_error_says_where_it_is(self):
        with self.assertRaisesRegex(nessie.BadMessage, "at byte 8, bytes follow the end"):
            golden.title.decode(b"\0\0\0\1a\0\0\0\0\0\0\0")


class Names(unittest.TestCase):
    def test_names_that_python_keeps_get_an_underscore(self):
        value = awkward.def_(awkward.color.name_, [awkward.color.lambda_], 3, [1, 2])
        self.assertEqual(value.list_, 3)
        value.decode_ = awkward.def_()
        self.assertEqual(awkward.def_.decode(value.encode()), value)
        union = awkward.class_(awkward.color.lambda_, "text")
        self.assertEqual(awkward.class_.decode(union.encode()).encode_, "text")
        self.assertEqual(awkward.class_().arm, awkward.def_())

    def test_stubs_keep_their_own_names(self):
        version = awkward.import_.pass_
        self.assertEqual((version.try_, version.add_to_, version.Client_), (1, 2, 3))
        self.assertTrue(callable(version.Client.Client_) and callable(version.Server.add_to))

    def test_names_that_would_become_others_stay_apart(self):
        value = same_names.use(same_names.def__(1), same_names.def_(2), class__=3, class_=4, x__hidden=5)
        self.assertEqual(value.encode(), bytes.fromhex("00000001 0000000000000002 00000003 00000004 00000005"))
        self.assertEqual(same_names.use.decode(value.encode()), value)
        color = same_names.color
        self.assertEqual([(it.name, it.value) for it in color], [("x_first", 1), ("value__", 2), ("value_", 3), ("name_", 4)])
        union = same_names.class_(color.value_, 1 << 40)
        self.assertEqual((union.select_, union.from__, union.from_), (color.value_, None, 1 << 40))

    def test_procedures_that_would_become_others_stay_apart(self):
        version = same_names.P.class__
        self.assertEqual((version.VERSION, version.FIND, version.FIND_async, version.x__find), (1, 1, 2, 3))
        hints = {name: typing.get_type_hints(getattr(version.Client, name))["return"]
                 for name in ("FIND", "FIND_async", "FIND_async_", "FIND_async_async")}
        self.assertEqual(list(hints.values()), [int, str, nssi.Future[int], nssi.Future[str]])
        for version in (same_names.P.class__, same_names.P.class_, same_names.P.PROGRAM_, same_names.P.class_pass):
            self.assertEqual((version.Client.INTERFACE.program, version.Client.INTERFACE.version), (7, version.VERSION))
            for it in version.Client.INTERFACE.procedures:
                self.assertTrue(callable(getattr(version.Server, it.name)))
        self.assertEqual((same_names.P.PROGRAM, same_names.P_class.pass_.Client.INTERFACE.program), (7, 8))


class Speed(unittest.TestCase):
    def test_arrays_of_numbers_are_those_of_numpy(self):
        array = numpy.arange(1 << 18, dtype="int64") * -3
        data = golden.offsets.encode(array)
        self.assertEqual(data[4:], array.astype(">i8").tobytes())
        back = golden.offsets.decode(data)
        self.assertEqual(back.dtype, numpy.dtype("int64"))
        self.assertTrue(back.flags.writeable)
        self.assertTrue(numpy.array_equal(back, array))


if __name__ == "__main__":
    unittest.main()
