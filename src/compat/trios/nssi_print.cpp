// SPDX-License-Identifier: BSD-3-Clause
// Trios_nssi_fprint_types.h: codes, services and headers as text.
#include <compat/trios/print.hpp>

#include <Trios_nssi_fprint_types.h>

#include <ostream>

namespace nnti::trios {
namespace {

std::string_view name_of(nssi_rpc_encode encode) { return encode == NSSI_RPC_XDR ? "NSSI_RPC_XDR" : "unknown"; }

void part(Page &page, const char *name, const NNTI_buffer_t &buffer) {
  page.part(name, "NNTI_buffer_t", buffer.datatype != 0 ? &buffer : nullptr);
}

template <class Value> std::string line_of(const char *name, const char *prefix, const Value &value) {
  Page page(prefix);
  page.line(name ? name : "", value);
  return page.text();
}

}  // namespace

void describe(Page &page, const nssi_service &service) {
  page.line("transport_id", static_cast<int>(service.transport_id));
  page.line("rpc_encode", name_of(service.rpc_encode));
  page.part("svc_host", "NNTI_peer_t", &service.svc_host);
  part(page, "req_addr", service.req_addr);
  page.line("max_reqs", service.max_reqs);
}

void describe(Page &page, const nssi_request_header &header) {
  page.line("id", header.id);
  page.line("opcode", header.opcode);
  page.line("fetch_args", header.fetch_args);
  page.line("fetch_data", header.fetch_data);
  page.line("is_responseless", header.is_responseless);
  part(page, "args_addr", header.args_addr);
  part(page, "data_addr", header.data_addr);
  part(page, "res_addr", header.res_addr);
}

void describe(Page &page, const nssi_result_header &header) {
  page.line("id", header.id);
  page.line("opcode", header.opcode);
  page.line("fetch_result", header.fetch_result);
  page.line("result_size", header.result_size);
  part(page, "result_addr", header.result_addr);
  part(page, "result_ack_addr", header.result_ack_addr);
  page.line("rc", nssi_err_str(static_cast<int>(header.rc)));
}

}  // namespace nnti::trios

using namespace nnti::trios;

TRIOS_PRINTS(fprint_nssi_service, nssi_service)
TRIOS_PRINTS(fprint_nssi_request_header, nssi_request_header)
TRIOS_PRINTS(fprint_nssi_result_header, nssi_result_header)

void fprint_nssi_return_code(FILE *fp, const char *name, const char *prefix, const int rc) {
  put(fp, line_of(name, prefix, nssi_err_str(rc)));
}
void fprint_nssi_return_code(std::ostream &out, const char *name, const char *prefix, const int rc) {
  out << line_of(name, prefix, nssi_err_str(rc));
}
void fprint_nssi_rpc_encode(FILE *fp, const char *name, const char *prefix, const nssi_rpc_encode *encode) {
  put(fp, line_of(name, prefix, encode ? name_of(*encode) : "NULL"));
}
void fprint_nssi_rpc_encode(std::ostream &out, const char *name, const char *prefix, const nssi_rpc_encode *encode) {
  out << line_of(name, prefix, encode ? name_of(*encode) : "NULL");
}
void fprint_nssi_ssize(FILE *fp, const char *name, const char *prefix, const nssi_ssize *size) {
  put(fp, size ? line_of(name, prefix, *size) : line_of(name, prefix, "NULL"));
}
void fprint_nssi_ssize(std::ostream &out, const char *name, const char *prefix, const nssi_ssize *size) {
  out << (size ? line_of(name, prefix, *size) : line_of(name, prefix, "NULL"));
}
