// SPDX-License-Identifier: BSD-3-Clause
// What is complete of a file, as its program says; and what this server says of it to who looks on.
#include <services/staging/server/server.hpp>

#include <sys/stat.h>
#include <utility>

namespace staging {

namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

std::int64_t changed_ns(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return 0;
  return status.st_ctim.tv_sec * kNsPerSecond + status.st_ctim.tv_nsec;
}

}  // namespace

/// One way: nobody hears of errors. A file that is not open any more has no more marks.
Status Server::mark(Request &, const MarkArgs &args) {
  const auto file = find_to_write(args.file);
  if (file && file->marked) marks_.mark(*file->marked, args.mark);
  return {};
}

/// A handle that writes, from its beginning.
void Server::begin_marking(OpenFile &file) {
  if (!file.native->writable()) return;
  file.marked = marks_.open(file.token, file.path, file.identity, file.native->born_ns(), file.owner.value);
}

void Server::begin_data_mode(OpenFile &file, bool is_home) {
  if (!file.marked) return;
  std::vector<MarkedFile::OfVariable> variables;
  for (const auto &variable : file.variables()) {
    const auto &shape = variable.cached->variable;
    variables.push_back({shape.is_record, shape.extent_elements(), {}});
  }
  marks_.begin_data_mode(*file.marked, is_home, std::move(variables));
}

/// It is closed, and all that will ever be in it.
void Server::end_marking(OpenFile &file) {
  if (!file.marked || file.marked->is_detached) return;
  std::string failed = file.defined ? "" : "its program ended before it was defined";
  if (file.lost_anything()) failed = file.report().message;
  marks_.note_closed(*file.marked, failed, changed_ns(file.native->descriptor()));
}

/// The program ended before it was attached again.
void Server::end_detached(FileToken token) {
  const auto marked = marks_.find(token);
  if (!marked || !std::exchange(marked->is_detached, false)) return;
  marks_.note_closed(*marked, "its program ended while it was defined anew", 0);
}

}  // namespace staging
