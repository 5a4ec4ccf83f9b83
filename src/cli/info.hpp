// SPDX-License-Identifier: BSD-3-Clause
// nessie info: how processes on this machine reach each other, and how well.
#pragma once

#include <string>

namespace nessie::cli {

struct InfoOptions {
  std::string url;  ///< whom to connect to; empty: a process forked for the purpose
  bool json = false;
};

int info(const InfoOptions &options);

}  // namespace nessie::cli
