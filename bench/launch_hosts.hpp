// SPDX-License-Identifier: BSD-3-Clause
// What a program perceives whose server is on another host, beside what the cable between the two hosts carries.
#pragma once

#include "options.hpp"

#include <nessie/result.hpp>

namespace bench {

/// Where no hosts can be made, the report says why, and that is all.
nessie::Status compare_hosts(const Options &options, Report &report);

}  // namespace bench
