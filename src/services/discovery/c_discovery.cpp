// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/discovery.h>

#include <nssi/c/runtime.hpp>
#include <nssi/discovery.hpp>

using namespace nssi::c_runtime;
using nssi::Status;

namespace {

template <class Use> int with_text(const nssi_rt_runtime *runtime, const char *text, const char *name, Use use) {
  return guarded([&]() -> Status {
    if (!is_open(runtime)) return invalid("the runtime is null or closed");
    if (text == nullptr) return invalid(std::string(name) + " is null");
    return use(*runtime->home->runtime);
  });
}

}  // namespace

int nssi_rt_connect_to(nssi_rt_runtime *runtime, const char *what, int32_t timeout_ms, uint64_t *peer) {
  return with_text(runtime, what, "what", [&](nssi::Runtime &it) -> Status {
    if (peer == nullptr) return invalid("peer is null");
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    const auto connected = nssi::connect_to(it, what, *deadline);
    if (!connected.ok()) return connected.error();
    *peer = connected->value;
    return {};
  });
}

int nssi_rt_find(nssi_rt_runtime *runtime, const char *what, int32_t timeout_ms,
                 void (*use)(const char *url, void *context), void *context, uint64_t *count) {
  return with_text(runtime, what, "what", [&](nssi::Runtime &it) -> Status {
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    const auto places = nssi::find(it, what, *deadline);
    if (!places.ok()) return places.error();
    if (use != nullptr)
      for (const auto &place : *places) use(place.url.c_str(), context);
    if (count != nullptr) *count = places->size();
    return {};
  });
}

int nssi_rt_announce(nssi_rt_runtime *runtime, const char *where, const char *kind, int32_t timeout_ms) {
  return with_text(runtime, where, "where", [&](nssi::Runtime &it) -> Status {
    nssi::AnnounceOptions options;
    if (kind != nullptr) options.kind = kind;
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    auto announced = nssi::announce(it, where, options, *deadline);
    if (!announced.ok()) return announced.error();
    runtime->home->keep(std::make_shared<nssi::Announcement>(*std::move(announced)));
    return {};
  });
}
