// SPDX-License-Identifier: BSD-3-Clause
// What a program's own code throws where it is called by ours, which goes on.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace nessie {

/// What `work` threw, in words. Nothing: it returned.
template <class Work> std::optional<std::string> thrown_by(Work &&work) {
  try {
    work();
  } catch (const std::exception &error) { return error.what(); } catch (...) {
    return "an exception of unknown type";
  }
  return std::nullopt;
}

}  // namespace nessie
