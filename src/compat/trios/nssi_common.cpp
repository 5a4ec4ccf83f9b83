// SPDX-License-Identifier: BSD-3-Clause
// Trios_nssi_rpc.h, Trios_nssi_xdr.h.
#include <compat/trios/nssi_paper.hpp>

#include <Trios_nssi_client.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {

namespace paper = nssi::trios::paper;

struct Encoding {
  xdrproc_t args, data, result;
};

std::mutex mutex;
std::map<int, Encoding> encodings;

}  // namespace

log_level rpc_debug_level = LOG_UNDEFINED;
log_level nnti_debug_level = LOG_UNDEFINED;

const char *nssi_last_error(void) { return paper::last_error(); }
const char *nssi_err_str(const int rc) { return paper::name_of(rc); }

int nssi_rpc_init(const nssi_rpc_transport transport, const nssi_rpc_encode, const char *) {
  return nssi_init(transport);
}
int nssi_rpc_fini(const nssi_rpc_transport transport) { return nssi_fini(transport); }
int nssi_get_url(const nssi_rpc_transport transport, char *url, uint32_t maxlen) {
  return paper::get_url(transport, url, maxlen);
}

void *memdup(void *src, int size) {
  if (src == nullptr || size < 0) return nullptr;
  void *copy = std::malloc(static_cast<std::size_t>(size) + 1);
  if (copy != nullptr) std::memcpy(copy, src, static_cast<std::size_t>(size));
  return copy;
}

// --- encodings --------------------------------------------------------------------------------------------------------

int nssi_xdr_init(void) { return NSSI_OK; }
int nssi_xdr_fini(void) { return NSSI_OK; }
int register_service_encodings(void) { return NSSI_OK; }

int nssi_clear_xdr_encodings(void) {
  std::lock_guard lock(mutex);
  encodings.clear();
  return NSSI_OK;
}

int nssi_register_xdr_encoding(int opcode, xdrproc_t encode_args, xdrproc_t encode_data, xdrproc_t encode_result) {
  const int code = paper::register_encoding(opcode, encode_args, encode_result);
  if (code != NSSI_OK) return code;
  std::lock_guard lock(mutex);
  encodings[opcode] = {encode_args, encode_data, encode_result};
  return NSSI_OK;
}

int nssi_lookup_xdr_encoding(int opcode, xdrproc_t *encode_args, xdrproc_t *encode_data, xdrproc_t *encode_result) {
  std::lock_guard lock(mutex);
  const auto it = encodings.find(opcode);
  if (it == encodings.end())
    return paper::fail(NSSI_ENOENT, "no encoding is registered for this operation: NSSI_REGISTER_CLIENT_STUB");
  if (encode_args != nullptr) *encode_args = it->second.args;
  if (encode_data != nullptr) *encode_data = it->second.data;
  if (encode_result != nullptr) *encode_result = it->second.result;
  return NSSI_OK;
}
