# SPDX-License-Identifier: BSD-3-Clause
"""What type checkers are told: of the package, and of what is generated."""
import importlib
import importlib.util
import inspect
import os
import pkgutil
import subprocess
import sys
import tempfile
import textwrap
import typing
import unittest

import awkward
import fields
import golden
import same_names

import nessie
from nessie import nssi

MODULES = [importlib.import_module(it.name) for it in pkgutil.walk_packages(nessie.__path__, "nessie.")]
MODULES = [it for it in MODULES if it.__name__ != "nessie._core"] + [awkward, fields, golden, same_names]
#: Of the package, and of what was generated.
FOLDERS = [os.path.dirname(os.path.dirname(nessie.__file__)), os.path.dirname(golden.__file__)]


def functions_of(owner, module, seen):
    """The functions of a module or class that it defines itself, and those of its classes."""
    for each in vars(owner).values():
        each = getattr(each, "__func__", each)
        if id(each) in seen or getattr(each, "__module__", None) != module.__name__:
            continue
        seen.add(id(each))
        if inspect.isclass(each):
            yield from functions_of(each, module, seen)
        elif inspect.isfunction(each) and each.__code__.co_filename == module.__file__:
            yield each


def lacks(function):
    """The parameters that say no type, and "return"."""
    parameters = list(inspect.signature(function).parameters.values())
    wanted = [it.name for it in parameters if it.name not in ("self", "cls")]
    wanted += [] if function.__name__ == "__init__" or function.__name__ == "<lambda>" else ["return"]
    return [name for name in wanted if name not in function.__annotations__]


class Types(unittest.TestCase):
    def test_every_function_says_its_types(self):
        for module in MODULES:
            for function in functions_of(module, module, set()):
                if function.__name__ != "<lambda>":
                    self.assertEqual(lacks(function), [], f"{module.__name__}.{function.__qualname__}")

    def test_what_is_said_exists(self):
        for module in (awkward, fields, golden, same_names):
            for function in functions_of(module, module, set()):
                if not function.__qualname__.startswith("__create_fn__"):   # dataclasses' own
                    typing.get_type_hints(function)

    def test_a_member_that_is_called_as_a_type_does_not_hide_it(self):
        hints = typing.get_type_hints(awkward.def_)
        self.assertEqual((hints["color"], hints["xdr_"]), (awkward.color, list[awkward.color]))
        self.assertEqual(awkward.def_.__annotations__["xdr_"], "list[_type_color]")
        method = getattr(awkward, "import_").pass_.Client.color
        self.assertEqual(typing.get_type_hints(method)["return"], awkward.color)
        self.assertEqual(method.__annotations__["return"], "_type_color")

    def test_an_awaited_call_is_of_its_results_type(self):
        hints = typing.get_type_hints(nssi.Future.__await__)
        self.assertEqual(typing.get_args(hints["return"])[2], nssi.T)
        hints = typing.get_type_hints(fields.FIELDS.ONE.Client.MIRROR_async)
        self.assertEqual(hints["return"], nssi.Future[fields.tree])

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "there is no mypy")
    def test_mypy_finds_nothing(self):
        program = """
            import fields
            from nessie import nssi

            async def use(client: fields.FIELDS.ONE.Client, runtime: nssi.Runtime, service: nssi.Service) -> None:
                here: fields.tree = await client.MIRROR_async(fields.tree())
                there: fields.tree = client.MIRROR(fields.tree(1))
                name: int = client.ADD(here.value, there.value)
                raw: bytes = await runtime.call(service, 1)
                wrong: str = await client.ADD_async(name, len(raw))
        """
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "use.py")
            with open(path, "w") as file:
                file.write(textwrap.dedent(program))
            files = [path, *(it.__file__ for it in (awkward, fields, golden, same_names))]
            found = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, *files],
                env={**os.environ, "MYPYPATH": os.pathsep.join(FOLDERS)},
                capture_output=True,
                text=True,
            )
        self.assertEqual(found.stdout.count("error:"), 1, found.stdout + found.stderr)
        self.assertIn("Incompatible types in assignment", found.stdout)


if __name__ == "__main__":
    unittest.main()
