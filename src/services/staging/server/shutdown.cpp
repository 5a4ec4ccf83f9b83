// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

namespace staging {

Result<ReportResult> Server::shutdown(Request &) {
  quiesce();
  end_process_();
  return report();
}

void Server::quiesce() {
  finishing_ = true;
  recovered_.notify_all();
  (void)await_recovered();
  look_at_inboxes();
  while (!files_.empty() || !closing_.empty() || opening_ > 0) {
    for (const auto &file : closing_) drainer_.hasten(*file);
    if (files_.empty()) {
      (void)closing_changed_.wait();
      continue;
    }
    closing_.push_back(files_.extract(files_.begin()).mapped());
    finish_orphan(closing_.back());
  }
  end_watches();
  drainer_.end_spilling();
  for (auto *journal : {logged_.get(), replicated_.journal.get()})
    if (journal != nullptr) (void)journal->flush();
  give_copies_up();
}

}  // namespace staging
