// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/receive.hpp"

#include "services/streams/sinks/disk.hpp"
#include "services/streams/sinks/image.hpp"

#include <base/crc32c.hpp>
#include <base/log.hpp>
#include <base/printable.hpp>

#include <fmt/core.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace nessie::streams::sinks {

namespace {

constexpr std::chrono::milliseconds kGlance{200};     ///< whether to stop
constexpr std::chrono::milliseconds kToOpen{5000};    ///< for a sender to say what it sends
constexpr std::chrono::milliseconds kToLeave{2000};   ///< for a sender that has heard that all is safe
constexpr std::size_t kPart = std::size_t{16} << 20;  ///< an image is believed to come as far as it has

/// Whole, on the disk, under its name; or not there.
Status write_safely(const std::string &path, std::span<const std::byte> bytes) {
  const auto beside = path + ".new";
  const Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return cannot("write", beside);
  while (!bytes.empty()) {
    const auto written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return cannot("write", beside);
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  if (::fsync(file.get()) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) return cannot("write", path);
  return sync_folder_of(path);
}

}  // namespace

// --- keepers ----------------------------------------------------------------------------------------------------------

Status FolderKeeper::keep(const Opening &from, std::uint64_t number, std::span<const std::byte> image) {
  const auto path = fmt::format("{}/{}.{:012}.nc", folder_, file_name(from.stream), number);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    auto written = write_safely(path, image);
    kept_ += written.ok() ? 1 : 0;
    return written;
  }
  auto netcdf = NetcdfFile::open(path, false);
  if (!netcdf.ok()) return netcdf.error();
  const auto there = StepFile::open(*std::move(netcdf));
  if (!there.ok()) return there.error();
  if (is_same(there->layout().origin, {from.stream, from.identity})) return {};
  return Error{Code::kExists, fmt::format("{} is a step of another stream: name another folder", printable(path))};
}

Status FileKeeper::keep(const Opening &from, std::uint64_t number, std::span<const std::byte> image) {
  if (recorder_ == nullptr) {
    origin_ = {from.stream, from.identity};
    auto opened = Recorder::open({path_, origin_, append_});
    if (!opened.ok()) return opened.error();
    recorder_ = *std::move(opened);
  }
  if (!is_same(origin_, {from.stream, from.identity}))
    return Error{Code::kInvalidArgument, fmt::format("{} has the stream '{}' already, and this is another one: it "
                                                     "needs a receiver of its own",
                                                     printable(path_), origin_.stream)};
  if (number < recorder_->wanted()) return {};
  auto file = open_image(image);
  if (!file.ok()) return file.error();
  auto step = FileStep::open(*file, 0);
  if (!step.ok()) return step.error();
  if (step->number() != number) return Error{Code::kBadMessage, "the image has another step than was said"};
  auto taken = recorder_->take(*step);
  kept_ += taken.ok() ? 1 : 0;
  return taken;
}

// --- the receiver -----------------------------------------------------------------------------------------------------

Result<Receiver> Receiver::open(ReceiverOptions options) {
  auto listener = listen_at(options.listen);
  if (!listener.ok()) return listener.error();
  return Receiver(std::move(options), *std::move(listener));
}

Status Receiver::run(Keeper &keeper) {
  while (!options_.stop()) {
    if (!connection_) {
      const auto accepted = accept_one();
      if (!accepted.ok() && accepted.code() != Code::kTimedOut)
        log::warning("a connection is not served: {}", accepted.error().message);
      continue;
    }
    const auto served = serve_one(keeper);
    if (has_ended_) return linger(), Status();
    if (served.ok() || served.code() == Code::kTimedOut) continue;
    connection_.reset();
    const bool may_come_back = served.code() == Code::kPeerLost || served.code() == Code::kBadMessage;
    if (!may_come_back) return served;
    log::info("the connection is closed: {}", served.error().message);
  }
  return Error{Code::kCancelled, "it was told to stop"};
}

/// kTimedOut: nobody has connected.
Status Receiver::accept_one() {
  auto connection = accept_from(listener_, Deadline::in(kGlance));
  if (!connection.ok()) return connection.error();
  const auto deadline = Deadline::in(kToOpen);
  Bytes bytes(kOpeningBegin);
  auto got = receive_all(*connection, bytes, deadline);
  if (!got.ok()) return Error{Code::kPeerLost, got.error().message, Scope::kPeer};
  const auto rest = rest_of_opening(bytes);
  if (!rest.ok()) return rest.error();
  bytes.resize(kOpeningBegin + *rest);
  got = receive_all(*connection, std::span(bytes).subspan(kOpeningBegin), deadline);
  if (!got.ok()) return Error{Code::kPeerLost, got.error().message, Scope::kPeer};
  auto opening = decode_opening(bytes);
  if (!opening.ok()) return opening.error();
  opening_ = *std::move(opening);
  connection_ = *std::move(connection);
  return {};
}

/// kTimedOut: nothing has come.
Status Receiver::serve_one(Keeper &keeper) {
  pollfd both[] = {{connection_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  if (::poll(both, 2, static_cast<int>(kGlance.count())) <= 0) return Error{Code::kTimedOut, "nothing has come"};
  if (both[0].revents == 0) return Error{Code::kPeerLost, "there is a newer one", Scope::kPeer};
  Bytes bytes(kHeadBytes);
  if (auto got = read(bytes); !got.ok()) return got;
  const auto head = decode_head(bytes);
  if (!head.ok()) return head.error();
  if (head->is_end) {
    auto answered = answer({true, head->number, {}});
    has_ended_ = answered.ok();
    return answered;
  }
  const auto image = read_image(*head);
  auto kept = image.ok() ? keeper.keep(opening_, head->number, *image) : Status(image.error());
  if (kept.ok()) return answer({true, head->number, {}});
  const bool is_senders = !image.ok() && kept.code() != Code::kTooLarge;
  if (!is_senders) (void)answer({false, head->number, kept.error().message});
  if (is_senders) return kept;
  return Error{kept.code() == Code::kBadMessage || kept.code() == Code::kPeerLost ? Code::kIo : kept.code(),
               fmt::format("step {}: {}", head->number, kept.error().message)};
}

Result<std::span<const std::byte>> Receiver::read_image(const Head &head) {
  if (head.image_bytes > options_.most_image_bytes)
    return Error{Code::kTooLarge, fmt::format("it has {} bytes, and at most {} are taken (--most)", head.image_bytes,
                                              options_.most_image_bytes)};
  std::uint32_t checksum = 0;
  for (std::size_t at = 0; at < head.image_bytes;) {
    if (at == image_.size()) image_.resize(std::min<std::uint64_t>(head.image_bytes, at + kPart));
    const auto end = std::min<std::uint64_t>(head.image_bytes, image_.size());
    const auto piece = std::span(image_).subspan(at, std::min(end - at, kCachedBytes));
    if (auto got = read(piece); !got.ok()) return got.error();
    checksum = crc32c(piece, checksum);
    at += piece.size();
  }
  if (checksum == head.image_checksum) return std::span<const std::byte>(image_).first(head.image_bytes);
  return Error{Code::kBadMessage, fmt::format("step {} has another checksum than was said", head.number), Scope::kPeer};
}

/// kPeerLost: also when the sender has connected anew, or sends nothing any more.
Status Receiver::read(std::span<std::byte> bytes) {
  auto deadline = Deadline::in(options_.patience);
  while (!bytes.empty()) {
    pollfd both[] = {{connection_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    (void)::poll(both, 2, static_cast<int>(kGlance.count()));
    if (options_.stop()) return Error{Code::kPeerLost, "it was told to stop"};
    if (both[0].revents == 0 && both[1].revents != 0) return Error{Code::kPeerLost, "there is a newer one"};
    if (both[0].revents == 0 && deadline.passed()) return Error{Code::kPeerLost, "the sender sends nothing any more"};
    if (both[0].revents == 0) continue;
    const auto got = ::read(connection_.get(), bytes.data(), bytes.size());
    if (got == 0) return Error{Code::kPeerLost, "the sender has closed it"};
    if (got < 0 && errno != EINTR && errno != EAGAIN) return Error{Code::kPeerLost, std::strerror(errno)};
    if (got <= 0) continue;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    deadline = Deadline::in(options_.patience);
  }
  return {};
}

Status Receiver::answer(const Answer &answer) {
  auto sent = send_all(connection_, encode(answer), Deadline::in(options_.patience));
  return sent.ok() ? sent : Status(Error{Code::kPeerLost, sent.error().message, Scope::kPeer});
}

/// Until the sender has heard that it is over, and closes; its answer may have been lost with the connection.
void Receiver::linger() {
  const auto deadline = Deadline::in(kToLeave);
  std::byte more{};
  while (receive_all(connection_, {&more, 1}, deadline).ok()) {}
  connection_.reset();
}

}  // namespace nessie::streams::sinks
