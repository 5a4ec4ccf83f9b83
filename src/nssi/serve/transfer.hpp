// SPDX-License-Identifier: BSD-3-Clause
// What is moved between a request's caller and here: its data, long arguments, a long list of where its data are.
//
// Design notes. A transfer is begun, and ends, by the driver; it is waited for where the handler runs. It may consist
// of pieces, one for each segment that it touches, which are under way together; the first that fails says how it
// ended. One that is interrupted because the connection is lost is repeated, which one-sided transfers may be, by who
// waits for it, when the caller is back.
#pragma once

#include <base/clock.hpp>
#include <nssi/nssi.hpp>

#include <atomic>
#include <string_view>

namespace nssi {

class IncomingRequest;
struct Strand;

struct Move {
  enum class What { kGet, kPut, kArgs, kSegments };
  What what;
  std::span<std::byte> memory;  ///< here; a put only reads it
  std::uint64_t offset = 0;     ///< there

  bool is_data() const { return what == What::kGet || what == What::kPut; }
  nnti::Rights needed_rights() const {
    return what == What::kPut ? nnti::Rights::kRemoteWrite : nnti::Rights::kRemoteRead;
  }
  /// In a trace.
  std::string_view name() const;
};

/// When a transfer began, on the clocks of those who measure it: 0, nobody does.
struct TransferStart {
  std::uint64_t ticks = 0;
  nessie::Clock::time_point time;
};

class TransferState final : public nnti::Completion {
 public:
  TransferState(Engine &engine, IncomingRequest &request, const Move &move)
      : engine_(engine), request_(request), move_(move) {}
  TransferState(const TransferState &) = delete;
  /// Waits for its end.
  ~TransferState();
  void start();
  bool test();
  /// As Transfer::wait().
  Status wait(Deadline deadline);

  // --- the driver ---------------------------------------------------------------------------------------------------
  /// Of one of its pieces.
  void on_complete(Status status) override;
  /// Another piece is about to begin.
  void add_piece() { ++pieces_; }

 private:
  bool launch(bool in_place);
  void copy(std::span<const std::byte> source);
  bool await(Deadline deadline);
  bool resume(Deadline deadline);
  void give_up();
  void end(Status status);

  Engine &engine_;
  IncomingRequest &request_;
  const Move move_;
  TransferStart began_;
  PeerId caller_;  ///< the connection that it goes over
  Deadline limit_ = Deadline::never();
  std::optional<Deadline> patience_;  ///< with the caller's absence; none while it is here
  std::size_t pieces_ = 0;            ///< that have not ended, and one while others are being begun
  Status status_;
  bool is_over_ = true;  ///< its outcome is final
  std::atomic<bool> done_{true};
  Strand *waiter_ = nullptr;
};

}  // namespace nssi
