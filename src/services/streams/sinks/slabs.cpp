// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/slabs.hpp"

#include <future>

namespace nessie::streams::sinks {

Status copy_slabs(Step &step, const Variable &variable, const PutSlab &put) {
  const auto all = whole(variable.shape);
  auto now = slab_for(all, variable.type);
  const auto get = [&](const Box &box, std::vector<std::byte> &slab) {
    return step.get(variable, box, std::span(slab).first(elements_of(box) * size_of(variable.type)));
  };
  ::streams::Slices slices(to_args(all), size_of(variable.type), kSlabBytes);
  if (slices.done()) return {};
  auto box = from_args(slices.slice());
  auto got = get(box, now);
  std::vector<std::byte> next;
  for (slices.next(); got.ok() && !slices.done(); slices.next()) {
    next.resize(now.size());
    const auto next_box = from_args(slices.slice());
    auto ahead = std::async(std::launch::async, get, std::cref(next_box), std::ref(next));
    const auto done = put(box, now.data());
    got = ahead.get();
    if (!done.ok()) return done;
    std::swap(now, next);
    box = next_box;
  }
  return got.ok() ? put(box, now.data()) : got;
}

}  // namespace nessie::streams::sinks
