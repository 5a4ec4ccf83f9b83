// SPDX-License-Identifier: BSD-3-Clause
// What module nessie_streams is made on: arrays of Fortran, of any rank, as boxes of nessie/streams.h. Dimensions are
// reversed, positions count from 0 there; what lies in memory is the same.
#include <nessie/streams.h>
#include <nssi/c/runtime.hpp>

#include <ISO_Fortran_binding.h>

#include <algorithm>
#include <cstring>
#include <numeric>

using nssi::c_runtime::fail;
using nssi::c_runtime::guarded;
using nssi::c_runtime::invalid;

namespace {

using Array = CFI_cdesc_t;
using Extents = std::vector<std::int64_t>;

struct Box {
  Extents start, count;
  std::int32_t ndims() const { return static_cast<std::int32_t>(count.size()); }
};

std::size_t extent(const Array &array, int dimension) { return static_cast<std::size_t>(array.dim[dimension].extent); }

std::size_t size_bytes(const Array &array) {
  auto size = array.elem_len;
  for (int i = 0; i < array.rank; ++i) size *= extent(array, i);
  return size;
}

bool is_contiguous(const Array &array) {
  auto step = static_cast<CFI_index_t>(array.elem_len);
  for (int i = 0; i < array.rank; step *= array.dim[i++].extent)
    if (array.dim[i].extent > 1 && array.dim[i].sm != step) return false;
  return true;
}

/// Calls use(where, bytes) with each run of it that is in one piece, in Fortran's order.
template <class Use> void for_each_run(const Array &array, Use use) {
  const auto step = [&](auto &self, std::byte *at, int dimension) -> void {
    if (dimension < 0) return use(at, array.elem_len);
    const auto &it = array.dim[dimension];
    if (dimension == 0 && it.sm == static_cast<CFI_index_t>(array.elem_len))
      return use(at, array.elem_len * extent(array, 0));
    for (CFI_index_t i = 0; i < it.extent; ++i) self(self, at + i * it.sm, dimension - 1);
  };
  if (size_bytes(array) != 0) step(step, static_cast<std::byte *>(array.base_addr), array.rank - 1);
}

void gather(const Array &array, void *to) {
  for_each_run(array, [to = static_cast<std::byte *>(to)](const std::byte *at, std::size_t size) mutable {
    std::memcpy(to, at, size);
    to += size;
  });
}

void scatter(const void *from, const Array &array) {
  for_each_run(array, [from = static_cast<const std::byte *>(from)](std::byte *at, std::size_t size) mutable {
    std::memcpy(at, from, size);
    from += size;
  });
}

// --- types ------------------------------------------------------------------------------------------------------------

/// Of Fortran's numbers, which have signs; 0: it has no such elements.
std::int32_t type_of(const Array &array) {
  const auto type = array.type;
  if (type == CFI_type_int8_t) return NESSIE_STREAM_INT8;
  if (type == CFI_type_char) return NESSIE_STREAM_CHAR;
  if (type == CFI_type_int16_t) return NESSIE_STREAM_INT16;
  if (type == CFI_type_int32_t) return NESSIE_STREAM_INT32;
  if (type == CFI_type_float) return NESSIE_STREAM_FLOAT;
  if (type == CFI_type_double) return NESSIE_STREAM_DOUBLE;
  return type == CFI_type_int64_t ? NESSIE_STREAM_INT64 : 0;
}

/// Numbers without sign are held by those with one.
std::int32_t with_sign(std::int32_t type) {
  switch (type) {
    case NESSIE_STREAM_UINT8: return NESSIE_STREAM_INT8;
    case NESSIE_STREAM_UINT16: return NESSIE_STREAM_INT16;
    case NESSIE_STREAM_UINT32: return NESSIE_STREAM_INT32;
    case NESSIE_STREAM_UINT64: return NESSIE_STREAM_INT64;
    default: return type;
  }
}

/// The code of what was noted.
int check_type(const Array &array, std::int32_t type, const char *what) {
  if (type_of(array) == with_sign(type)) return NESSIE_OK;
  return fail(invalid(std::string(what) + " is of type " + nessie_stream_type_name(type) + ", and not " +
                      nessie_stream_type_name(type_of(array)) + ": convert the value"));
}

// --- boxes ------------------------------------------------------------------------------------------------------------

/// kInvalidArgument: not default integers, or those of 8 bytes.
nessie::Result<Extents> reversed(const Array &list, std::int64_t first) {
  Extents made;
  for (auto i = list.dim[0].extent; i-- > 0;) {
    const auto *at = static_cast<const std::byte *>(list.base_addr) + i * list.dim[0].sm;
    if (list.type == CFI_type_int32_t)
      made.push_back(*reinterpret_cast<const std::int32_t *>(at) - first);
    else if (list.type == CFI_type_int64_t)
      made.push_back(*reinterpret_cast<const std::int64_t *>(at) - first);
    else
      return invalid("a shape, start or count has integers of 4 or 8 bytes");
  }
  return made;
}

/// Of an array, elements in each dimension. Of texts their length is the first, unless the array of the stream has as
/// many dimensions as this one.
Extents shape_of(const Array &array, std::int32_t type, std::int32_t ndims) {
  Extents made;
  for (int i = array.rank; i-- > 0;) made.push_back(array.dim[i].extent);
  const bool has_length = array.elem_len != 1 || ndims == array.rank + 1;
  if (type == NESSIE_STREAM_CHAR && has_length) made.push_back(static_cast<std::int64_t>(array.elem_len));
  return made;
}

std::size_t elements_of(const Extents &count) {
  return std::accumulate(count.begin(), count.end(), std::size_t{1}, [](std::size_t product, std::int64_t each) {
    return product * static_cast<std::size_t>(each);
  });
}

/// kInvalidArgument: `count` says another number of elements than the array has.
nessie::Result<Extents> count_of(const Array &array, std::int32_t type, std::int32_t ndims, const Array *count) {
  auto shape = shape_of(array, type, ndims);
  if (count == nullptr) return shape;
  auto made = reversed(*count, 0);
  if (!made.ok() || elements_of(*made) == elements_of(shape)) return made;
  return invalid("count says " + std::to_string(elements_of(*made)) + " elements, and the array has " +
                 std::to_string(elements_of(shape)));
}

/// What an array is put to, or got from. Of `ndims` dimensions; -1: as it says itself. Dimensions that `start` has
/// beyond the array's have one element.
nessie::Result<Box> box_of(const Array &array, std::int32_t type, std::int32_t ndims, const Array *start,
                           const Array *count) {
  auto so_many = count_of(array, type, ndims, count);
  if (!so_many.ok()) return so_many.error();
  Box box{{}, *std::move(so_many)};
  if (start == nullptr) {
    box.start.resize(box.count.size());
    return box;
  }
  auto from = reversed(*start, 1);
  if (!from.ok()) return from.error();
  box.start = *std::move(from);
  if (box.start.size() < box.count.size()) return invalid("start has fewer dimensions than the array");
  if (count == nullptr) box.count.insert(box.count.begin(), box.start.size() - box.count.size(), 1);
  if (box.start.size() != box.count.size()) return invalid("start and count have different numbers of dimensions");
  return box;
}

/// Without an array: of `start` and `count`; those that are absent, of the whole variable.
nessie::Result<Box> box_in(const nessie_stream_variable &variable, const Array *start, const Array *count) {
  Box box{Extents(static_cast<std::size_t>(variable.ndims)), Extents(variable.shape, variable.shape + variable.ndims)};
  if (start != nullptr) {
    auto from = reversed(*start, 1);
    if (!from.ok()) return from.error();
    box.start = *std::move(from);
  }
  if (count != nullptr) {
    auto so_many = reversed(*count, 0);
    if (!so_many.ok()) return so_many.error();
    box.count = *std::move(so_many);
  } else {
    for (std::size_t i = 0; i < std::min(box.start.size(), box.count.size()); ++i) box.count[i] -= box.start[i];
  }
  if (box.start.size() != box.count.size()) return invalid("start and count have different numbers of dimensions");
  return box;
}

/// Finds the variable, and calls `use` with the box that the array is of it: use(box) gives a code.
template <class Use>
int with_box(nessie_stream *stream, const char *variable, const Array &array, const Array *start, const Array *count,
             Use use) {
  return guarded([&]() -> int {
    const nessie_stream_variable *found = nullptr;
    if (const int code = nessie_stream_find(stream, variable, &found); code != NESSIE_OK) return code;
    if (const int code = check_type(array, found->type, variable); code != NESSIE_OK) return code;
    const auto box = box_of(array, found->type, found->ndims, start, count);
    return box.ok() ? use(*box) : fail(box.error());
  });
}

/// Memory with the array's elements in one piece: it, or a copy.
class Gathered {
 public:
  explicit Gathered(const Array &array) : begin_(array.base_addr) {
    if (is_contiguous(array)) return;
    copy_.resize(size_bytes(array));
    gather(array, copy_.data());
    begin_ = copy_.data();
  }
  const void *begin() const { return begin_; }

 private:
  const void *begin_;
  std::vector<std::byte> copy_;
};

/// get(where) gives a code. What is got into a section of an array is copied there.
template <class Get> int get_into(const Array &array, Get get) {
  if (is_contiguous(array)) return get(array.base_addr);
  std::vector<std::byte> got(size_bytes(array));
  const int code = get(got.data());
  if (code == NESSIE_OK) scatter(got.data(), array);
  return code;
}

/// A pointer of Fortran's to a box at `memory`, whose rank is that of the box; one to texts has the length of each in
/// place of the first dimension.
void point_to(Array &pointer, void *memory, Box box) {
  static std::byte nowhere;
  if (pointer.type == CFI_type_char) pointer.elem_len = 1;
  if (pointer.type == CFI_type_char && box.ndims() == pointer.rank + 1) {
    pointer.elem_len = static_cast<std::size_t>(box.count.back());
    box.count.pop_back();
  }
  auto step = static_cast<CFI_index_t>(pointer.elem_len);
  pointer.base_addr = memory != nullptr ? memory : &nowhere;
  for (int i = 0; i < pointer.rank; step *= pointer.dim[i++].extent)
    pointer.dim[i] = {1, box.count[box.count.size() - 1 - static_cast<std::size_t>(i)], step};
}

bool can_point_to(const Array &pointer, const Box &box) {
  return box.ndims() == pointer.rank || (pointer.type == CFI_type_char && box.ndims() == pointer.rank + 1);
}

}  // namespace

extern "C" {

int nessie_fortran_stream_define(nessie_stream *stream, const char *name, std::int32_t type, const Array *shape,
                                 const Array *fill, std::int32_t is_constant) {
  return guarded([&]() -> int {
    const auto extents = reversed(*shape, 0);
    if (!extents.ok()) return fail(extents.error());
    if (fill != nullptr)
      if (const int code = check_type(*fill, type, name); code != NESSIE_OK) return code;
    const nessie_stream_variable variable{name,
                                          type,
                                          static_cast<std::int32_t>(extents->size()),
                                          extents->data(),
                                          fill != nullptr ? fill->base_addr : nullptr,
                                          is_constant};
    return nessie_stream_define(stream, &variable);
  });
}

int nessie_fortran_stream_set_attribute(nessie_stream *stream, const char *variable, const char *name,
                                        const Array *value) {
  return guarded([&]() -> int {
    const Gathered gathered(*value);
    const auto type = type_of(*value);
    const nessie_stream_attribute attribute{variable, name, type, size_bytes(*value) / nessie_stream_type_size(type),
                                            gathered.begin()};
    return nessie_stream_set_attribute(stream, &attribute);
  });
}

int nessie_fortran_stream_get_attribute(nessie_stream *stream, const char *variable, const char *name,
                                        const Array *value) {
  return guarded([&]() -> int {
    const nessie_stream_attribute *found = nullptr;
    if (const int code = nessie_stream_find_attribute(stream, variable, name, &found); code != NESSIE_OK) return code;
    if (const int code = check_type(*value, found->type, name); code != NESSIE_OK) return code;
    if (size_bytes(*value) != found->count * nessie_stream_type_size(found->type))
      return fail(nessie::Code::kOutOfRange,
                  "the attribute has " + std::to_string(found->count) + " elements: give an array of as many");
    scatter(found->value, *value);
    return NESSIE_OK;
  });
}

int nessie_fortran_stream_put(nessie_stream *stream, const char *variable, const Array *array, const Array *start,
                              const Array *count) {
  return with_box(stream, variable, *array, start, count, [&](const Box &box) -> int {
    if (is_contiguous(*array))
      return nessie_stream_put(stream, variable, box.ndims(), box.start.data(), box.count.data(), array->base_addr);
    void *memory = nullptr;
    const int code = nessie_stream_span(stream, variable, box.ndims(), box.start.data(), box.count.data(), &memory);
    if (code == NESSIE_OK) gather(*array, memory);
    return code;
  });
}

int nessie_fortran_stream_put_lent(nessie_stream *stream, const char *variable, const Array *array, const Array *start,
                                   const Array *count) {
  return with_box(stream, variable, *array, start, count, [&](const Box &box) -> int {
    if (is_contiguous(*array))
      return nessie_stream_put_lent(stream, variable, box.ndims(), box.start.data(), box.count.data(),
                                    array->base_addr);
    return fail(
        invalid("the elements of the array do not lie one after the other in memory: put() it, or lend all of "
                "it, or a contiguous section"));
  });
}

int nessie_fortran_stream_span(nessie_stream *stream, const char *variable, Array *pointer, const Array *start,
                               const Array *count) {
  return guarded([&]() -> int {
    const nessie_stream_variable *found = nullptr;
    if (const int code = nessie_stream_find(stream, variable, &found); code != NESSIE_OK) return code;
    if (const int code = check_type(*pointer, found->type, variable); code != NESSIE_OK) return code;
    const auto box = box_in(*found, start, count);
    if (!box.ok()) return fail(box.error());
    if (!can_point_to(*pointer, *box)) return fail(invalid("the pointer has another rank than the box"));
    void *memory = nullptr;
    const int code = nessie_stream_span(stream, variable, box->ndims(), box->start.data(), box->count.data(), &memory);
    if (code == NESSIE_OK) point_to(*pointer, memory, *box);
    return code;
  });
}

int nessie_fortran_stream_get(nessie_stream *stream, const char *variable, const Array *array, const Array *start,
                              const Array *count, std::int32_t timeout_ms) {
  return with_box(stream, variable, *array, start, count, [&](const Box &box) -> int {
    return get_into(*array, [&](void *to) {
      return nessie_stream_get(stream, variable, box.ndims(), box.start.data(), box.count.data(), to,
                               size_bytes(*array), timeout_ms);
    });
  });
}

int nessie_fortran_stream_figures(nessie_stream *stream, const char *variable, const Array *start, const Array *count,
                                  std::int32_t timeout_ms, nessie_stream_figures_result *figures) {
  return guarded([&]() -> int {
    const nessie_stream_variable *found = nullptr;
    if (const int code = nessie_stream_find(stream, variable, &found); code != NESSIE_OK) return code;
    const auto box = box_in(*found, start, count);
    if (!box.ok()) return fail(box.error());
    return nessie_stream_figures(stream, variable, box->ndims(), box->start.data(), box->count.data(), timeout_ms,
                                 figures);
  });
}

int nessie_fortran_space_put(nessie_space *space, const char *name, std::uint64_t version, const Array *array,
                             const Array *start, const Array *count, std::int32_t timeout_ms) {
  return guarded([&]() -> int {
    const auto type = type_of(*array);
    const auto box = box_of(*array, type, -1, start, count);
    if (!box.ok()) return fail(box.error());
    const Gathered gathered(*array);
    return nessie_space_put(space, name, version, type, box->ndims(), box->start.data(), box->count.data(),
                            gathered.begin(), timeout_ms);
  });
}

int nessie_fortran_space_get(nessie_space *space, const char *name, std::uint64_t version, const Array *array,
                             const Array *start, const Array *count, std::int32_t timeout_ms) {
  return guarded([&]() -> int {
    const auto type = type_of(*array);
    const auto box = box_of(*array, type, -1, start, count);
    if (!box.ok()) return fail(box.error());
    return get_into(*array, [&](void *to) {
      return nessie_space_get(space, name, version, type, box->ndims(), box->start.data(), box->count.data(), to,
                              size_bytes(*array), timeout_ms);
    });
  });
}

}  // extern "C"
