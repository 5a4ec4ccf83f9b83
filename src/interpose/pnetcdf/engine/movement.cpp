// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/movement.hpp>

#include <interpose/pnetcdf/engine/file.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <fmt/format.h>

#include <numeric>

namespace interpose {

namespace {

std::size_t size_bytes(const staging::Piece &piece, int element_bytes) {
  const auto elements = std::accumulate(piece.count.begin(), piece.count.end(), std::int64_t{1}, std::multiplies<>());
  return static_cast<std::size_t>(elements) * static_cast<std::size_t>(element_bytes);
}

std::vector<staging::Item> items_of(std::span<const Request> requests) {
  std::vector<staging::Item> items;
  for (const Request &request : requests) {
    auto rest = request.external;
    for (const staging::Piece &piece : request.pieces) {
      const auto size = size_bytes(piece, request.variable->layout.element_bytes);
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

std::string doing(File &file, const char *what, std::span<const Request> requests) {
  char name[NC_MAX_NAME + 1] = "";
  ncmpi_inq_varname(file.mirror.id(), requests.front().variable->layout.varid, name);
  return fmt::format("{} variable {}", what, name);
}

}  // namespace

int write(File &file, std::span<const Request> requests) {
  if (total_bytes(requests) == 0) return NC_NOERR;
  const auto items = items_of(requests);
  auto result = Session::get().client()->start_write(file.token(), file.num_records, items).finish();
  if (!result) return file.lost(result.error(), doing(file, "writing", requests), NC_EWRITE);
  if (*result == NC_NOERR) file.put_bytes += total_bytes(requests);
  return *result;
}

int read(File &file, std::span<const Request> requests) {
  if (total_bytes(requests) == 0) return NC_NOERR;
  const auto items = items_of(requests);
  auto result = Session::get().client()->start_read(file.token(), file.num_records, items).finish();
  if (!result) return file.lost(result.error(), doing(file, "reading", requests), NC_EREAD);
  if (*result == NC_NOERR) file.get_bytes += total_bytes(requests);
  return *result;
}

int deliver(Request &request) {
  if (request.layout.is_external()) return NC_NOERR;
  return request.layout.unpack(request.external, *request.variable);
}

}  // namespace interpose
