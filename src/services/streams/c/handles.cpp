// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/c/handles.hpp>

#include <algorithm>

namespace nessie::streams::c {

Result<Type> type_of(std::int32_t type) {
  if (size_of(static_cast<Type>(type)) == 0)
    return invalid(std::to_string(type) + " is no type: use one of enum nessie_stream_type");
  return static_cast<Type>(type);
}

Result<Extents> extents_of(std::int32_t ndims, const std::int64_t *extents) {
  if (ndims < 0 || ndims > NESSIE_STREAM_MOST_DIMENSIONS)
    return invalid(std::to_string(ndims) + " dimensions: there may be 0 to 16");
  if (ndims > 0 && extents == nullptr) return invalid("a shape, start or count is null, and there are dimensions");
  return Extents(extents, extents + ndims);
}

Result<Box> box_of(std::int32_t ndims, const std::int64_t *start, const std::int64_t *count) {
  auto from = extents_of(ndims, start);
  if (!from.ok()) return from.error();
  auto so_many = extents_of(ndims, count);
  if (!so_many.ok()) return so_many.error();
  return Box{*std::move(from), *std::move(so_many)};
}

Status check_data(const Box &box, const void *data) {
  const bool is_empty = std::ranges::find(box.count, 0) != box.count.end();
  return data == nullptr && !is_empty ? Status(invalid("data is null")) : Status();
}

namespace {

std::vector<std::byte> bytes_of(const void *begin, std::size_t size_bytes) {
  const auto *bytes = static_cast<const std::byte *>(begin);
  return {bytes, bytes + size_bytes};
}

}  // namespace

Result<Variable> variable_of(const nessie_stream_variable &from) {
  if (from.name == nullptr) return invalid("the variable's name is null");
  const auto type = type_of(from.type);
  if (!type.ok()) return type.error();
  auto shape = extents_of(from.ndims, from.shape);
  if (!shape.ok()) return shape.error();
  Variable made{from.name, *type, *std::move(shape), {}, from.is_constant != 0};
  if (from.fill != nullptr) made.fill = bytes_of(from.fill, size_of(*type));
  return made;
}

Result<Attribute> attribute_of(const nessie_stream_attribute &from) {
  if (from.name == nullptr) return invalid("the attribute's name is null");
  if (from.value == nullptr && from.count != 0) return invalid("the attribute's value is null");
  const auto type = type_of(from.type);
  if (!type.ok()) return type.error();
  if (from.count > SIZE_MAX / size_of(*type)) return invalid("the attribute has more elements than memory has");
  return Attribute{text_of(from.variable), from.name, *type, bytes_of(from.value, from.count * size_of(*type))};
}

nessie_stream_variable view_of(const Variable &it) {
  return {it.name.c_str(), static_cast<std::int32_t>(it.type),         static_cast<std::int32_t>(it.shape.size()),
          it.shape.data(), it.fill.empty() ? nullptr : it.fill.data(), it.is_constant ? 1 : 0};
}

nessie_stream_attribute view_of(const Attribute &it) {
  return {it.variable.c_str(), it.name.c_str(), static_cast<std::int32_t>(it.type), it.value.size() / size_of(it.type),
          it.value.data()};
}

}  // namespace nessie::streams::c

using namespace nessie::streams;

const char *nessie_stream_last_error(void) { return nssi_rt_last_error(); }

uint64_t nessie_stream_type_size(int32_t type) { return size_of(static_cast<Type>(type)); }
const char *nessie_stream_type_name(int32_t type) {
  return nessie_stream_type_size(type) != 0 ? name_of(static_cast<Type>(type)) : "";
}
