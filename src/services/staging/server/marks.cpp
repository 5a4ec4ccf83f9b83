// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/marks.hpp>

#include <base/random.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace staging {

namespace {

/// What servers of one run compare.
std::int64_t ns_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

bool MarkedFile::was_overwritten(std::span<const std::byte> pieces, Moment when) const {
  if (is_unknown) return true;
  Piece piece;
  PieceReader reader(pieces);
  while (reader.next(piece)) {
    if (piece.varid < 0 || static_cast<std::size_t>(piece.varid) >= variables.size()) return true;
    const auto &variable = variables[static_cast<std::size_t>(piece.varid)];
    const bool has_records = variable.is_record && !piece.start.empty();
    if (has_records && piece.count[0] == 0) continue;
    const auto begin = has_records ? piece.start[0] : 0;
    const auto end = has_records ? begin + (piece.count[0] - 1) * piece.step(0) + 1 : 1;
    if (variable.written.last(begin, end) > when) return true;
  }
  return reader.failed();
}

Marks::Marks(std::function<void()> changed) : changed_(std::move(changed)), incarnation_(nessie::random_u64() | 1) {}

std::shared_ptr<MarkedFile> Marks::open(FileToken token, const std::string &path, const FileIdentity &identity,
                                        std::int64_t born_ns, std::uint64_t owner) {
  auto &file = files_[token];
  if (!file) {
    file = std::make_shared<MarkedFile>();
    file->state.file = token, file->state.path = path, file->state.identity = identity;
    file->born_ns = born_ns;
    by_inode_.emplace(identity.inode, file.get());
    for_twins(*file, [&](MarkedFile &twin) {
      twin.is_unknown = twin.is_unknown || twin.born_ns != born_ns;
      if (twin.born_ns == born_ns) file->state.created_ns = std::max(file->state.created_ns, twin.state.created_ns);
    });
  }
  std::erase(closed_, token);
  file->owner = owner;
  file->state.is_left = false;
  file->state.stage = FileStage::kOpen;
  file->is_detached = false;
  note_changed(*file);
  return file;
}

std::shared_ptr<MarkedFile> Marks::find(FileToken token) const {
  const auto found = files_.find(token);
  return found == files_.end() ? nullptr : found->second;
}

void Marks::begin_data_mode(MarkedFile &file, bool is_home, std::vector<MarkedFile::OfVariable> variables) {
  ++file.definition;
  file.state.is_home = is_home;
  for (std::size_t i = 0; i < std::min(variables.size(), file.variables.size()); ++i)
    variables[i].written = std::move(file.variables[i].written);
  file.variables = std::move(variables);
  note_header(file);
}

void Marks::note_header(MarkedFile &file) {
  ++file.state.headers;
  note_changed(file);
}

template <class Work> void Marks::for_twins(const MarkedFile &file, Work work) const {
  const auto [begin, end] = by_inode_.equal_range(file.state.identity.inode);
  for (auto at = begin; at != end; ++at)
    if (at->second != &file && at->second->state.identity == file.state.identity) work(*at->second);
}

void Marks::note_written(MarkedFile &file, std::span<const Part> parts, std::uint64_t call) {
  const auto note = [&](MarkedFile &of, const Part &part, Moment when) {
    if (static_cast<std::size_t>(part.varid) >= of.variables.size() || part.bounds.size() == 0) return;
    auto &variable = of.variables[static_cast<std::size_t>(part.varid)];
    const auto extent = std::max<std::int64_t>(variable.extent, 1);
    if (variable.is_record)
      variable.written.note(part.bounds.begin / extent, (part.bounds.end - 1) / extent + 1, when);
    else
      variable.written.note(0, 1, when);
  };
  for (const auto &part : parts) {
    note(file, part, moment_of(file.definition, call));
    for_twins(file, [&](MarkedFile &twin) { note(twin, part, kAlwaysLater); });
  }
}

/// What no mark has said to be complete no mark is read by.
void Marks::note_filled(MarkedFile &file, std::int32_t varid, std::int64_t record) {
  const auto note = [&](MarkedFile &of) {
    if (varid < 0 || static_cast<std::size_t>(varid) >= of.variables.size() || record >= of.records_marked) return;
    of.variables[static_cast<std::size_t>(varid)].written.note(record, record + 1, kAlwaysLater);
  };
  note(file);
  for_twins(file, note);
}

void Marks::note_created(const FileIdentity &identity, FileToken token) {
  const auto [begin, end] = by_inode_.equal_range(identity.inode);
  for (auto at = begin; at != end; ++at)
    if (at->second->state.identity == identity && at->second->state.file != token) at->second->is_unknown = true;
  const auto created = find(token);
  if (!created) return;
  created->state.created_ns = last_created_ns_ = std::max(last_created_ns_ + 1, ns_since_1970());
  note_changed(*created);
}

void Marks::note_left(std::uint64_t owner) {
  for (const auto &[token, file] : files_) {
    if (file->owner != owner || std::exchange(file->state.is_left, true)) continue;
    note_changed(*file);
  }
}

void Marks::mark(MarkedFile &file, Mark mark) {
  if (mark.definition != file.definition || mark.records < 0) return;
  file.records_marked = std::max(file.records_marked, mark.records);
  auto at = files_.find(file.state.file);
  if (at == files_.end()) return;
  const auto number = add({at->second, std::move(mark), {}});
  file.marks.push_back(number);
  oldest_marks_.push_back(number);
  ++marks_;
  bound_marks();
}

void Marks::note_closing(MarkedFile &file) {
  file.state.stage = FileStage::kClosing;
  note_changed(file);
}

void Marks::note_closed(MarkedFile &file, const std::string &failed, std::int64_t changed_ns) {
  file.state.stage = FileStage::kClosed;
  file.state.failed = failed;
  file.state.changed_ns = changed_ns;
  for_twins(file, [&](MarkedFile &twin) {
    if (twin.state.stage == FileStage::kClosed) twin.state.changed_ns = changed_ns;
  });
  note_changed(file);
  std::erase(closed_, file.state.file);
  closed_.push_back(file.state.file);
  bound_closed();
}

void Marks::note_native(const NativeNote &note) {
  native_.push_back(add({nullptr, {}, note}));
  if (native_.size() <= kMostNative) return;
  changes_.erase(native_.front());
  native_.pop_front();
}

void Marks::end() {
  is_ending_ = true;
  changed_();
}

/// Its last change takes the place of the one before.
void Marks::note_changed(MarkedFile &file) {
  const auto at = files_.find(file.state.file);
  if (at == files_.end()) return;
  changes_.erase(file.changed);
  file.changed = add({at->second, {}, {}});
}

std::uint64_t Marks::add(Change change) {
  changes_.emplace_hint(changes_.end(), ++last_, std::move(change));
  changed_();
  return last_;
}

void Marks::forget_marks(MarkedFile &file) {
  for (const auto number : file.marks) changes_.erase(number);
  marks_ -= file.marks.size();
  file.marks.clear();
}

void Marks::bound_marks() {
  while (marks_ > kMostMarks) {
    const auto oldest = changes_.find(oldest_marks_.front());
    oldest_marks_.pop_front();
    if (oldest == changes_.end()) continue;  // its file was forgotten
    oldest->second.file->marks.pop_front();
    changes_.erase(oldest);
    --marks_;
  }
}

void Marks::bound_closed() {
  while (closed_.size() > kMostClosed) {
    const auto found = files_.find(closed_.front());
    closed_.pop_front();
    auto &file = *found->second;
    forget_marks(file);
    changes_.erase(file.changed);
    const auto [begin, end] = by_inode_.equal_range(file.state.identity.inode);
    by_inode_.erase(std::find_if(begin, end, [&](const auto &one) { return one.second == &file; }));
    files_.erase(found);
  }
  while (!oldest_marks_.empty() && !changes_.contains(oldest_marks_.front())) oldest_marks_.pop_front();
}

// --- who watches ------------------------------------------------------------------------------------------------------

std::uint64_t Marks::first_unseen(const WatchArgs &seen) const {
  return seen.incarnation == incarnation_ && seen.seen <= last_ ? seen.seen + 1 : 0;
}

bool Marks::has_changed(const WatchArgs &seen) const {
  return is_ending_ || seen.incarnation != incarnation_ || changes_.lower_bound(first_unseen(seen)) != changes_.end();
}

WatchResult Marks::since(const WatchArgs &seen) const {
  WatchResult result;
  result.incarnation = incarnation_;
  std::map<FileToken, std::size_t> places;
  auto change = changes_.lower_bound(first_unseen(seen));
  for (std::size_t count = 0; change != changes_.end() && count < kMostAtOnce; ++change, ++count) {
    const auto &[file, mark, native] = change->second;
    result.seen = change->first;
    if (native) result.native.push_back(*native);
    if (!file) continue;
    const auto [place, is_first] = places.emplace(file->state.file, result.files.size());
    if (is_first) result.files.push_back(file->state);
    if (mark) result.files[place->second].marks.push_back(*mark);
  }
  if (change == changes_.end()) result.seen = last_, result.is_ending = is_ending_;
  return result;
}

}  // namespace staging
