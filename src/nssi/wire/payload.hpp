// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a request, or a result, on their way into a message or a block.
#pragma once

#include <nssi/nssi.hpp>

#include <nessie/copy.hpp>

namespace nssi {

/// Bytes, or who writes them.
class Payload {
 public:
  Payload() = default;
  Payload(std::span<const std::byte> bytes) : data_(bytes.data()), size_bytes_(bytes.size()) {}
  Payload(std::size_t size_bytes, const Encoder &encode) : size_bytes_(size_bytes), encode_(&encode) {}

  std::size_t size_bytes() const { return size_bytes_; }
  /// Whether an encoder is to write them.
  bool is_encoded() const { return encode_ != nullptr; }
  /// The bytes, where no encoder writes them.
  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  /// kInternal, with its text: the encoder, which is the program's code, threw. `what` they are: "arguments".
  Status write(std::span<std::byte> at, const char *what) const {
    if (is_encoded()) return have_encoded(at, what);
    nessie::copy_bytes(at.data(), data_, size_bytes_);
    return {};
  }

 private:
  Status have_encoded(std::span<std::byte> at, const char *what) const;

  const std::byte *data_ = nullptr;
  std::size_t size_bytes_ = 0;
  const Encoder *encode_ = nullptr;
};

}  // namespace nssi
