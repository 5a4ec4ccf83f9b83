// SPDX-License-Identifier: BSD-3-Clause
// Boxes in pieces that memory has room for.
#pragma once

#include "services/streams/geometry.hpp"
#include "services/streams/sinks/step.hpp"

namespace nessie::streams::sinks {

inline ::streams::BoxArgs to_args(const Box &box) {
  ::streams::BoxArgs args;
  args.start.assign(box.start.begin(), box.start.end());
  args.count.assign(box.count.begin(), box.count.end());
  return args;
}

inline Box from_args(const ::streams::BoxArgs &args) {
  return {{args.start.begin(), args.start.end()}, {args.count.begin(), args.count.end()}};
}

inline std::size_t elements_of(const Box &box) {
  return static_cast<std::size_t>(::streams::elements_of(to_args(box)));
}

/// Calls `each` with boxes that follow each other in `box` in C order, of at most so many bytes, until one is not ok.
template <class Each> Status for_each_slab(const Box &box, Type type, std::size_t most_bytes, Each each) {
  for (::streams::Slices slices(to_args(box), size_of(type), most_bytes); !slices.done(); slices.next())
    if (auto done = each(from_args(slices.slice())); !done.ok()) return done;
  return {};
}
template <class Each> Status for_each_slab(const Box &box, Type type, Each each) {
  return for_each_slab(box, type, kSlabBytes, std::move(each));
}

/// All of its elements have that value.
inline void fill_slab(std::span<std::byte> slab, const std::vector<std::byte> &value) {
  ::streams::fill_with(slab.data(), static_cast<std::int64_t>(slab.size() / value.size()), value);
}

/// Gets all of a variable slab by slab, and has `put` write each, while the next one is being got.
using PutSlab = std::function<Status(const Box &box, const void *data)>;
Status copy_slabs(Step &step, const Variable &variable, const PutSlab &put);

/// Memory for one slab of the box.
inline std::vector<std::byte> slab_for(const Box &box, Type type) {
  return std::vector<std::byte>(std::min(elements_of(box) * size_of(type), std::max(kSlabBytes, size_of(type))));
}

}  // namespace nessie::streams::sinks
