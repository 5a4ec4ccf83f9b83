#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tables of configuration.md from what `nessie info --settings` says.

    docs/settings.py build/bin/nessie            writes them anew
    docs/settings.py build/bin/nessie --check    fails if they are not as they should be

A table stands between `<!-- settings: NAMES -->` and `<!-- end -->`; NAMES are names, or beginnings with a `*`. A setting
is in the first table that asks for it."""
import fnmatch
import json
import os
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "configuration.md")
BLOCK = re.compile(r"<!-- settings: (?P<names>.*?) -->\n.*?<!-- end -->\n", re.DOTALL)


def settings_of(program):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("NESSIE_")}
    said = subprocess.run([program, "info", "--settings", "--json"], env=clean, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in said.stdout.decode().splitlines()]


def row(cells):
    return "| " + " | ".join(cells) + " |\n"


def table(settings):
    has_flags = any(each["flag"] for each in settings)
    columns = ["name", "flag", "default", "meaning"] if has_flags else ["name", "default", "meaning"]
    text = row(["setting" if column == "name" else column for column in columns]) + "|---" * len(columns) + "|\n"
    for each in settings:
        text += row(["`" + each[column] + "`" if column == "name" else each[column] for column in columns])
    return re.sub(r"\| +\|", "| |", text)


def written(page, settings):
    left = {each["name"]: each for each in settings}

    def block(match):
        chosen = []
        for pattern in match["names"].split():
            chosen += [left.pop(name) for name in list(left) if fnmatch.fnmatchcase(name, pattern)]
        return f"<!-- settings: {match['names']} -->\n{table(chosen)}<!-- end -->\n"

    page = BLOCK.sub(block, page)
    return page, sorted(left)


def main():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    new, left = written(page, settings_of(sys.argv[1]))
    if left:
        sys.exit(f"no table of {PAGE} asks for {', '.join(left)}")
    if "--check" not in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(new)
    elif new != page:
        sys.exit(f"{PAGE} does not say what is declared: run docs/settings.py")


if __name__ == "__main__":
    main()
