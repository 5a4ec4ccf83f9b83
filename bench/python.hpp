// SPDX-License-Identifier: BSD-3-Clause
// The programs of ours that are in Python: asked in JSON, by the Python that Nessie was built with.
#pragma once

#include "child.hpp"

#include <nessie/result.hpp>

#include <chrono>
#include <string>

namespace bench {

/// What a program of that name, in our own folder, answers. It finds the package nessie that was built, or installed,
/// together with us, and whatever PYTHONPATH names. Errors as run_program().
nessie::Result<ProgramResult> ask_python(const std::string &program, const std::string &question,
                                         std::chrono::seconds limit);

}  // namespace bench
