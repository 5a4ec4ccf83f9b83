// SPDX-License-Identifier: BSD-3-Clause
// A service of one's own in nessied, in C++: a shared object, not linked to Nessie, that defines its entry point thus:
//
//     class Counter : public nessie::Provider, COUNTER::ONE::Server { … };
//     NESSIE_MODULE("counter", Counter)
//
// Counter has `static nessie::Result<std::unique_ptr<nessie::Provider>> start(const nessie::ProviderContext &)`. It is
// compiled with the compiler and the C++ library that nessied was built with. docs/hosting.md.
#pragma once

#include <nessie/module.h>
#include <nessie/provider.hpp>

#include <exception>

namespace nessie {

/// The same provider, as C sees it. The context lives as long as the provider.
const ProviderContext &context_of(nessie_provider *provider);

namespace module {

template <class P> int start(nessie_provider *provider, void **state) {
  try {
    auto started = P::start(context_of(provider));
    if (started.ok()) return *state = started->release(), NESSIE_OK;
    nessie_provider_fail(provider, started.error().message.c_str());
    return static_cast<int>(started.error().code);
  } catch (const std::exception &error) {
    nessie_provider_fail(provider, error.what());
    return NESSIE_INTERNAL;
  }
}

inline Provider *provider_of(void *state) { return static_cast<Provider *>(state); }
inline const char *describe(void *state) {
  static thread_local std::string text;
  return (text = provider_of(state)->describe()).c_str();
}
template <class P> void peer_lost(void *state, std::uint64_t peer) {
  static_cast<P *>(provider_of(state))->peer_lost({peer});
}
inline void quiesce(void *state) { provider_of(state)->quiesce(); }
inline void stop(void *state) { provider_of(state)->stop(); }
inline void destroy(void *state) { delete provider_of(state); }

}  // namespace module
}  // namespace nessie

/// Defines the entry point. `type`: of the module's providers; `P`: their class. A third argument says which roles they
/// use others in, as nessie_module::uses.
#define NESSIE_MODULE(type, P, ...)                                    \
  extern "C" const nessie_module *nessie_module_entry(void) {          \
    static const nessie_module module = {NESSIE_MODULE_ABI,            \
                                         NESSIE_MODULE_VERSION,        \
                                         type,                         \
                                         "" __VA_ARGS__,               \
                                         nessie::module::start<P>,     \
                                         nessie::module::describe,     \
                                         nessie::module::peer_lost<P>, \
                                         nessie::module::quiesce,      \
                                         nessie::module::stop,         \
                                         nessie::module::destroy};     \
    return &module;                                                    \
  }
