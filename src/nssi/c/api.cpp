// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/c/api.hpp>

#include <nnti/c/handles.hpp>

#include <cstring>
#include <limits>
#include <map>
#include <mutex>

namespace nssi::c_api {
namespace {

struct Opened {
  std::shared_ptr<Runtime> runtime;
  int uses = 0;
};

std::mutex opened_mutex;
std::map<nssi_rpc_transport, Opened> &opened() {
  static std::map<nssi_rpc_transport, Opened> all;
  return all;
}

std::string &last_error() {
  static thread_local std::string text;
  return text;
}

Result<RuntimeOptions> options_for(nssi_rpc_transport id) {
  RuntimeOptions options;
  auto transports = nnti::transports_of(static_cast<NNTI_transport_id_t>(id));
  if (!transports) return Error{Code::kUnsupported, "Nessie has no such transport; use NSSI_DEFAULT_TRANSPORT"};
  auto config = nessie::Config::load();
  if (!config.ok()) return config.error();
  options.endpoint.transports = *transports;
  options.endpoint.config = *std::move(config);
  options.fiber_stack_bytes = kStubStackBytes;
  return options;
}

}  // namespace

int fail(int code, std::string message) {
  last_error() = std::move(message);
  return code;
}

int fail(const Error &error) { return fail(nnti::result_of(error.code), error.message); }

std::shared_ptr<Runtime> runtime_of(nssi_rpc_transport transport) {
  std::lock_guard lock(opened_mutex);
  auto it = opened().find(transport);
  if (it != opened().end()) return it->second.runtime;
  (void)fail(NSSI_ENOTINIT, "the transport is not open: call nssi_init first");
  return nullptr;
}

std::optional<Bytes> xdr_encode(xdrproc_t proc, void *value, std::size_t head) {
  const std::size_t size = ::xdr_sizeof(proc, value);
  if (size > std::numeric_limits<unsigned>::max()) return std::nullopt;
  Bytes bytes(head + size);
  XDR stream;
  ::xdrmem_create(&stream, reinterpret_cast<char *>(bytes.data()) + head, static_cast<unsigned>(size), XDR_ENCODE);
  if (!proc(&stream, value)) return std::nullopt;
  bytes.resize(head + xdr_getpos(&stream));
  return bytes;
}

bool xdr_decode(xdrproc_t proc, std::span<const std::byte> bytes, void *value) {
  if (bytes.size() > std::numeric_limits<unsigned>::max()) return false;
  XDR stream;
  auto *begin = reinterpret_cast<char *>(const_cast<std::byte *>(bytes.data()));  // XDR_DECODE only reads
  ::xdrmem_create(&stream, begin, static_cast<unsigned>(bytes.size()), XDR_DECODE);
  return proc(&stream, value) && xdr_getpos(&stream) == bytes.size();
}

}  // namespace nssi::c_api

using namespace nssi::c_api;

int nssi_init(const nssi_rpc_transport transport) {
  return guarded([&]() -> int {
    std::lock_guard lock(opened_mutex);
    auto it = opened().find(transport);
    if (it != opened().end()) return ++it->second.uses, NSSI_OK;
    auto options = options_for(transport);
    if (!options.ok()) return fail(options.error());
    auto runtime = nssi::Runtime::open(*std::move(options));
    if (!runtime.ok()) return fail(runtime.error());
    add_kill(**runtime);
    opened()[transport] = {*std::move(runtime), 1};
    return NSSI_OK;
  });
}

int nssi_fini(const nssi_rpc_transport transport) {
  return guarded([&]() -> int {
    std::shared_ptr<nssi::Runtime> last;
    {
      std::lock_guard lock(opened_mutex);
      auto it = opened().find(transport);
      if (it == opened().end()) return fail(NSSI_ENOTINIT, "the transport is not open");
      if (--it->second.uses != 0) return NSSI_OK;
      last = std::move(it->second.runtime);
      opened().erase(it);
    }
    forget_calls(*last);
    forget_service(*last);
    return NSSI_OK;
  });
}

int nssi_rpc_init(const nssi_rpc_transport transport, const nssi_rpc_encode, const char *url) {
  if (url != nullptr && *url != '\0')
    return fail(NSSI_EINVAL, "give NULL: where to listen is a setting (nnti.ofi.address)");
  return nssi_init(transport);
}

int nssi_rpc_fini(const nssi_rpc_transport transport) { return nssi_fini(transport); }

int nssi_get_url(const nssi_rpc_transport transport, char *url, const uint32_t maxlen) {
  return guarded([&]() -> int {
    if (url == nullptr) return fail(NSSI_EINVAL, "url is NULL");
    auto runtime = runtime_of(transport);
    if (!runtime) return NSSI_ENOTINIT;
    const auto &text = runtime->url();
    if (text.size() >= maxlen) return fail(NSSI_EMSGSIZE, "the URL needs a larger buffer; NSSI_URL_LEN is enough");
    std::memcpy(url, text.c_str(), text.size() + 1);
    return NSSI_OK;
  });
}

const char *nssi_last_error(void) { return last_error().c_str(); }

const char *nssi_err_str(const int rc) {
  switch (rc) {
#define NSSI_NAME_OF(name, number, number_in_trios) \
  case number: return "NSSI_" #name;
    NESSIE_RESULTS(NSSI_NAME_OF, NESSIE_NO_RESULT)
#undef NSSI_NAME_OF
    default: return "unknown NSSI code";
  }
}
