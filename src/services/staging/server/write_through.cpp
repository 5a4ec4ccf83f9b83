// SPDX-License-Identifier: BSD-3-Clause
// Direct mode: a write is answered when it is in the file. The parts of all processes in a collective call go there
// together: each alone would be many small pieces, where all of them are whole pages.
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

namespace {

/// How long one waits for the next, who may be late, or have found something wrong with his arguments and not come.
constexpr std::chrono::milliseconds kWorthAWait{5};

constexpr std::size_t kCallsRemembered = 16;  // nobody is so many calls behind another

/// Until nobody is missing of a collective call, nor anybody who could come: those who were late come to others who are
/// in the next call already, and wait for them.
void await_others(const OpenFile &file, Together &together, std::uint64_t call) {
  const auto arrived = [&] {
    const auto found = file.arrived_in.find(call);
    return found == file.arrived_in.end() ? 0 : found->second;
  };
  while (together.ready < file.processes && arrived() < file.processes)
    if (!together.joined.wait(nessie::Deadline::in(kWorthAWait)).ok()) return;
}

void note_end_of_call(OpenFile &file, const TransferArgs &args) {
  file.arrived_in[args.call] += args.ends_call ? 1 : 0;
  if (file.arrived_in.size() > kCallsRemembered) file.arrived_in.erase(file.arrived_in.begin());
}

}  // namespace

/// Suspends the fiber until what is in pages of the file is in the file. The native code of what failed, of these and
/// of those that had to leave since there were `failed_before`: they may be this write's.
int Server::write_through(OpenFile &file, const TransferArgs &args, std::uint64_t failed_before) {
  int error = flush_together(file, args);
  if (error == NC_NOERR && file.durability == Durability::kInFile)
    error = on_io([&] { return file.native->sync_to_disk(); });
  return error == NC_NOERR && file.failed_pages != failed_before ? file.failed_page_error : error;
}

int Server::flush_together(OpenFile &file, const TransferArgs &args) {
  const bool is_alone = options_.mode != Mode::kDirect || args.in_order || file.takes_turns || file.processes == 1;
  if (is_alone) return drainer_.flush(file, PageState::kUrgent);
  const bool leads = file.together == nullptr;
  if (leads) file.together = std::make_shared<Together>(runtime_);
  const auto together = file.together;
  together->ready += args.ends_call ? 1 : 0;
  note_end_of_call(file, args);
  together->joined.notify_all();
  if (leads) {
    await_others(file, *together, args.call);
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
