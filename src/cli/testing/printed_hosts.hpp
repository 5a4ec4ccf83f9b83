// SPDX-License-Identifier: BSD-3-Clause
// Hosts as gtest prints them: "a:4", "b:2!" for this one.
#pragma once

#include "../host_lists.hpp"

#include <ostream>

namespace nessie::cli {

inline void PrintTo(const JobHost &host, std::ostream *out) {
  *out << host.name << ':' << host.slots << (host.here ? "!" : "");
}

}  // namespace nessie::cli
