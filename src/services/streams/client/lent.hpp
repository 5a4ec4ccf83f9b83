// SPDX-License-Identifier: BSD-3-Clause
// Memory that a call lends to a server.
#pragma once

#include <services/streams/client/session.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace streams {

/// Memory of the program's, lent for one call: what it allocated here as it is, other memory registered. Not to outlive
/// the session.
class Lent {
 public:
  static Result<Lent> make(Session &session, std::span<std::byte> memory, nnti::Rights rights) {
    Lent lent(session);
    lent.size_ = memory.size();
    lent.whole_ = session.find_allocated(memory, lent.offset_);
    if (lent.whole_ != nullptr || memory.empty()) return lent;
    auto buffer = session.runtime().register_memory(memory, rights);
    if (!buffer.ok()) return buffer.error();
    lent.own_ = *std::move(buffer);
    return lent;
  }
  Lent(Lent &&) noexcept = default;
  ~Lent() {
    if (own_.valid()) session_->runtime().unregister_memory(std::move(own_));
  }
  void add_to(nssi::CallOptions &options) const {
    if (whole_ != nullptr)
      options.parts = {{whole_, offset_, size_}};
    else if (own_.valid())
      options.data = &own_;
  }

 private:
  explicit Lent(Session &session) : session_(&session) {}
  Session *session_;
  const nnti::RegisteredBuffer *whole_ = nullptr;
  nnti::RegisteredBuffer own_;
  std::uint64_t offset_ = 0;
  std::size_t size_ = 0;
};

}  // namespace streams
