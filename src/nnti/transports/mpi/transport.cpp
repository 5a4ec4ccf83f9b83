// SPDX-License-Identifier: BSD-3-Clause
// Opening, connecting, registrations, the end; progress.cpp has what goes on between.
#include "nnti/transports/mpi/transport.hpp"

#include <nnti/mpi.hpp>

#include <fmt/core.h>
#include <base/log.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

namespace nnti::mpi {
namespace {

using namespace std::chrono_literals;

constexpr auto kSetupTime = 60'000ms;
constexpr auto kGoodbyeTime = 1s;
constexpr auto kPatience = 10s;  // with a peer that keeps memory in use which is to be unregistered

std::optional<int> parse_number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return std::nullopt;
  return value;
}

struct Target {
  std::string world;
  Address address;
};

/// "0123456789abcdef/3/1": world, rank, port.
Result<Target> parse_target(std::string_view text) {
  const auto first = text.find('/'), last = text.rfind('/');
  if (first != last && last != std::string_view::npos) {
    const auto rank = parse_number(text.substr(first + 1, last - first - 1), 0, 0x7fffffff);
    const auto port = parse_number(text.substr(last + 1), kFirstPort, kFirstPort + kPorts - 1);
    if (rank && port && first == 16) return Target{std::string(text.substr(0, first)), {*rank, *port}};
  }
  return Error{Code::kInvalidArgument, fmt::format("'{}' is no world/rank/port", text)};
}

/// A connection being made.
class MpiConnecting final : public Connecting {
 public:
  explicit MpiConnecting(MpiConnection &connection) : connection_(&connection) { connection.held = true; }
  ~MpiConnecting() override {
    if (connection_ == nullptr) return;
    connection_->held = false;
    connection_->give_up();
  }

  std::optional<Result<nnti::Connection *>> advance() override {
    const auto &outcome = connection_->handshake();
    if (!outcome) return std::nullopt;
    if (!outcome->ok()) return Result<nnti::Connection *>(outcome->error());
    connection_->held = false;
    return Result<nnti::Connection *>(std::exchange(connection_, nullptr));
  }

 private:
  MpiConnection *connection_;
};

}  // namespace

// --- opening ------------------------------------------------------------------------------------------------------------

TransportInfo survey(const nessie::Config &) {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised) return {"mpi", false, mpi_name() + " has been finalised in this process"};
  return {"mpi", true,
          fmt::format("two-sided messages of {}, on a communicator of Nessie's own; taken only when asked for by name; "
                      "reaches the processes of the same MPI job, and those of another one only if both join a merged "
                      "communicator (nnti/mpi.hpp)",
                      mpi_name())};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  const auto patience = options.config.get_duration("nnti.mpi.setup_timeout", kSetupTime);
  if (!patience.ok()) return patience.error();
  if (auto status = World::prepare_mpi(); !status.ok()) return status.error();
  auto world = World::find(options.config.get_or("nnti.mpi.world", ""), Deadline::in(*patience));
  if (!world.ok()) return world.error();
  auto transport = std::make_unique<MpiTransport>(options, **world);
  if (auto status = transport->move_in(); !status.ok()) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

const TransportKind &transport_kind() {
  static constexpr TransportKind kKind{"mpi", survey, open, Reliability::kAlways, true, true};
  return kKind;
}

MpiTransport::MpiTransport(const TransportOptions &options, World &world)
    : world_(world), credential_(options.credential), events_(options.events), listening_(options.listen) {}

Status MpiTransport::move_in() {
  auto port = world_.move_in(*this);
  if (!port.ok()) return port.error();
  port_ = *port;
  if (listening_) url_ = fmt::format("mpi://{}/{}/{}", world_.id(), world_.rank(), port_);
  return post_receives();
}

Status MpiTransport::can_reach(const nessie::Url &url) const {
  auto target = parse_target(url.address);
  if (!target.ok()) return target.error();
  if (mpi_ended_) return Error{Code::kUnsupported, "MPI has been finalised in this process"};
  if (target->world != world_.id())
    return Error{Code::kUnsupported,
                 "it belongs to another MPI job, or to another communicator; let both jobs join a communicator that "
                 "MPI_Comm_connect, MPI_Comm_accept and MPI_Intercomm_merge make (nnti/mpi.hpp), or use another "
                 "transport"};
  if (target->address.rank >= world_.size())
    return Error{Code::kInvalidArgument, fmt::format("the communicator has no rank {}", target->address.rank)};
  return {};
}

Result<std::unique_ptr<Connecting>> MpiTransport::connect(const nessie::Url &url, Deadline) {
  auto target = parse_target(url.address);
  if (!target.ok()) return target.error();
  auto &connection = new_connection(target->address);
  connection.knock();
  return std::unique_ptr<Connecting>(std::make_unique<MpiConnecting>(connection));
}

// --- registrations --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<TransportMemory>> MpiTransport::register_memory(const MemoryRegion &region) {
  return std::unique_ptr<TransportMemory>(std::make_unique<framed::Memory>(*this, region));
}

std::optional<MemoryRegion> MpiTransport::find_memory(const RemoteBuffer &buffer) const {
  const auto *memory = find(buffer.key);
  if (memory == nullptr) return std::nullopt;
  return memory->region();
}

/// A peer that keeps one going for too long is given up.
void MpiTransport::end_transfers(const framed::Memory &memory) {
  const auto in_use = [&](const auto &entry) { return entry.second->transfers().uses(memory); };
  for (auto &[token, connection] : connections_) connection->transfers().leave_memory(memory);
  if (poll_until([&] { return std::ranges::none_of(connections_, in_use); }, Deadline::in(kPatience))) return;
  nessie::log::warning(
      "mpi: a peer stopped in the middle of a transfer; MPI cannot take back what was begun, and may "
      "still read memory that is unregistered now");
  for (auto &entry : connections_)
    if (in_use(entry))
      entry.second->break_with({Code::kTimedOut, "the peer stopped in the middle of a transfer", nessie::Scope::kPeer});
}

// --- connections ------------------------------------------------------------------------------------------------------------

MpiConnection *MpiTransport::find_peer(std::uint64_t token) {
  if (last_found_ != nullptr && last_found_->token() == token) [[likely]]
    return last_found_;
  const auto found = connections_.find(token);
  return found == connections_.end() ? nullptr : last_found_ = found->second.get();
}

MpiConnection &MpiTransport::new_connection(Address address) {
  const auto token = std::max<std::uint64_t>(nessie::random_u64(), 1);
  auto &connection = connections_[token] = std::make_unique<MpiConnection>(*this, token, address);
  return *connection;
}

// --- the end ------------------------------------------------------------------------------------------------------------------

MpiTransport::~MpiTransport() {
  listening_ = false;
  ++depth_;  // nothing is reaped meanwhile
  for (auto &[token, connection] : connections_) connection->close();
  if (!mpi_ended_) say_goodbye();
  connections_.clear();
  last_found_ = nullptr;
  if (!mpi_ended_) withdraw();
  world_.move_out(port_);
  if (!lent_->requests.empty()) world_.keep(lent_);
}

/// Gives what was sent a moment to leave, and takes what peers began to send to us.
void MpiTransport::say_goodbye() {
  const auto gone = [this] {
    pump_connections();
    return std::ranges::all_of(connections_, [](const auto &entry) { return entry.second->said_goodbye(); });
  };
  poll_until(gone, Deadline::in(kGoodbyeTime));
}

void MpiTransport::withdraw() {
  for (auto &flow : lent_->flows) flow.give_up();
  poll_until([this] { return lent_->requests.empty(); }, Deadline::in(kGoodbyeTime));
  for (auto &receive : receives_) {
    if (std::ranges::find(posted_, &receive) != posted_.end()) {
      MPI_Cancel(&receive.request);
      MPI_Wait(&receive.request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&receive.request);
  }
  posted_.clear();
}

/// Called within MPI_Finalize().
void MpiTransport::on_mpi_end() {
  if (mpi_ended_.exchange(true)) return;
  withdraw();
}

}  // namespace nnti::mpi
