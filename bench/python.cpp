// SPDX-License-Identifier: BSD-3-Clause
#include "python.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace bench {
namespace {

std::string python_path() {
  const auto here = std::filesystem::path(sibling("nessie-bench")).parent_path();
  const auto *others = std::getenv("PYTHONPATH");
  return fmt::format("PYTHONPATH={}:{}:{}", (here / "../lib/python").string(),
                     (here / "../../" NESSIE_LIBDIR "/python").string(), others != nullptr ? others : "");
}

}  // namespace

nessie::Result<ProgramResult> ask_python(const std::string &program, const std::string &question,
                                         std::chrono::seconds limit) {
  // numpy asks the kernel for huge pages otherwise, and arrays in C++ have none.
  return run_program({NESSIE_PYTHON, sibling(program), question}, limit, {python_path(), "NUMPY_MADVISE_HUGEPAGE=0"});
}

}  // namespace bench
