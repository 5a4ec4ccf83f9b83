// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/page_writer.hpp>

namespace staging {

namespace {

constexpr std::size_t kBoxesInCall = 1024;  // PnetCDF keeps some hundred bytes for each

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
int write_run(NativeFile &file, const Page &page, Interval run) {
  const auto &variable = page.owner().variable;
  std::byte *data = page.at(run.begin);
  std::vector<Box> boxes;
  append_boxes(variable, run, boxes);
  if (!variable.is_record) return file.write(variable.varid, boxes, data);
  for (const auto &box : boxes) {
    if (int error = file.write(variable.varid, {box}, data); error != 0) return error;
    data += box.elements() * variable.element_bytes;
  }
  return 0;
}

int write_page(NativeFile &file, const Page &page) {
  const auto run = page.dirty_run(page.first());
  return run.size() == page.dirty_elements() ? write_run(file, page, run) : write_scattered(file, page);
}

PageOutcome write_alone(NativeFile &file, const Page &page) {
  PageOutcome outcome{write_page(file, page), 0};
  if (outcome.nc_error != 0) outcome.system_error = file.write_errno();
  return outcome;
}

std::vector<NativeFile::Block> blocks_of(std::span<const std::unique_ptr<Page>> pages) {
  std::vector<NativeFile::Block> blocks;
  std::vector<Box> boxes;
  for (const auto &page : pages) {
    const auto &variable = page->owner().variable;
    const auto run = page->dirty_bounds();
    std::byte *data = page->at(run.begin);
    boxes.clear();
    append_boxes(variable, run, boxes);
    for (auto &box : boxes) {
      const auto bytes = box.elements() * variable.element_bytes;
      blocks.push_back({variable.varid, std::move(box), data});
      data += bytes;
    }
  }
  return blocks;
}

}  // namespace

std::vector<PageOutcome> write_pages(NativeFile &file, std::span<const std::unique_ptr<Page>> pages) {
  std::vector<PageOutcome> outcomes(pages.size());
  if (pages.size() > 1 && file.write(blocks_of(pages)) == 0) return outcomes;
  for (std::size_t i = 0; i < pages.size(); ++i) outcomes[i] = write_alone(file, *pages[i]);
  return outcomes;
}

}  // namespace staging
