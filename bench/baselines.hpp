// SPDX-License-Identifier: BSD-3-Clause
// What the machine does without Nessie, measured in the same run.
#pragma once

#include "report.hpp"

#include <nessie/result.hpp>

#include <cstdint>
#include <vector>

namespace bench {

/// Microseconds of copies by the kernel from and to another process's memory, and by memcpy out of and into memory
/// shared with it.
struct CopyTimes {
  FiguresBySize memcpy_get, memcpy_put, process_vm_readv, process_vm_writev;
};
/// The process_vm_… maps stay empty where the kernel forbids them.
nessie::Result<CopyTimes> copy_times(const std::vector<std::uint64_t> &sizes);

}  // namespace bench
