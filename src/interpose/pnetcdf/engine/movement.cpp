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
  for (const Request &request : requests)
    if (!request.external.empty())
      items.push_back({&request.variable->layout, request.region.pieces, request.external});
  return items;
}

std::int64_t total_bytes(std::span<const Request> requests) {
  std::int64_t total = 0;
  for (const Request &request : requests) total += static_cast<std::int64_t>(request.external.size());
  return total;
}

void note_fixed(File &file, std::span<const Request> requests) {
  const auto is_fixed = [](const Request &request) {
    return !request.external.empty() && !request.variable->layout.is_record;
  };
  file.has_put_fixed = file.has_put_fixed || std::ranges::any_of(requests, is_fixed);
}

/// Whether an element may be in several of the pieces.
bool may_overlap(const std::vector<const Request *> &sorted) {
  const Request *last = nullptr;
  for (const Request *request : sorted) {
    if (!request->region.is_ascending) return true;
    const bool meets = last != nullptr && last->variable == request->variable &&
                       request->region.bounds.begin < last->region.bounds.end;
    if (meets) return true;
    last = request;
  }
  return false;
}

/// Bytes of the file that the requests meet. Natively, what several requests of one call write or read is written or
/// read, and counted, once.
std::int64_t covered_bytes(std::span<const Request> requests) {
  std::vector<const Request *> sorted;
  for (const auto &request : requests)
    if (!request.external.empty()) sorted.push_back(&request);
  std::ranges::sort(sorted, {}, [](const Request *request) {
    return std::pair(request->variable->layout.varid, request->region.bounds.begin);
  });
  if (!may_overlap(sorted)) return total_bytes(requests);
  std::int64_t bytes = 0;
  std::vector<staging::Piece> pieces;
  for (auto request = sorted.begin(); request != sorted.end();) {
    const auto &layout = (*request)->variable->layout;
    pieces.clear();
    for (; request != sorted.end() && &(*request)->variable->layout == &layout; ++request) {
      staging::Piece piece;
      for (staging::PieceReader reader((*request)->region.pieces); reader.next(piece);) pieces.push_back(piece);
    }
    bytes += staging::covered_elements(layout, pieces) * layout.element_bytes;
  }
  return bytes;
}

std::string doing(File &file, const char *what, std::span<const Request> requests) {
  char name[NC_MAX_NAME + 1] = "";
  if (requests.empty()) return what;
  ncmpi_inq_varname(file.mirror.id(), requests.front().variable->layout.varid, name);
  return fmt::format("{} variable {}", what, name);
}

}  // namespace

// In a collective call also a rank that has nothing to write says so: the servers may wait for the parts of all.
int write(File &file, std::span<const Request> requests) {
  if (file.independent) note_fixed(file, requests);
  const auto total = total_bytes(requests);
  const bool has_others = file.ranks().size() > 1;
  if (total == 0 && (file.independent || !has_others)) return NC_NOERR;
  const auto bytes = covered_bytes(requests);
  auto &order = file.ranks().order();
  order.in_order = bytes < total || (file.independent && has_others);
  order.is_collective = !file.independent && has_others;
  auto result = Session::get().client()->write(file.token(), file.num_records, order, items_of(requests));
  if (total > 0 && result && *result == NC_NOERR && !boards().note_write(file.identity))
    result = Session::get().client()->finish_writes(file.token());
  if (!result) return file.lost(result.error(), doing(file, "writing", requests), NC_EWRITE);
  const int error = *result != NC_NOERR ? *result : file.take_error();
  if (error == NC_NOERR) file.put_bytes += bytes;
  return error;
}

namespace {

/// Reads a run of elements, which may be of several boxes.
int fetch(File &file, const staging::VariableLayout &layout, staging::Interval elements, std::span<std::byte> data) {
  std::vector<staging::Item> items;
  for (const auto &box : boxes_of(layout, elements)) {
    const auto size = static_cast<std::size_t>(box.elements() * layout.element_bytes);
    items.push_back({&layout, staging::Piece{layout.varid, box.start, box.count, {}}, data.first(size)});
    data = data.subspan(size);
  }
  auto &order = file.ranks().order();
  order.is_collective = false;
  const auto result = Session::get().client()->read(file.token(), file.num_records, order, items);
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
  const auto bytes = covered_bytes(requests);
  answer_from_copies(file, items);
  if (items.empty()) return file.get_bytes += bytes, NC_NOERR;
  auto &order = file.ranks().order();
  order.is_collective = !file.independent && file.ranks().size() > 1;
  auto result = Session::get().client()->read(file.token(), file.num_records, order, items);
  if (!result) return file.lost(result.error(), doing(file, "reading", requests), NC_EREAD);
  if (*result == NC_NOERR) file.get_bytes += bytes;
  return *result;
}

int deliver(Request &request) {
  if (request.layout.is_external()) return NC_NOERR;
  return request.layout.unpack(request.external, *request.variable);
}

}  // namespace interpose
