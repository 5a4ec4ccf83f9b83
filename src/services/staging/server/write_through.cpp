// SPDX-License-Identifier: BSD-3-Clause
// Direct mode: a write is answered when it is in the file. The parts of all processes in a collective call go there
// together: each alone would be many small pieces, where all of them are whole pages.
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

namespace {

/// How long one waits for the next, who may be late, or have found something wrong with his arguments and not come.
constexpr std::chrono::milliseconds kPatience{5};

void await_others(Together &together, std::uint32_t processes) {
  while (together.ready < processes)
    if (!together.joined.wait(nessie::Deadline::in(kPatience)).ok()) return;
}

}  // namespace

/// Suspends the fiber until what is in pages of the file is in the file. The native code of what failed, of these and
/// of those that had to leave since there were `failed_before`: they may be this write's.
int Server::write_through(OpenFile &file, const TransferArgs &args, std::uint64_t failed_before) {
  const int error = flush_together(file, args);
  return error == NC_NOERR && file.failed_pages != failed_before ? file.failed_page_error : error;
}

int Server::flush_together(OpenFile &file, const TransferArgs &args) {
  const bool is_alone = args.in_order != 0 || file.takes_turns || file.processes == 1;
  if (is_alone) return drainer_.flush(file, PageState::kUrgent);
  const bool leads = file.together == nullptr;
  if (leads) file.together = std::make_shared<Together>(runtime_);
  const auto together = file.together;
  together->ready += args.ends_call;
  together->joined.notify_all();
  if (leads) {
    await_others(*together, file.processes);
    file.together = nullptr;
    together->nc_error = drainer_.flush(file, PageState::kUrgent);
    together->is_over = true;
    together->ended.notify_all();
  }
  while (!together->is_over)
    if (!together->ended.wait().ok()) return NC_EWRITE;  // the server ends
  return together->nc_error;
}

}  // namespace staging
