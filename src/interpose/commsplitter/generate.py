# SPDX-License-Identifier: BSD-3-Clause
"""Writes CommSplitter's entry points, from the functions that an MPI's header declares.

Every function of the MPI that is given a communicator gets an entry point. Those that can show the program one in
another way, and those that begin and end MPI, are written by hand (by_hand.c, life.c); a function of a kind that nobody
has thought of stops the build.

    entries.c      MPI_X and PMPI_X for each of them
    functions.h    their numbers and names, and native_X(): the MPI's own function
"""

import argparse
import os
import re
import subprocess
from dataclasses import dataclass

# In by_hand.c and life.c, as split_X.
BY_HAND = set("""
    Init Init_thread Initialized Finalize Finalized Pcontrol Abort
    Comm_free Comm_disconnect Comm_c2f Comm_f2c
    Comm_get_attr Attr_get Comm_create_keyval Keyval_create
    Comm_create_errhandler Errhandler_create Comm_set_errhandler Errhandler_set
    T_cvar_handle_alloc T_pvar_handle_alloc T_event_handle_alloc
    Session_init Session_finalize Group_from_session_pset Session_get_pset_info
""".split())

# Whose PMPI_X is another one, split_PMPI_X.
FOR_FORTRAN = {"Comm_f2c"}

# The MPI's own functions that are called besides.
CALLED = set("Comm_split Comm_rank Comm_size Comm_set_name Comm_get_parent Comm_group Comm_set_attr Comm_free_keyval "
             "Comm_get_errhandler Errhandler_free Errhandler_f2c Iallgather Ibarrier Test Info_set Type_f2c "
             "Query_thread".split())

# They give communicators, or take functions and objects, that the real MPI_COMM_WORLD never is among.
SHOW_NONE = re.compile(r"""Comm_get_parent | Comm_join | Comm_create_from_group | Intercomm_create_from_groups
    | (Type|Win)_create_keyval | (Win|File|Session)_create_errhandler | Grequest_start | Grequest_class_create | Op_create(_c)?
    | Register_datarep(_c)? | Session_(get_info|get_nth_pset|get_num_psets|set_errhandler|get_errhandler|
    call_errhandler|c2f|f2c|toint|fromint) | T_event_(register_callback|handle_free|set_dropped_handler) | T_\w+_get_info""", re.VERBOSE)
TELLING = re.compile(r"MPIX?_Comm\s*\*|MPI_Session\b|_function\b|\bobj_handle\b")


@dataclass
class Function:
    result: str
    name: str           # with its prefix: "MPI_Send"
    parameters: list    # as declared, e.g. "const int dims[]"
    index: int = -1

    @property
    def stem(self):
        return self.name.split("_", 1)[1]

    @property
    def kind(self):
        return self.name.split("_", 1)[0]      # MPI or MPIX

    @property
    def identifier(self):
        return self.stem if self.kind == "MPI" else "X_" + self.stem

    def is_variadic(self):
        return self.parameters[-1:] == ["..."]

    def named(self):
        return [p for p in self.parameters if p != "..."]

    def declaration(self, name):
        return f"{self.result} {name}({', '.join(self.parameters) or 'void'})"

    def arguments(self, around_communicators=None):
        names = []
        for parameter in self.named():
            name = name_of(parameter)
            names.append(f"{around_communicators}({name})" if around_communicators and is_communicator(parameter) else name)
        return ", ".join(names)

    def takes_communicator(self):
        return any(map(is_communicator, self.parameters))

    def tells(self):
        return any(map(TELLING.search, self.parameters)) or self.result == "MPI_Comm"


def name_of(parameter):
    return re.search(r"(\w+)\s*(\[[^\]]*\])*$", parameter).group(1)


def is_communicator(parameter):
    return re.fullmatch(r"MPI_Comm\s+\w+", parameter) is not None


# --- what the header declares ---------------------------------------------------------------------------------------------

def without_attributes(text):
    """Without what compilers are told in parentheses within parentheses."""
    out, at = [], 0
    for match in re.finditer(r"__attribute__\s*\(", text):
        if match.start() < at:
            continue
        out.append(text[at:match.start()])
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
    return "".join(out) + text[at:]


HEADERS = """#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
"""
# What an MPI's library exports beside functions for programs.
NO_FUNCTIONS = re.compile(r"\w+_(FN|FN_NULL|F90)|MPIX?_Query_\w+|MPIX?_(GPU_query_support|Delete_error_\w+)|MPIX_Grequest_\w+")


def declared(compiler, includes, defines):
    command = [compiler, "-E", "-P", "-x", "c", *(f"-I{folder}" for folder in includes), *(f"-D{d}" for d in defines), "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, input=HEADERS).stdout
    pattern = re.compile(r"(?:^|[;}])\s*(?:extern\s+)?(int|double|MPI_\w+)\s*(\*?)\s*(MPIX?_\w+)\s*\(([^;{}]*)\)\s*(?=;)")
    for result, star, name, parameters in pattern.findall(without_attributes(text)):
        parameters = " ".join(parameters.split())
        parts = [] if parameters in ("", "void") else [part.strip() for part in split_parameters(parameters)]
        yield Function(f"{result}{' *' if star else ''}", name, [with_name(p, i) for i, p in enumerate(parts)])


def split_parameters(text):
    depth, begin = 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def with_name(parameter, number):
    """Some headers leave names out."""
    words = re.sub(r"[*\[\]0-9]|\bconst\b", " ", parameter).split()
    return parameter if parameter == "..." or len(words) > 1 else f"{parameter} argument{number}"


def exported(library, nm):
    listing = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r" [TW] (P?MPIX?_\w+)(?:@|$)", listing, flags=re.M))


def covered(functions):
    """Those that get an entry point; all others neither take nor show a communicator."""
    for function in functions:
        if function.takes_communicator() or function.stem in BY_HAND:
            yield function
        elif function.tells() and not SHOW_NONE.fullmatch(function.stem):
            raise SystemExit(f"generate.py: {function.name} may show a communicator, and is of no known kind: "
                             f"{function.declaration(function.name)}")


# --- what is written ------------------------------------------------------------------------------------------------------

def header(all_functions, wrapped):
    yield "/* Generated by generate.py. */\n#ifndef NESSIE_COMMSPLITTER_FUNCTIONS_H\n#define NESSIE_COMMSPLITTER_FUNCTIONS_H\n"
    yield "#include \"splitter.h\"\n\nenum {"
    yield from (f"  k{f.identifier} = {f.index}," for f in all_functions)
    yield f"  kFunctions = {len(all_functions)},\n  kWrapped = {len(wrapped)} /* the first ones */\n}};\n"
    for function in all_functions:
        given = function.named() if function.is_variadic() else function.parameters
        yield f"static inline {function.result} native_{function.identifier}({', '.join(given) or 'void'}) {{"
        yield f"  return ({pointer_to(function)}splitter_native(k{function.identifier}))({function.arguments()});\n}}"
    for function in wrapped:
        if function.stem in BY_HAND:
            given = function.named() if function.is_variadic() else function.parameters
            yield f"#define SPLIT_HAS_{function.stem} 1"
            for name in [function.stem] + ["PMPI_" + function.stem] * (function.stem in FOR_FORTRAN):
                yield f"{function.result} split_{name}({', '.join(given) or 'void'});"
    yield "\n#endif"


# An entry point is one jump, which leaves all arguments as they are: another MPI may have larger handles.
ENTRY = r"""
#if defined(__x86_64__)
#define ENTRY(name, number) \
  ".globl " name "\n.type " name ", @function\n" name ":\n  .cfi_startproc\n" \
  "  jmp *splitter_targets+8*" number "(%rip)\n  .cfi_endproc\n.size " name ", . - " name "\n"
#elif defined(__aarch64__)
#define ENTRY(name, number) \
  ".globl " name "\n.type " name ", %function\n" name ":\n  .cfi_startproc\n" \
  "  adrp x16, splitter_targets+8*" number "\n  ldr x16, [x16, :lo12:splitter_targets+8*" number "]\n" \
  "  br x16\n  .cfi_endproc\n.size " name ", . - " name "\n"
#endif
#if defined(ENTRY)
__asm__(".text\n.hidden splitter_targets\n"
"""


def pointer_to(function):
    return f"({function.result} (*)({', '.join(function.parameters) or 'void'}))"


def replacements(wrapped):
    """What is called for MPI_X and PMPI_X unless a tool, or another MPI, is."""
    for function in wrapped:
        if function.stem in BY_HAND:
            calls = [f"split_{function.stem}({function.arguments()})"]
            calls += [calls[0].replace("split_", "split_PMPI_", 1)] * (function.stem in FOR_FORTRAN)
        else:
            calls = [f"native_{function.identifier}({function.arguments('splitter_own')})"]
        names = [f"call_{function.name}", f"call_P{function.name}"]
        for name, call in zip(names, calls):
            yield f"static {function.declaration(name)} {{\n  return {call};\n}}"


def entries(all_functions, wrapped):
    yield "/* Generated by generate.py. */\n#include \"functions.h\"\n"
    yield "_Atomic(splitter_function) splitter_natives[kFunctions];"
    yield "char const *const splitter_names[kFunctions] = {"
    yield from (f"    \"P{f.name}\"," for f in all_functions)
    yield "};\n"
    yield from replacements(wrapped)
    yield "\nsplitter_function splitter_targets[2 * kWrapped] = {"
    for function in wrapped:
        second = "P" if function.stem in FOR_FORTRAN else ""
        yield f"    (splitter_function)call_{function.name}, (splitter_function)call_{second}{function.name},"
    yield "};" + ENTRY.rstrip()
    for function in wrapped:
        yield f"        ENTRY(\"{function.name}\", \"{2 * function.index}\") ENTRY(\"P{function.name}\", \"{2 * function.index + 1}\")"
    yield ");\n#else"
    for function in wrapped:
        for number, prefix in enumerate(("", "P")):
            yield f"SPLITTER_EXPORT {function.declaration(prefix + function.name)} {{"
            yield f"  return ({pointer_to(function)}splitter_targets[{2 * function.index + number}])({function.arguments()});\n}}"
    yield "#endif"


def write(directory, name, lines):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("compiler", "library", "nm", "out"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--define", action="append", default=[])
    options = parser.parse_args()
    available = exported(options.library, options.nm)
    known = {f.name: f for f in declared(options.compiler, options.include, options.define)}
    unknown = {name.removeprefix("P") for name in available} - known.keys()
    if unknown := sorted(name for name in unknown if not NO_FUNCTIONS.fullmatch(name)):
        raise SystemExit(f"generate.py: exported, but not declared: {', '.join(unknown)}")
    functions = [f for f in known.values() if {f.name, "P" + f.name} <= available]
    wrapped = list(covered(functions))
    needed = {f.name for f in wrapped} | {f.name for f in functions if f.stem in CALLED}
    all_functions = wrapped + [f for f in functions if f.name in needed and f not in wrapped]
    for index, function in enumerate(all_functions):
        function.index = index
    os.makedirs(options.out, exist_ok=True)
    write(options.out, "functions.h", header(all_functions, wrapped))
    write(options.out, "entries.c", entries(all_functions, wrapped))


if __name__ == "__main__":
    main()
