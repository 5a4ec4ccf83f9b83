// SPDX-License-Identifier: BSD-3-Clause
// What the machine does without Nessie, measured in the same run.
#pragma once

#include <nessie/result.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// Microseconds for each size.
using TimesBySize = std::map<std::uint64_t, double>;

/// Copies by the kernel from and to another process's memory, and by memcpy out of and into memory shared with it.
struct CopyTimes {
  TimesBySize memcpy_get, memcpy_put, process_vm_readv, process_vm_writev;
};
/// The process_vm_… maps stay empty where the kernel forbids them.
nessie::Result<CopyTimes> copy_times(const std::vector<std::uint64_t> &sizes);

}  // namespace bench
