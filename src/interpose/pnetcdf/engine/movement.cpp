// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/movement.hpp>

#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/file.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace interpose {

namespace {

std::vector<staging::Item> items_of(std::span<const Request> requests) {
  std::vector<staging::Item> items;
  for (const Request &request : requests) {
    auto rest = request.external;
    for (const staging::Piece &piece : request.pieces) {
      const auto size = static_cast<std::size_t>(piece.elements() * request.variable->layout.element_bytes);
      items.push_back({&request.variable->layout, piece, rest.first(size)});
      rest = rest.subspan(size);
    }
  }
  return items;
}

std::int64_t total_bytes(std::span<const Request> requests) {
  std::int64_t total = 0;
  for (const Request &request : requests) total += static_cast<std::int64_t>(request.external.size());
  return total;
}

/// Bytes of the file that the items meet. Natively, what several requests of one call write or read is written or read,
/// and counted, once.
std::int64_t covered_bytes(const std::vector<staging::Item> &items) {
  if (items.size() == 1) return static_cast<std::int64_t>(items.front().data.size());
  std::int64_t bytes = 0;
  std::vector<const staging::Item *> sorted;
  std::vector<staging::Piece> pieces;
  for (const auto &item : items) sorted.push_back(&item);
  std::ranges::stable_sort(sorted, {}, [](const staging::Item *item) { return item->layout->varid; });
  for (auto item = sorted.begin(); item != sorted.end();) {
    const auto &layout = *(*item)->layout;
    pieces.clear();
    for (; item != sorted.end() && (*item)->layout->varid == layout.varid; ++item) pieces.push_back((*item)->piece);
    bytes += staging::covered_elements(layout, pieces) * layout.element_bytes;
  }
  return bytes;
}

std::string doing(File &file, const char *what, std::span<const Request> requests) {
  char name[NC_MAX_NAME + 1] = "";
  ncmpi_inq_varname(file.mirror.id(), requests.front().variable->layout.varid, name);
  return fmt::format("{} variable {}", what, name);
}

}  // namespace

int write(File &file, std::span<const Request> requests) {
  const auto total = total_bytes(requests);
  if (total == 0) return NC_NOERR;
  const auto items = items_of(requests);
  const auto bytes = covered_bytes(items);
  const bool overlaps = bytes < total, others_put = file.independent && file.ranks().size() > 1;
  auto &order = file.ranks().order();
  order.in_order = overlaps || others_put;
  auto result = Session::get().client()->write(file.token(), file.num_records, order, items);
  if (result && *result == NC_NOERR && !boards().note_write(file.identity))
    result = Session::get().client()->finish_writes(file.token());
  if (!result) return file.lost(result.error(), doing(file, "writing", requests), NC_EWRITE);
  const int error = *result != NC_NOERR ? *result : file.take_error();
  if (error == NC_NOERR) file.put_bytes += bytes;
  return error;
}

int finish_writes(File &file) {
  return file.code_of(Session::get().client()->finish_writes(file.token()), "writing", NC_EWRITE);
}

namespace {

/// Reads a run of elements, which may be of several boxes.
int fetch(File &file, const staging::VariableLayout &layout, staging::Interval elements, std::span<std::byte> data) {
  std::vector<staging::Box> boxes;
  std::vector<staging::Item> items;
  append_boxes(layout, elements, boxes);
  for (const auto &box : boxes) {
    const auto size = static_cast<std::size_t>(box.elements() * layout.element_bytes);
    items.push_back({&layout, {layout.varid, box.start, box.count, {}}, data.first(size)});
    data = data.subspan(size);
  }
  const auto result = Session::get().client()->read(file.token(), file.num_records, file.ranks().order(), items);
  return result ? *result : NC_EREAD;
}

std::int64_t elements_of(const File &file, const staging::VariableLayout &layout) {
  return layout.extent_elements() * (layout.is_record ? file.num_records : 1);
}

/// Leaves the items that copies do not answer.
void answer_from_copies(File &file, std::vector<staging::Item> &items) {
  const auto ask = [&](const auto &layout, auto elements, auto data) { return fetch(file, layout, elements, data); };
  std::erase_if(items, [&](const staging::Item &item) {
    return file.read_ahead.answer(item, file.identity, elements_of(file, *item.layout), ask);
  });
}

}  // namespace

int read(File &file, std::span<const Request> requests) {
  if (total_bytes(requests) == 0) return NC_NOERR;
  auto items = items_of(requests);
  const auto bytes = covered_bytes(items);
  answer_from_copies(file, items);
  if (items.empty()) return file.get_bytes += bytes, NC_NOERR;
  auto result = Session::get().client()->read(file.token(), file.num_records, file.ranks().order(), items);
  if (!result) return file.lost(result.error(), doing(file, "reading", requests), NC_EREAD);
  if (*result == NC_NOERR) file.get_bytes += bytes;
  return *result;
}

int deliver(Request &request) {
  if (request.layout.is_external()) return NC_NOERR;
  return request.layout.unpack(request.external, *request.variable);
}

}  // namespace interpose
