// SPDX-License-Identifier: BSD-3-Clause
// libtirpc's streams, from and to bytes: in memory, through stdio, and as records.
#pragma once

#include <rpc/types.h>
#include <rpc/xdr.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

class Stream {
 public:
  using Bytes = std::vector<std::byte>;
  Stream() = default;
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  virtual ~Stream() = default;
  XDR &get() { return xdrs_; }

 protected:
  XDR xdrs_{};
};

/// Encodes into the bytes that there are.
class MemoryStream : public Stream {
 public:
  MemoryStream(Bytes &bytes, xdr_op operation) {
    xdrmem_create(&xdrs_, reinterpret_cast<char *>(bytes.data()), static_cast<u_int>(bytes.size()), operation);
  }
};

/// What is encoded is in `bytes` when the stream is gone.
class FileStream : public Stream {
 public:
  FileStream(Bytes &bytes, xdr_op operation) : bytes_(bytes) {
    if (operation == XDR_ENCODE)
      file_ = open_memstream(&text_, &size_);
    else
      file_ = bytes.empty() ? std::fopen("/dev/null", "r") : fmemopen(bytes.data(), bytes.size(), "r");
    xdrstdio_create(&xdrs_, file_, operation);
  }
  ~FileStream() override {
    xdr_destroy(&xdrs_);
    std::fclose(file_);
    const auto *begin = reinterpret_cast<const std::byte *>(text_);
    if (text_ != nullptr) bytes_.assign(begin, begin + size_);
    std::free(text_);
  }

 private:
  Bytes &bytes_;
  char *text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE *file_ = nullptr;
};

/// One record (RFC 5531, section 11) of `bytes`; as FileStream.
class RecordStream : public Stream {
 public:
  RecordStream(Bytes &bytes, xdr_op operation) : bytes_(bytes) {
    xdrrec_create(&xdrs_, 0, 0, this, read, write);
    xdrs_.x_op = operation;
    if (operation == XDR_ENCODE) return;
    const auto mark = kLast | static_cast<std::uint32_t>(bytes.size());
    for (int shift = 24; shift >= 0; shift -= 8) framed_.push_back(static_cast<std::byte>(mark >> shift));
    framed_.insert(framed_.end(), bytes.begin(), bytes.end());
    xdrrec_skiprecord(&xdrs_);
  }
  ~RecordStream() override {
    if (xdrs_.x_op == XDR_ENCODE) finish();
    xdr_destroy(&xdrs_);
  }

 private:
  static constexpr std::uint32_t kLast = 0x80000000;

  void finish() {
    xdrrec_endofrecord(&xdrs_, TRUE);
    bytes_.clear();
    for (std::size_t at = 0; at + 4 <= framed_.size();) {
      std::uint32_t mark = 0;
      for (int i = 0; i < 4; ++i) mark = mark << 8 | static_cast<std::uint32_t>(framed_[at++]);
      const auto begin = framed_.begin() + static_cast<std::ptrdiff_t>(at);
      bytes_.insert(bytes_.end(), begin, begin + (mark & ~kLast));
      at += mark & ~kLast;
    }
  }
  static int read(void *self, void *to, int size) {
    auto &it = *static_cast<RecordStream *>(self);
    const auto count = std::min(static_cast<std::size_t>(size), it.framed_.size() - it.read_);
    if (count == 0) return -1;
    std::memcpy(to, it.framed_.data() + it.read_, count);
    it.read_ += count;
    return static_cast<int>(count);
  }
  static int write(void *self, void *from, int size) {
    auto &it = *static_cast<RecordStream *>(self);
    const auto *begin = static_cast<const std::byte *>(from);
    it.framed_.insert(it.framed_.end(), begin, begin + size);
    return size;
  }

  Bytes &bytes_;
  Bytes framed_;
  std::size_t read_ = 0;
};

template <class Kind> std::unique_ptr<Stream> make_stream(Stream::Bytes &bytes, xdr_op operation) {
  return std::make_unique<Kind>(bytes, operation);
}
