// SPDX-License-Identifier: BSD-3-Clause
// Steps over TCP from any program: TCP.md, the receiver's side. And where it keeps them.
#pragma once

#include "services/streams/sinks/frames.hpp"
#include "services/streams/sinks/record.hpp"
#include "services/streams/sinks/socket.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace nessie::streams::sinks {

/// Where steps are kept that come over the network.
class Keeper {
 public:
  virtual ~Keeper() = default;
  /// Returns when the step is safe; also when it is so already. `image` is as it was sent, and checked. The sender is
  /// told of an error, and gives up.
  virtual Status keep(const Opening &from, std::uint64_t number, std::span<const std::byte> image) = 0;
  /// How many steps it was given for the first time.
  virtual std::uint64_t kept() const = 0;
};

/// Each step a file: FOLDER/STREAM.000000000007.nc. kExists: there is one of another stream that has, or had, that
/// name.
class FolderKeeper : public Keeper {
 public:
  explicit FolderKeeper(std::string folder) : folder_(std::move(folder)) {}
  Status keep(const Opening &from, std::uint64_t number, std::span<const std::byte> image) override;
  std::uint64_t kept() const override { return kept_; }

 private:
  std::string folder_;
  std::uint64_t kept_ = 0;
};

/// All in one file, as Recorder writes it. Errors as its; kInvalidArgument: a second stream.
class FileKeeper : public Keeper {
 public:
  FileKeeper(std::string path, bool append) : path_(std::move(path)), append_(append) {}
  Status keep(const Opening &from, std::uint64_t number, std::span<const std::byte> image) override;
  std::uint64_t kept() const override { return kept_; }

 private:
  std::string path_;
  bool append_;
  std::unique_ptr<Recorder> recorder_;
  Origin origin_;
  std::uint64_t kept_ = 0;
};

struct ReceiverOptions {
  HostPort listen{"127.0.0.1", "0"};
  std::uint64_t most_image_bytes = std::uint64_t{4} << 30;  ///< of a step; a larger one is refused
  /// With a sender that is in the middle of a step and sends nothing.
  std::chrono::milliseconds patience{60'000};
  Stop stop = [] { return false; };
};

/// Takes the steps of one stream, whoever connects. One thread.
class Receiver {
 public:
  /// kInvalidArgument, kIo: as listen_at().
  static Result<Receiver> open(ReceiverOptions options);
  /// Where it listens: "127.0.0.1:4711".
  std::string address() const { return address_of(listener_); }
  /// Until the stream has ended: then ok, and its sender knows that. kCancelled: it was told to stop. Others: the
  /// keeper cannot keep a step.
  Status run(Keeper &keeper);

 private:
  Receiver(ReceiverOptions options, Fd listener) : options_(std::move(options)), listener_(std::move(listener)) {}
  Status accept_one();
  Status serve_one(Keeper &keeper);
  Status read(std::span<std::byte> bytes);
  Result<std::span<const std::byte>> read_image(const Head &head);
  Status answer(const Answer &answer);
  void linger();

  ReceiverOptions options_;
  Fd listener_, connection_;
  Opening opening_;
  Bytes image_;  ///< memory for one, and the next
  bool has_ended_ = false;
};

}  // namespace nessie::streams::sinks
