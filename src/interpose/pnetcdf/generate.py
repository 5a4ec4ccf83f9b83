#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the entry points of the interposer, one for every function that the installed libpnetcdf exports.

    generate.py --header pnetcdf.h --library libpnetcdf.so --nm nm --soname NAME --out DIRECTORY

makes
    shim_entries.c      the functions that the program finds in front of PnetCDF's
    native_entries.c    what the engine itself calls
    engine_entries.cpp  what they do on staged files, one function for each, by family (see FAMILIES)
    functions.h         names and number of the functions, in the order of both tables
"""

import argparse
import os
import re
import subprocess
from dataclasses import dataclass

ELEMENT_TYPES = {
    "text": "MPI_CHAR", "schar": "MPI_SIGNED_CHAR", "uchar": "MPI_UNSIGNED_CHAR", "short": "MPI_SHORT",
    "ushort": "MPI_UNSIGNED_SHORT", "int": "MPI_INT", "uint": "MPI_UNSIGNED", "long": "MPI_LONG",
    "float": "MPI_FLOAT", "double": "MPI_DOUBLE", "longlong": "MPI_LONG_LONG_INT",
    "ulonglong": "MPI_UNSIGNED_LONG_LONG",
}
TYPE_SUFFIX = "(?:_(?P<type>" + "|".join(ELEMENT_TYPES) + "))?"

DATA = re.compile(r"(?P<verb>put|get|iput|iget|bput)_var(?P<shape>|1|a|s|m|n)" + TYPE_SUFFIX + r"(?P<all>_all)?")
MULTI = re.compile(r"m(?P<verb>put|get)_var(?P<shape>|1|a|s|m)" + TYPE_SUFFIX + r"(?P<all>_all)?")
FILETYPE = re.compile(r"(?P<verb>put|get)_vard(?P<all>_all)?")
PUT_ATT = re.compile(r"put_att(_\w+)?")

# Names of the parameters between (ncid, varid) and the buffer, by the shape of an access.
INDICES = {"": [], "1": ["start"], "a": ["start", "count"], "s": ["start", "count", "stride"],
           "m": ["start", "count", "stride", "imap"], "n": ["num", "starts", "counts"]}

# Written by hand (functions.hpp), because they do more than ask the mirror or move data.
BY_HAND = set("""
    create open close abort enddef _enddef redef sync flush sync_numrecs begin_indep_data end_indep_data delete
    def_dim def_var rename_dim rename_var rename_att copy_att del_att set_fill def_var_fill fill_var_rec
    inq_dim inq_dimlen inq_var_fill inq_num_rec_vars inq_num_fix_vars inq_header_size inq_header_extent inq_path
    inq_put_size inq_get_size inq_striping inq_file_info get_file_info inq_files_opened
    inq_nreqs inq_buffer_usage inq_buffer_size buffer_attach buffer_detach wait wait_all cancel
""".split())

# A child of fork() does without a handle of its own for these.
NEED_NOT_USE = {"close", "abort"}

# Not about an open file: native PnetCDF answers.
ABOUT_NO_FILE = {"strerror", "strerrno", "set_default_format", "inq_default_format", "inq_libvers",
                 "inq_file_format", "inq_malloc_size", "inq_malloc_max_size", "inq_malloc_list"}


@dataclass
class Parameter:
    text: str       # as declared, e.g. "const MPI_Offset start[]"
    name: str


@dataclass
class Function:
    result: str
    name: str       # without "ncmpi_"
    parameters: list

    def rename(self, names):
        """Gives the parameters canonical names, by position."""
        for parameter, name in zip(self.parameters, names, strict=True):
            parameter.text = re.sub(r"\b" + parameter.name + r"\b(?=(\[\])?$)", name, parameter.text)
            parameter.name = name

    def declaration(self, prefix):
        return f"{self.result} {prefix}{self.name}({', '.join(p.text for p in self.parameters) or 'void'})"

    def arguments(self, first=None):
        names = [p.name for p in self.parameters]
        return ", ".join([first] + names[1:] if first else names)


def parse_header(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    pattern = re.compile(r"(?:extern\s+)?((?:const\s+)?\w+\s*\*?)\s+ncmpi_(\w+)\s*\(([^;{}]*)\)\s*;")
    for result, name, parameters in pattern.findall(text):
        yield Function(" ".join(result.split()), name, list(parse_parameters(parameters)))


def parse_parameters(text):
    text = " ".join(text.split())
    if text in ("", "void"):
        return
    for declaration in text.split(","):
        declaration = declaration.strip()
        yield Parameter(declaration, re.search(r"(\w+)\s*(\[\])?$", declaration).group(1))


def exported(library, nm):
    listing = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r" T ncmpi_(\w+)(?:@|$)", listing, flags=re.M))


def name_parameters(function):
    """Files and what data functions have get the same parameter names, whatever the header calls them."""
    if match := DATA.fullmatch(function.name):
        names = ["ncid", "varid"] + INDICES[match["shape"]] + ["buf"]
        names += [] if match["type"] else ["bufcount", "buftype"]
        names += [] if match["verb"] in ("put", "get") else ["req"]
        function.rename(names)
    elif match := MULTI.fullmatch(function.name):
        names = ["ncid", "num", "varids"] + [index + "s" for index in INDICES[match["shape"]]] + ["bufs"]
        function.rename(names + ([] if match["type"] else ["bufcounts", "buftypes"]))
    elif FILETYPE.fullmatch(function.name):
        function.rename(["ncid", "varid", "filetype", "buf", "bufcount", "buftype"])
    elif PUT_ATT.fullmatch(function.name):
        function.rename(["ncid", "varid", "name"] + ([] if function.name == "put_att_text" else ["xtype"]) + ["nelems", "buf"])
    elif function.name == "copy_att":
        function.rename(["ncid", "varid", "name", "ncid_out", "varid_out"])


# --- the shim -----------------------------------------------------------------------------------------------------------

def names_file(function):
    return bool(function.parameters) and function.parameters[0].name == "ncid"


def shim_entries(functions):
    yield "/* Generated by generate.py. */"
    yield "#include \"shim.h\"\n\n#include <mpi.h>\n#include <pnetcdf.h>\n"
    for index, function in enumerate(functions):
        pointer = ", ".join(re.sub(r"\b" + p.name + r"\b(?=(\[\])?$)", "", p.text) for p in function.parameters) or "void"
        call = f"(({function.result} (*)({pointer}))target)({function.arguments()})"
        yield f"NESSIE_EXPORT {function.declaration('ncmpi_')} {{"
        yield "  int entered = 0;"
        yield f"  nessie_function target = nessie_shim_enter({index}, &entered, __builtin_return_address(0));"
        if names_file(function):
            yield "  if (target == NULL) return NC_EFILE;"
        yield f"  {function.result} result = {call};"
        yield "  nessie_shim_leave(entered);\n  return result;\n}\n"
    yield "nessie_function const nessie_shim_entries[] = {"
    yield from (f"    (nessie_function)ncmpi_{function.name}," for function in functions)
    yield "};\n\nchar const nessie_shim_names_file[] = {"
    yield from (f"    {int(names_file(function))}," for function in functions)
    yield "};"


def native_entries(functions):
    """What the engine itself calls: native PnetCDF's own functions, whoever else stands in front of them."""
    yield "/* Generated by generate.py. */"
    yield "#include <interpose/pnetcdf/engine_abi.h>\n\n#include <mpi.h>\n#include <pnetcdf.h>\n"
    yield "extern nessie_function (*nessie_native)(int);\nstatic __thread int depth;\n"
    yield "int nessie_is_native_at_work(void) { return depth > 0; }\n"
    for index, function in enumerate(functions):
        pointer = ", ".join(re.sub(r"\b" + p.name + r"\b(?=(\[\])?$)", "", p.text) for p in function.parameters) or "void"
        yield f"{function.declaration('ncmpi_')} {{"
        yield "  ++depth;"
        yield f"  {function.result} result = (({function.result} (*)({pointer}))nessie_native({index}))({function.arguments()});"
        yield "  --depth;\n  return result;\n}\n"


# --- the engine ---------------------------------------------------------------------------------------------------------

def moving_natively(match, native):
    how = {"put": "write", "get": "read"}[match["verb"]]
    return f"{how}_natively(*file, [&] {{ return {native}; }})"


def body_of_data(function, match, native):
    mode = {"put": "kIndependent", "get": "kIndependent", "bput": "kBuffered"}.get(match["verb"], "kNonblocking")
    if match["all"]:
        mode = "kCollective"
    direction = "kPut" if "put" in match["verb"] else "kGet"
    shape = "kVar" + match["shape"].upper()
    yield f"  Access access{{Direction::{direction}, Shape::{shape}, Mode::{mode}, varid}};"
    for index in INDICES[match["shape"]]:
        yield f"  access.{index} = {index};"
    element = ELEMENT_TYPES[match["type"]] if match["type"] else None
    yield f"  access.memory = {{const_cast<void *>(static_cast<const void *>(buf)), " + (
        f"kTyped, {element}}};" if element else "bufcount, buftype};")
    if match["verb"] not in ("put", "get"):
        yield "  access.request = req;"
    if mode == "kCollective":
        yield "  const int status = transfer(*file, access);"
        yield f"  return status == kLeftNative ? {moving_natively(match, native)} : status;"
    else:
        yield "  return transfer(*file, access);"


def body_of_multi(match):
    mode = "kCollective" if match["all"] else "kIndependent"
    direction = "kPut" if match["verb"] == "put" else "kGet"
    yield f"  MultiAccess access{{Direction::{direction}, Shape::kVar{match['shape'].upper()}, Mode::{mode}, num, varids}};"
    for index in INDICES[match["shape"]]:
        yield f"  access.{index}s = {index}s;"
    yield "  access.bufs = reinterpret_cast<void *const *>(bufs);"
    if match["type"]:
        yield f"  access.element_type = {ELEMENT_TYPES[match['type']]};"
    else:
        yield "  access.bufcounts = bufcounts;\n  access.buftypes = buftypes;"
    yield "  return transfer(*file, access);"


def body_of_filetype(match):
    direction = "kPut" if match["verb"] == "put" else "kGet"
    mode = "kCollective" if match["all"] else "kIndependent"
    yield f"  FiletypeAccess access{{Direction::{direction}, Mode::{mode}, varid, filetype,"
    yield "                        {const_cast<void *>(static_cast<const void *>(buf)), bufcount, buftype}};"
    yield "  return transfer(*file, access);"


def body_of_attribute(function, native):
    suffix = function.name.removeprefix("put_att").lstrip("_")
    xtype = "NC_CHAR" if suffix == "text" else "xtype"
    element = ELEMENT_TYPES.get(suffix, "MPI_DATATYPE_NULL")
    yield f"  const AttributeAccess attribute{{varid, name, {xtype}, nelems, buf, {element}}};"
    yield "  if (int error = agree_on_put_att(*file, attribute)) return error;"
    yield f"  return attribute_was_put(*file, attribute, {native});"


def natively(match, native):
    """What a function that moves data does when the file is native. What is only posted moves later."""
    if match["verb"] in ("put", "get"):
        native = moving_natively(match, native)
    return f"  if (file->is_native()) return {native};"


def or_past_us(function):
    """A file that is not ours native PnetCDF may have, from functions that were looked up in it."""
    return f"return files().is_past_us(ncid) ? ncmpi_{function.name}({function.arguments()}) : NC_EBADID;"


def find_file(function):
    find = "at" if function.name in NEED_NOT_USE else "find"
    yield f"  File *file = files().{find}(ncid);\n  if (file == nullptr) {or_past_us(function)}"


def body_by_hand(function):
    if names_file(function):
        yield from find_file(function)
    yield f"  return on_{function.name}({function.arguments('*file' if names_file(function) else None)});"


def body_on_file(function):
    """What a function that names an open file does when the file is staged."""
    native = f"ncmpi_{function.name}({function.arguments('file->id()')})"
    yield from find_file(function)
    if match := DATA.fullmatch(function.name):
        yield natively(match, native)
        yield from body_of_data(function, match, native)
    elif match := MULTI.fullmatch(function.name):
        yield natively(match, native)
        yield from body_of_multi(match)
    elif match := FILETYPE.fullmatch(function.name):
        yield natively(match, native)
        yield from body_of_filetype(match)
    elif PUT_ATT.fullmatch(function.name):
        yield from body_of_attribute(function, native)
    else:
        yield f"  return {native};"


def engine_entries(functions):
    yield "// Generated by generate.py."
    yield "#include <interpose/pnetcdf/engine/beside.hpp>"
    yield "#include <interpose/pnetcdf/engine/file_table.hpp>"
    yield "#include <interpose/pnetcdf/engine/functions.hpp>"
    yield "#include <interpose/pnetcdf/engine/safe_mode.hpp>\n"
    yield "namespace interpose {\nnamespace {\n"
    for function in functions:
        if function.name in ABOUT_NO_FILE:
            continue
        yield function.declaration("entry_") + " try {"
        if function.name in BY_HAND:
            yield from body_by_hand(function)
        elif names_file(function):
            yield from body_on_file(function)
        else:
            raise SystemExit(f"generate.py: ncmpi_{function.name} is of no known family")
        yield f"}} catch (...) {{\n  return code_of_exception(\"ncmpi_{function.name}\");\n}}\n"
    yield "}  // namespace\n\nextern const nessie_function kEngineFunctions[] = {"
    for function in functions:
        target = ("ncmpi_" if function.name in ABOUT_NO_FILE else "entry_") + function.name
        yield f"    reinterpret_cast<nessie_function>(&{target}),"
    yield "};\n\n}  // namespace interpose"


def names(functions, soname, version):
    yield "/* Generated by generate.py. */\n#ifndef NESSIE_PNETCDF_FUNCTIONS_H\n#define NESSIE_PNETCDF_FUNCTIONS_H\n"
    yield f"#define NESSIE_PNETCDF_SONAME \"{soname}\"\n#define NESSIE_PNETCDF_FUNCTION_COUNT {len(functions)}\n"
    yield f"#define NESSIE_PNETCDF_VERSION \"{version}\""
    yield "#define NESSIE_PNETCDF_FUNCTIONS(X) \\"
    yield " \\\n".join(f"  X(ncmpi_{function.name})" for function in functions)
    yield "\n#endif"


def write(directory, name, lines):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("header", "library", "nm", "soname", "out"):
        parser.add_argument("--" + option, required=True)
    options = parser.parse_args()
    with open(options.header, encoding="utf-8") as header:
        text = header.read()
    declared = {function.name: function for function in parse_header(text)}
    version = re.search(r'#define\s+PNETCDF_VERSION\s+"([^"]+)"', text).group(1)
    available = exported(options.library, options.nm)
    if missing := available - declared.keys():
        raise SystemExit(f"generate.py: exported, but not declared: {', '.join(sorted(missing))}")
    functions = [function for name, function in declared.items() if name in available]
    for function in functions:
        name_parameters(function)
    os.makedirs(options.out, exist_ok=True)
    write(options.out, "shim_entries.c", shim_entries(functions))
    write(options.out, "engine_entries.cpp", engine_entries(functions))
    write(options.out, "native_entries.c", native_entries(functions))
    write(options.out, "functions.h", names(functions, options.soname, version))


if __name__ == "__main__":
    main()
