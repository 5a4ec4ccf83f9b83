// SPDX-License-Identifier: BSD-3-Clause
// Trios_nnti_fprint_types.h: handles and statuses as text.
#include "nnti/c/face.hpp"

#include <Trios_nnti_fprint_types.h>

#include <fmt/format.h>

#include <cstring>
#include <iterator>

namespace {

/// Lines "prefix NAME = value" into a text.
class Page {
 public:
  Page(const char *prefix, std::string indent = {}) : prefix_(prefix ? prefix : ""), indent_(std::move(indent)) {}
  Page inside() const { return {prefix_.c_str(), indent_ + "    "}; }
  template <class Value> void line(std::string_view name, const Value &value) {
    fmt::format_to(std::back_inserter(text_), "{} {}{} = {}\n", prefix_, indent_, name, value);
  }
  void open(const char *name, std::string_view type) {
    line(name ? std::string_view(name) : type, fmt::format("{} {{", type));
  }
  void close() { fmt::format_to(std::back_inserter(text_), "{} {}}}\n", prefix_, indent_); }
  void add(const Page &other) { text_ += other.text_; }
  const std::string &text() const { return text_; }

 private:
  std::string prefix_, indent_, text_;
};

void describe(Page &page, const NNTI_remote_addr_t &addr) {
  page.line("transport_id", static_cast<int>(addr.transport_id));
  page.line("buf", fmt::format("{:#x}", addr.buf));
  page.line("size", addr.size);
}

void describe(Page &page, const NNTI_peer_t &peer) {
  page.line("url", std::string_view(peer.url, strnlen(peer.url, sizeof peer.url)));
  page.line("transport_id", static_cast<int>(peer.peer.transport_id));
  page.line("instance", fmt::format("{:#x}", peer.peer.instance));
  if (peer.peer.transport_id == NNTI_TRANSPORT_MPI) page.line("rank", peer.peer.NNTI_remote_process_t_u.mpi.rank);
}

/// Not the segments: those of a handle that is dead are not there any more.
void describe(Page &page, const NNTI_buffer_t &buffer) {
  page.line("transport_id", static_cast<int>(buffer.transport_id));
  page.line("ops", static_cast<unsigned>(buffer.ops));
  page.line("payload_size", buffer.payload_size);
  page.line("num_elements", buffer.num_elements);
  page.line("payload", fmt::format("{:#x}", buffer.payload));
  page.line("segments", buffer.buffer_segments.NNTI_remote_addr_array_t_len);
  page.line("buffer_owner.url",
            std::string_view(buffer.buffer_owner.url, strnlen(buffer.buffer_owner.url, NNTI_URL_LEN)));
}

void describe(Page &page, const NNTI_status_t &status) {
  page.line("op", static_cast<unsigned>(status.op));
  page.line("result", nnti_err_str(status.result));
  page.line("start", fmt::format("{:#x}", status.start));
  page.line("offset", status.offset);
  page.line("length", status.length);
  page.line("src.url", std::string_view(status.src.url, strnlen(status.src.url, NNTI_URL_LEN)));
  page.line("dest.url", std::string_view(status.dest.url, strnlen(status.dest.url, NNTI_URL_LEN)));
}

template <class T> std::string text_of(const char *name, const char *prefix, std::string_view type, const T *value) {
  Page page(prefix);
  if (value == nullptr) {
    page.line(name ? std::string_view(name) : type, "NULL");
    return page.text();
  }
  page.open(name, type);
  Page inner = page.inside();
  describe(inner, *value);
  page.add(inner);
  page.close();
  return page.text();
}

void put(FILE *fp, const std::string &text) {
  if (fp != nullptr) std::fputs(text.c_str(), fp);
}

}  // namespace

const char *nnti_err_str(const int rc) { return nnti::face::name_of(rc); }

void fprint_NNTI_remote_addr(FILE *fp, const char *name, const char *prefix, const NNTI_remote_addr_t *addr) {
  put(fp, text_of(name, prefix, "NNTI_remote_addr_t", addr));
}
void fprint_NNTI_remote_addr(std::ostream &out, const char *name, const char *prefix, const NNTI_remote_addr_t *addr) {
  out << text_of(name, prefix, "NNTI_remote_addr_t", addr);
}
void fprint_NNTI_peer(FILE *fp, const char *name, const char *prefix, const NNTI_peer_t *peer) {
  put(fp, text_of(name, prefix, "NNTI_peer_t", peer));
}
void fprint_NNTI_peer(std::ostream &out, const char *name, const char *prefix, const NNTI_peer_t *peer) {
  out << text_of(name, prefix, "NNTI_peer_t", peer);
}
void fprint_NNTI_buffer(FILE *fp, const char *name, const char *prefix, const NNTI_buffer_t *buffer) {
  put(fp, text_of(name, prefix, "NNTI_buffer_t", buffer));
}
void fprint_NNTI_buffer(std::ostream &out, const char *name, const char *prefix, const NNTI_buffer_t *buffer) {
  out << text_of(name, prefix, "NNTI_buffer_t", buffer);
}
void fprint_NNTI_status(FILE *fp, const char *name, const char *prefix, const NNTI_status_t *status) {
  put(fp, text_of(name, prefix, "NNTI_status_t", status));
}
void fprint_NNTI_status(std::ostream &out, const char *name, const char *prefix, const NNTI_status_t *status) {
  out << text_of(name, prefix, "NNTI_status_t", status);
}
