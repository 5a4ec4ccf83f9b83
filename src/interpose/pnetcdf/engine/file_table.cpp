// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/file_table.hpp>

#include <interpose/pnetcdf/engine/opening.hpp>

#include <algorithm>
#include <new>

namespace interpose {

File *FileTable::find(int ncid) {
  File *file = at(ncid);
  return file == nullptr || !file->is_inherited() || inherit(*file) ? file : nullptr;
}

File *FileTable::at(int ncid) const {
  if (ncid < 0 || ncid >= static_cast<int>(files_.size())) return nullptr;
  return files_[static_cast<std::size_t>(ncid)].load(std::memory_order_acquire);
}

bool FileTable::is_past_us(int ncid) {
  std::vector<int> open(NC_MAX_NFILES);
  int count = 0;
  if (ncmpi_inq_files_opened(&count, open.data()) != NC_NOERR) return false;
  open.resize(static_cast<std::size_t>(count));
  const std::lock_guard lock(mutex_);
  const auto is_its = [&](const auto &place) { return place.load() != nullptr && place.load()->id() == ncid; };
  return std::ranges::find(open, ncid) != open.end() && std::ranges::none_of(files_, is_its);
}

int FileTable::add(std::unique_ptr<File> &file) {
  const std::lock_guard lock(mutex_);
  const auto is_free = [](const auto &place) { return place.load() == nullptr; };
  auto place = files_.begin() + file->id();
  if (!is_free(*place)) place = std::ranges::find_if(files_, is_free);
  if (place == files_.end()) return -1;
  place->store(file.release(), std::memory_order_release);
  return static_cast<int>(place - files_.begin());
}

void FileTable::remove(const File &file) {
  std::unique_ptr<File> removed;  // closed when others may go on
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::find_if(files_, [&](const auto &place) { return place.load() == &file; });
  if (place != files_.end()) removed.reset(place->exchange(nullptr));
}

std::vector<int> FileTable::ids() const {
  std::vector<int> open;
  for (std::size_t id = 0; id < files_.size(); ++id)
    if (files_[id].load() != nullptr) open.push_back(static_cast<int>(id));
  return open;
}

bool FileTable::is_full() const {
  return std::ranges::all_of(files_, [](const auto &place) { return place.load() != nullptr; });
}

void FileTable::begin_in_child() {
  new (&mutex_) std::mutex;
  for (auto &place : files_)
    if (File *file = place.load(); file != nullptr) file->begin_in_child();
}

FileTable &files() {
  // Never destroyed: after MPI_Finalize nothing may call MPI any more, and closing files does.
  static FileTable &table = *new FileTable;
  return table;
}

}  // namespace interpose
