// SPDX-License-Identifier: BSD-3-Clause
// The shared space.
#include <services/streams/c/handles.hpp>

using namespace nessie::streams;
using namespace nessie::streams::c;
using nessie::Deadline;
using nessie::Status;

namespace {

/// Calls `use` with the space and the deadline.
template <class Use> int with_space(nessie_space *space, const char *name, std::int32_t timeout_ms, Use use) {
  return guarded([&]() -> Status {
    if (!is_open(space)) return invalid("the space is null or closed");
    if (name == nullptr) return invalid("name is null");
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    return use(*space->space, *deadline);
  });
}

/// And with the type and the box.
template <class Use>
int with_box_in_space(nessie_space *space, const char *name, std::int32_t type, std::int32_t ndims,
                      const std::int64_t *start, const std::int64_t *count, std::int32_t timeout_ms, Use use) {
  return with_space(space, name, timeout_ms, [&](Space &it, Deadline deadline) -> Status {
    const auto of = type_of(type);
    if (!of.ok()) return of.error();
    const auto box = box_of(ndims, start, count);
    return box.ok() ? use(it, *of, *box, deadline) : Status(box.error());
  });
}

}  // namespace

int nessie_space_open(const char *at, int32_t timeout_ms, nessie_space **space) {
  return guarded([&]() -> Status {
    if (space == nullptr) return invalid("space is null");
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    auto opened = Space::open(text_of(at), *deadline);
    if (!opened.ok()) return opened.error();
    auto one = Handles<nessie_space>::take();
    one->space.emplace(*std::move(opened));
    *space = Handles<nessie_space>::open(std::move(one));
    return {};
  });
}

int nessie_space_close(nessie_space *space) {
  return guarded([&]() -> Status {
    if (!Handles<nessie_space>::close(space)) return invalid("the space is null or closed");
    space->space.reset();
    Handles<nessie_space>::give_back(space);
    return {};
  });
}

int nessie_space_put(nessie_space *space, const char *name, uint64_t version, int32_t type, int32_t ndims,
                     const int64_t *start, const int64_t *count, const void *data, int32_t timeout_ms) {
  return with_box_in_space(space, name, type, ndims, start, count, timeout_ms,
                           [&](Space &it, Type of, const Box &box, Deadline deadline) -> Status {
                             const auto status = check_data(box, data);
                             return status.ok() ? it.put(name, version, of, box, data, deadline) : status;
                           });
}

int nessie_space_get(nessie_space *space, const char *name, uint64_t version, int32_t type, int32_t ndims,
                     const int64_t *start, const int64_t *count, void *destination, uint64_t size_bytes,
                     int32_t timeout_ms) {
  return with_box_in_space(space, name, type, ndims, start, count, timeout_ms,
                           [&](Space &it, Type of, const Box &box, Deadline deadline) -> Status {
                             if (destination == nullptr && size_bytes != 0) return invalid("destination is null");
                             return it.get(name, version, of, box, destination, size_bytes, deadline);
                           });
}

int nessie_space_newest(nessie_space *space, const char *name, int32_t timeout_ms, uint64_t *version) {
  return with_space(space, name, timeout_ms, [&](Space &it, Deadline deadline) -> Status {
    if (version == nullptr) return invalid("version is null");
    const auto newest = it.newest(name, deadline);
    if (!newest.ok()) return newest.error();
    *version = *newest;
    return {};
  });
}
