// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/page_writer.hpp>

#include <services/staging/server/open_file.hpp>

#include <pnetcdf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace staging {

namespace {

constexpr std::size_t kBoxesInCall = 1024;  // PnetCDF keeps some hundred bytes for each
/// To write one piece more takes as long as to read and write again so many bytes.
constexpr std::int64_t kBytesForPiece = 4 << 10;

/// Writes boxes that do not lie together in the page, in one call.
int write_packed(NativeFile &file, const Page &page, const std::vector<Box> &boxes) {
  static thread_local std::vector<std::byte> packed;
  const auto &variable = page.owner().variable;
  std::int64_t elements = 0;
  for (const auto &box : boxes) elements += box.elements();
  packed.resize(static_cast<std::size_t>(elements * variable.element_bytes));
  std::byte *end = packed.data();
  for (const auto &box : boxes) end = pack(page, variable, box, end);
  return file.write(variable.varid, boxes, packed.data());
}

/// The same for a record variable, whose boxes may have several records. They are taken apart: ncmpi_put_varn (1.12.3)
/// takes the data of a box's later records from the wrong place when other boxes follow.
int write_by_record(NativeFile &file, const Page &page, const std::vector<Box> &boxes) {
  std::vector<Box> single;
  for (const auto &box : boxes)
    for (std::int64_t record = 0; record < box.count[0]; ++record) {
      Box &one = single.emplace_back(box);
      one.start[0] += record;
      one.count[0] = 1;
      if (single.size() < kBoxesInCall) continue;
      if (int error = write_packed(file, page, single); error != 0) return error;
      single.clear();
    }
  return single.empty() ? 0 : write_packed(file, page, single);
}

/// Writes runs that do not lie together in the page, a call at a time: a page can have more of them than there is
/// memory for.
int write_scattered(NativeFile &file, const Page &page) {
  const auto &variable = page.owner().variable;
  const auto write = variable.is_record ? write_by_record : write_packed;
  std::vector<Box> boxes;
  for (auto run = page.dirty_run(page.first()); run.size() > 0; run = page.dirty_run(run.end)) {
    append_boxes(variable, run, boxes);
    if (boxes.size() < kBoxesInCall) continue;
    if (int error = write(file, page, boxes); error != 0) return error;
    boxes.clear();
  }
  return boxes.empty() ? 0 : write(file, page, boxes);
}

/// Writes a run. One of records has but a few boxes: its ends, and what is between.
int write_run(NativeFile &file, const Variable &variable, Interval run, std::byte *data) {
  const auto boxes = boxes_of(variable, run);
  if (!variable.is_record) return file.write(variable.varid, boxes, data);
  for (const auto &box : boxes) {
    if (int error = file.write(variable.varid, {box}, data); error != 0) return error;
    data += box.elements() * variable.element_bytes;
  }
  return 0;
}

/// Whether what lies between a page's runs is so little that it takes less time to write it, too.
bool is_worth_sieving(const Page &page) {
  const auto hull_bytes = page.dirty_bounds().size() * page.owner().variable.element_bytes;
  std::int64_t runs = 0;
  for (auto run = page.dirty_run(page.first()); run.size() > 0; run = page.dirty_run(run.end))
    if (++runs * kBytesForPiece > hull_bytes) return true;
  return false;
}

/// Reads a run as it is in the file.
int read_run(NativeFile &file, const Variable &variable, Interval run, std::byte *data) {
  for (const auto &box : boxes_of(variable, run)) {
    if (int error = file.read_present(variable, box, data); error != 0) return error;
    data += box.elements() * variable.element_bytes;
  }
  return 0;
}

/// Writes the page's runs and what is in the file between them, as MPI-IO does for several processes (data sieving).
int write_sieved(NativeFile &file, const Page &page) {
  static thread_local std::vector<std::byte> whole;
  const auto &variable = page.owner().variable;
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements * variable.element_bytes); };
  const auto hull = page.dirty_bounds();
  whole.resize(bytes(hull.size()));
  if (int error = read_run(file, variable, hull, whole.data()); error != 0) return error;
  for (auto run = page.dirty_run(page.first()); run.size() > 0; run = page.dirty_run(run.end))
    std::memcpy(whole.data() + bytes(run.begin - hull.begin), page.at(run.begin), bytes(run.size()));
  return write_run(file, variable, hull, whole.data());
}

int write_page(NativeFile &file, const Page &page, bool is_only_writer) {
  const auto run = page.dirty_run(page.first());
  if (run.size() == page.dirty_elements()) return write_run(file, page.owner().variable, run, page.at(run.begin));
  if (is_only_writer && is_worth_sieving(page) && write_sieved(file, page) == 0) return 0;
  return write_scattered(file, page);
}

PageOutcome look_at(const Page &page) {
  if (page.is_sound()) return {};
  const auto *file = page.owner().file;
  return {.nc_error = NC_EREAD,
          .system_error = EIO,
          .is_damaged = true,
          .is_elsewhere = file != nullptr && file->journal != nullptr};
}

PageOutcome write_alone(NativeFile &file, const Page &page, bool is_only_writer) {
  PageOutcome outcome{.nc_error = write_page(file, page, is_only_writer)};
  if (outcome.nc_error != 0) outcome.system_error = file.write_errno();
  return outcome;
}

std::vector<NativeFile::Block> blocks_of(std::span<const std::unique_ptr<Page>> pages) {
  std::vector<NativeFile::Block> blocks;
  for (const auto &page : pages) {
    const auto &variable = page->owner().variable;
    const auto run = page->dirty_bounds();
    std::byte *data = page->at(run.begin);
    for (auto &box : boxes_of(variable, run)) {
      const auto bytes = box.elements() * variable.element_bytes;
      blocks.push_back({variable.varid, std::move(box), data});
      data += bytes;
    }
  }
  return blocks;
}

}  // namespace

bool may_pass(const PageOutcome &outcome) {
  if (outcome.is_damaged) return outcome.is_elsewhere;
  if (outcome.is_final) return false;
  constexpr std::array native = {NC_EWRITE, NC_EREAD, NC_EFILE, NC_ENO_SPACE, NC_EQUOTA};
  if (std::ranges::find(native, outcome.nc_error) == native.end()) return false;
  if (outcome.system_error == 0) return outcome.nc_error != NC_EREAD && outcome.nc_error != NC_EFILE;
  return errno_may_pass(outcome.system_error);
}

std::vector<PageOutcome> write_pages(NativeFile &file, std::span<const std::unique_ptr<Page>> pages,
                                     bool is_only_writer, bool stops) {
  std::vector<PageOutcome> outcomes;
  for (const auto &page : pages) outcomes.push_back(look_at(*page));
  const bool any_is_damaged = std::ranges::any_of(outcomes, &PageOutcome::is_damaged);
  if (pages.size() > 1 && !any_is_damaged && file.write(blocks_of(pages)) == 0) return outcomes;
  bool is_stopped = false;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (is_stopped)
      outcomes[i] = {.was_tried = false};
    else if (!outcomes[i].is_damaged)
      outcomes[i] = write_alone(file, *pages[i], is_only_writer);
    is_stopped = is_stopped || (stops && may_pass(outcomes[i]));
  }
  return outcomes;
}

}  // namespace staging
