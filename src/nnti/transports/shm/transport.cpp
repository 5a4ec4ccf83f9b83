// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/transport.hpp"

#include "nnti/transports/shm/memory.hpp"
#include "nnti/transports/shm/transport_impl.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <base/log.hpp>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace nnti::shm {
namespace {

constexpr unsigned kTurnsPerSweep = 1024;  ///< a power of two
constexpr auto kTransferLimit = std::chrono::seconds(1);

std::string first_line_of(const char *path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Names what processes must have in common to share memory here: the running kernel, and the network namespace, in
/// which the sockets' names are.
const std::string &host_id() {
  static const std::string id = [] {
    std::string boot;
    for (char c : first_line_of("/proc/sys/kernel/random/boot_id"))
      if (c != '-' && boot.size() < 16) boot += c;
    struct stat network {};
    if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return std::string();
    return fmt::format("{}-{:x}", boot, network.st_ino);
  }();
  return id;
}

Result<pid_t> process_behind(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return Error{Code::kUnsupported, "the kernel does not say which process the peer is"};
  return credentials.pid;
}

/// A connection being made to shm://host/name.
class ShmConnecting final : public Connecting {
 public:
  ShmConnecting(ShmTransport &transport, std::string name, SharedMemory segment)
      : transport_(transport), name_(std::move(name)), segment_(std::move(segment)) {}

  Status begin() {
    auto socket = bootstrap::connect_unix(name_);
    if (socket.code() == Code::kBusy) return {};  // its queue is full; advance() tries again
    if (!socket.ok()) return socket.error();
    transport_.watch_connecting(socket->get());
    connector_.emplace(std::move(*socket), "shm", transport_.credential(), transport_.hello(segment_.fd.get()));
    return {};
  }

  std::optional<Result<Connection *>> advance() override {
    if (!connector_) {
      if (auto status = begin(); !status.ok()) return status.error();
      if (!connector_) return std::nullopt;
    }
    auto outcome = connector_->advance();
    if (!outcome) return std::nullopt;
    if (!outcome->ok()) return outcome->error();
    auto established = std::move(**outcome);
    auto parts = transport_.take_hello(established.socket.fd(), established.theirs, false);
    if (!parts.ok()) return parts.error();
    parts->segment = std::move(segment_.mapping);
    parts->slots = transport_.slots();
    return transport_.add_connection(std::move(established.socket), std::move(*parts));
  }

 private:
  ShmTransport &transport_;
  std::string name_;
  SharedMemory segment_;
  std::optional<bootstrap::Connector> connector_;
};

/// How many processes the job has, as its launcher tells; 1 if nobody does.
std::int64_t launched_processes() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_NTASKS"})
    if (const char *value = std::getenv(name))
      if (auto count = std::strtoll(value, nullptr, 10); count > 0) return count;
  return 1;
}

/// The mailbox shrinks as the job grows: uGNI paper, section 3.
std::size_t mailbox_bytes_for(std::int64_t job_size) {
  return job_size <= 1024 ? 4672 : job_size <= 16384 ? 2624 : 1088;
}

Result<std::uint64_t> slots_of(const nessie::Config &config) {
  auto job_size = config.get_int("nnti.job_size", launched_processes());
  if (!job_size.ok()) return job_size.error();
  auto bytes = config.get_size("nnti.mailbox", mailbox_bytes_for(*job_size));
  if (!bytes.ok()) return bytes.error();
  if (*bytes < mailbox_bytes(kMinSlots))
    return Error{Code::kInvalidArgument,
                 fmt::format("nnti.mailbox: {} bytes are too few; at least {}", *bytes, mailbox_bytes(kMinSlots))};
  return std::min(std::bit_floor((*bytes - sizeof(MailboxControl)) / kSlotBytes), kMaxSlots);
}

std::string explain_cma() {
  std::uint64_t word = nessie::random_u64();
  auto allowed = cma_probe(::getpid(), reinterpret_cast<std::uint64_t>(&word), word);
  if (!allowed.ok()) return "relayed by its owner: " + allowed.error().message;
  auto scope = first_line_of("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0" || (::geteuid() == 0 && scope != "3")) return "reached by cross-memory attach";
  return fmt::format("relayed by its owner: kernel.yama.ptrace_scope is {}; 0 allows cross-memory attach", scope);
}

}  // namespace

TransportInfo survey(const nessie::Config &config) {
  if (host_id().empty())
    return {"shm", false, "/proc is not mounted: processes of this node cannot be told from others"};
  auto use_cma = config.get_bool("nnti.shm.cma", true);
  auto own = use_cma.ok() && !*use_cma ? std::string("relayed by its owner: nnti.shm.cma is off") : explain_cma();
  return {"shm", true,
          "processes of this node; memory that Nessie allocated is mapped; the application's own is " + own};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto transport = ShmTransport::make(options);
  if (!transport.ok()) return transport.error();
  return std::unique_ptr<Transport>(std::move(*transport));
}

Result<std::unique_ptr<ShmTransport>> ShmTransport::make(const TransportOptions &options) {
  if (host_id().empty())
    return Error{Code::kUnsupported, "/proc is not mounted: processes of this node cannot be told from others"};
  auto use_cma = options.config.get_bool("nnti.shm.cma", true);
  if (!use_cma.ok()) return use_cma.error();
  auto table = OwnTable::make();
  if (!table.ok()) return table.error();
  auto slots = slots_of(options.config);
  if (!slots.ok()) return slots.error();
  std::unique_ptr<ShmTransport> transport(new ShmTransport(options, std::move(*table), *use_cma, *slots));
  if (options.listen)
    if (auto status = transport->listen(); !status.ok()) return status.error();
  return transport;
}

ShmTransport::ShmTransport(const TransportOptions &options, OwnTable table, bool use_cma, std::uint64_t slots)
    : credential_(options.credential),
      events_(options.events),
      table_(std::move(table)),
      use_cma_(use_cma),
      slots_(slots),
      asymmetric_fence_(join_asymmetric_fences()),
      probe_(nessie::random_u64()),
      poller_(options.poller),
      doorbell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  poller_.watch(doorbell_.get(), rung_, Poller::Trigger::kEdge);
}

ShmTransport::~ShmTransport() {
  for (auto &connection : connections_) connection->close();
  if (listener_) poller_.unwatch(listener_->wait_fd());
  poller_.unwatch(doorbell_.get());
}

Status ShmTransport::listen() {
  auto name = fmt::format("nessie-{}-{:016x}", ::getpid(), nessie::random_u64());
  auto socket = bootstrap::listen_unix(name);
  if (!socket.ok()) return socket.error();
  socket_name_ = std::move(name);
  auto answer = [this](int fd, bootstrap::Hello &theirs) -> Result<bootstrap::Hello> {
    auto parts = take_hello(fd, theirs, true);
    if (!parts.ok()) return parts.error();
    answered_ = std::move(*parts);
    return hello(-1);
  };
  auto accept = [this](bootstrap::Established established) {
    accepted_.push_back(add_connection(std::move(established.socket), std::move(*answered_)));
  };
  listener_ = std::make_unique<bootstrap::Listener>(std::move(*socket), "shm", credential_, answer, accept);
  poller_.watch(listener_->wait_fd(), listening_);
  return {};
}

std::string ShmTransport::url() const {
  return listener_ ? fmt::format("shm://{}/{}", host_id(), socket_name_) : std::string();
}

Status ShmTransport::can_reach(const nessie::Url &url) const {
  auto slash = url.address.find('/');
  if (slash == std::string::npos)
    return Error{Code::kInvalidArgument, fmt::format("'{}' is no address of shm: host/name is expected", url.address)};
  auto host = std::string_view(url.address).substr(0, slash);
  if (host == host_id()) return {};
  auto kernel = host.substr(0, host.find('-'));
  if (kernel == std::string_view(host_id()).substr(0, host_id().find('-')))
    return Error{Code::kUnsupported, "the peer is on this node, but in another network namespace (a container?)"};
  return Error{Code::kUnsupported, "the peer is on another node"};
}

Result<std::unique_ptr<Connecting>> ShmTransport::connect(const nessie::Url &url, Deadline) {
  auto segment = make_shared_memory("nessie-connection", segment_bytes(slots_), Peers::kMayWrite);
  if (!segment.ok()) return segment.error();
  auto name = url.address.substr(url.address.find('/') + 1);
  auto connecting = std::make_unique<ShmConnecting>(*this, std::move(name), std::move(*segment));
  if (auto status = connecting->begin(); !status.ok()) return status.error();
  return std::unique_ptr<Connecting>(std::move(connecting));
}

bootstrap::Hello ShmTransport::hello(int segment) const {
  HelloBlob blob;
  blob.cma_allowed = use_cma_ ? 1 : 0;
  blob.probe_address = reinterpret_cast<std::uint64_t>(&probe_);
  blob.probe_value = probe_;
  blob.slots = static_cast<std::uint32_t>(slots_);
  blob.asymmetric_fence = asymmetric_fence_ ? 1 : 0;
  auto bytes = std::as_bytes(std::span(&blob, 1));
  bootstrap::Hello hello{{bytes.begin(), bytes.end()}, {}};
  for (int fd : {table_->fd(), doorbell_.get(), segment})
    if (fd >= 0) hello.descriptors.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  return hello;
}

Result<PeerParts> ShmTransport::take_hello(int socket, bootstrap::Hello &theirs, bool their_segment) const {
  HelloBlob blob;
  if (theirs.blob.size() != sizeof blob || theirs.descriptors.size() != (their_segment ? 3u : 2u))
    return Error{Code::kBadMessage, "the peer's hello has another shape; run the same Nessie on both sides",
                 nessie::Scope::kPeer};
  std::memcpy(&blob, theirs.blob.data(), sizeof blob);
  if (blob.layout_version != kLayoutVersion)
    return Error{Code::kUnsupported, "the peer's shared memory has another layout; run the same Nessie on both sides",
                 nessie::Scope::kPeer};
  auto table = map_shared_memory(theirs.descriptors[0].get(), sizeof(EndpointTable), Access::kRead);
  if (!table.ok()) return table.error();
  PeerParts parts;
  parts.table = std::move(*table);
  parts.doorbell = std::move(theirs.descriptors[1]);
  if (their_segment) {
    if (!std::has_single_bit(blob.slots) || blob.slots < kMinSlots || blob.slots > kMaxSlots)
      return Error{Code::kBadMessage, "the peer's mailboxes have an impossible size", nessie::Scope::kPeer};
    auto segment = map_shared_memory(theirs.descriptors[2].get(), segment_bytes(blob.slots), Access::kReadWrite);
    if (!segment.ok()) return segment.error();
    parts.segment = std::move(*segment);
    parts.side = 1;
    parts.slots = blob.slots;
  }
  parts.asymmetric_fence = asymmetric_fence_ && blob.asymmetric_fence != 0;
  auto process = process_behind(socket);
  if (!process.ok()) return process.error();
  parts.process = *process;
  if (!use_cma_ || blob.cma_allowed == 0)
    parts.cma = Error{Code::kUnsupported, "nnti.shm.cma is off"};
  else
    parts.cma = cma_probe(parts.process, blob.probe_address, blob.probe_value);
  return parts;
}

ShmConnection *ShmTransport::add_connection(bootstrap::PageSocket socket, PeerParts parts) {
  connections_.push_back(std::make_unique<ShmConnection>(*this, std::move(socket), std::move(parts)));
  auto *connection = connections_.back().get();
  poller_.watch(connection->socket_fd(), *connection);
  return connection;
}

Result<std::unique_ptr<TransportMemory>> ShmTransport::register_memory(const MemoryRegion &region) {
  auto description = table_->add(region);
  if (!description.ok()) return description.error();
  return std::unique_ptr<TransportMemory>(std::make_unique<ShmMemory>(*this, *description, region.memfd));
}

std::optional<MemoryRegion> ShmTransport::find_memory(const RemoteBuffer &buffer) const {
  auto found = look_up(table(), buffer.slot, buffer.key);
  if (!found) return std::nullopt;
  return MemoryRegion{{reinterpret_cast<std::byte *>(found->address), found->size_bytes}, found->rights, -1};
}

void ShmTransport::end_registration(const RemoteBuffer &buffer, bool is_shared) {
  table_->revoke(buffer.slot);
  if (!connections_.empty()) heavy_fence();
  auto limit = Deadline::in(kTransferLimit);
  for (const auto &connection : connections_) {
    while (connection->is_open() && connection->peer_transfers(buffer.slot) && !connection->peer_is_gone()) {
      if (limit.passed()) {
        nessie::log::warning("shm: a peer does not finish its transfer; the buffer is unregistered nevertheless");
        break;
      }
      ::sched_yield();
    }
    if (!is_shared || !connection->is_open()) continue;
    connection->forget(buffer.key);
    connection->wake_peer();  // its mapping keeps the memory until it looks
  }
  table_->release(buffer.slot);
}

// --- progress ---------------------------------------------------------------------------------------------------------

/// Callbacks may connect, disconnect and make progress themselves: the vector may grow, but shrinks only in reap().
std::size_t ShmTransport::progress() {
  std::size_t events = 0;
  ++depth_;
  if (look_at_sockets_now_) events += look_at_sockets();
  if (sweep_now_ || ++turns_ % kTurnsPerSweep == 0) sweep_mappings();
  if (!accepted_.empty()) events += report_accepted();
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    auto &connection = *connections_[i];
    if (!connection.has_work()) continue;
    events += connection.progress();
    anything_closed_ |= !connection.is_open();
  }
  if (--depth_ == 0 && anything_closed_) reap();
  return events;
}

bool ShmTransport::ready() {
  if (look_at_sockets_now_) return true;
  for (const auto &connection : connections_)
    if (connection->ready()) return true;
  return false;
}

bool ShmTransport::arm() {
  table_->sleep();
  if (!connections_.empty()) heavy_fence();
  if (!ready()) return true;
  table_->awake();
  return false;
}

void ShmTransport::disarm(bool) {
  table_->awake();
  look_at_sockets_now_ |= timer().passed();
}

std::size_t ShmTransport::look_at_sockets() {
  look_at_sockets_now_ = false;
  std::size_t looked = 0;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    auto &connection = *connections_[i];
    if (connection.is_open()) looked += connection.look_at_socket();
  }
  if (listener_ && (std::exchange(listening_.ready, false) || listener_->timer().passed()))
    looked += listener_->progress();
  return looked;
}

/// Of registrations that have ended at their owners.
void ShmTransport::sweep_mappings() {
  sweep_now_ = false;
  for (const auto &connection : connections_)
    if (connection->is_open()) connection->sweep_mappings();
}

std::size_t ShmTransport::report_accepted() {
  std::size_t count = 0;
  // One by one: a callback may make progress, which must not deliver from a connection before it was reported.
  for (; !accepted_.empty(); ++count) {
    auto *connection = accepted_.front();
    accepted_.pop_front();
    events_.accepted(*connection);
  }
  return count;
}

void ShmTransport::reap() {
  anything_closed_ = false;
  std::erase_if(connections_, [](const auto &connection) { return !connection->is_open(); });
}

}  // namespace nnti::shm
