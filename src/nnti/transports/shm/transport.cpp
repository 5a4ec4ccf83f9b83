// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/transport.hpp"

#include "nnti/transports/shm/memory.hpp"
#include "nnti/transports/shm/transport_impl.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <base/file.hpp>
#include <base/host.hpp>
#include <base/log.hpp>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace nnti::shm {
namespace {

constexpr unsigned kTurnsPerLook = 256;  ///< at the sockets; a power of two
constexpr auto kTransferLimit = std::chrono::seconds(1);

/// What epoll tells apart: seats, and these.
constexpr std::uint64_t kListener = ~1ull, kConnectingSocket = ~2ull;

/// Of a URL that can_reach() has found right.
std::string socket_of(const nessie::Url &url) { return url.address.substr(url.address.find('/') + 1); }

Result<pid_t> process_behind(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return Error{Code::kUnsupported, "the kernel does not say which process the peer is"};
  return credentials.pid;
}

/// What else it might be kills who writes to it (a pipe whose other end is closed), or changes (a file).
bool is_eventfd(int fd) {
  std::array<char, 64> what{};
  const auto size = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), what.data(), what.size());
  if (size > 0) return std::string_view(what.data(), static_cast<std::size_t>(size)) == "anon_inode:[eventfd]";
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == 0;  // without /proc: what has no name has no type
}

/// A connection being made to shm://host/name.
class ShmConnecting final : public Connecting {
 public:
  ShmConnecting(ShmTransport &transport, std::string name) : transport_(transport), name_(std::move(name)) {}
  ~ShmConnecting() override {
    if (connector_ && connector_->fd() >= 0) transport_.unwatch(connector_->fd());
  }

  Status begin() {
    auto socket = bootstrap::connect_unix(name_);
    if (socket.code() == Code::kBusy) return {};  // its queue is full; advance() tries again
    if (!socket.ok()) return socket.error();
    auto hello = transport_.hello();
    if (!hello.ok()) return hello.error();
    transport_.watch(socket->get(), kConnectingSocket, false);
    connector_.emplace(std::move(*socket), transport_.protocol(), transport_.credential(), std::move(*hello));
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
    if (auto seated = transport_.seat(*parts); !seated.ok()) return seated.error();
    return transport_.add_connection(std::move(established.socket), std::move(*parts));
  }

 private:
  ShmTransport &transport_;
  std::string name_;
  std::optional<bootstrap::Connector> connector_;
};

/// How many processes the job has, and who says so: its launcher's variable; 1 if nobody does.
std::pair<std::int64_t, std::string> launched_processes() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_NTASKS"})
    if (const char *value = std::getenv(name))
      if (auto count = std::strtoll(value, nullptr, 10); count > 0) return {count, name};
  return {1, ""};
}

Result<std::uint32_t> slots_of(const nessie::Config &config) {
  auto job_size = config.get_int("nnti.job_size", launched_processes().first);
  if (!job_size.ok()) return job_size.error();
  auto bytes = config.get_size("nnti.mailbox", mailbox_bytes_for(*job_size));
  if (!bytes.ok()) return bytes.error();
  if (*bytes < mailbox_bytes(kMinSlots))
    return config.bad_value("nnti.mailbox", fmt::format("{} bytes or more", mailbox_bytes(kMinSlots)));
  return static_cast<std::uint32_t>(slots_in(*bytes));
}

Result<std::uint64_t> queue_entries_of(const nessie::Config &config) {
  auto entries = config.get_count("nnti.shared_queue", kDefaultQueueEntries);
  if (!entries.ok()) return entries.error();
  if (*entries < kMinQueueEntries || *entries > kMaxQueueEntries)
    return config.bad_value("nnti.shared_queue", fmt::format("{} to {} entries", kMinQueueEntries, kMaxQueueEntries));
  return std::bit_floor(*entries);
}

/// True if the setting has its second value.
Result<bool> is_second(const nessie::Config &config, const char *name, std::string_view first,
                       std::string_view second) {
  auto value = config.get(name).value_or(std::string(first));
  if (value == first || value == second) return value == second;
  return config.bad_value(name, fmt::format("{} or {}", first, second));
}

/// "4672 bytes each way of a connection, for a job of 1 (nnti.job_size; default)".
std::string explain_mailbox(const nessie::Config &config, std::uint64_t slots) {
  auto bytes = fmt::format("{} bytes each way of a connection", mailbox_bytes(slots));
  if (auto source = config.source_of("nnti.mailbox"); !source.empty())
    return fmt::format("{} (nnti.mailbox; from {})", bytes, source);
  const auto [launched, launcher] = launched_processes();
  const auto size = config.get_int("nnti.job_size", launched);
  auto source = config.source_of("nnti.job_size");
  if (source.empty()) source = launcher;
  return fmt::format("{}, for a job of {} (nnti.job_size; {})", bytes, size.ok() ? *size : launched,
                     source.empty() ? "default" : "from " + source);
}

std::vector<Fact> facts(const nessie::Config &config) {
  std::vector<Fact> list;
  if (auto slots = slots_of(config); slots.ok()) {
    list.push_back({"mailbox", explain_mailbox(config, *slots)});
    list.push_back({"messages in place", fmt::format("up to {} bytes", max_in_place_bytes(*slots))});
  } else {
    list.push_back({"mailbox", slots.error().message});
  }
  list.push_back({"fences", nessie::join_asymmetric_fences() ? "membarrier(2): none for a sender"
                                                             : "one for each message: the kernel lacks membarrier(2)"});
  list.push_back(
      {"relay", fmt::format("{} KiB at a time, where cross-memory attach is forbidden", kBounceBytes >> 10)});
  list.push_back({"registered buffers", fmt::format("at most {} of one endpoint", kTableEntries)});
  return list;
}

std::string explain_cma() {
  std::uint64_t word = nessie::random_u64();
  auto allowed = cma_probe(::getpid(), reinterpret_cast<std::uint64_t>(&word), word);
  if (!allowed.ok()) return "relayed by its owner: " + allowed.error().message;
  auto scope = nessie::first_line_of("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0" || (::geteuid() == 0 && scope != "3")) return "reached by cross-memory attach";
  return fmt::format("relayed by its owner: kernel.yama.ptrace_scope is {}; 0 allows cross-memory attach", scope);
}

}  // namespace

TransportInfo survey(const nessie::Config &config) {
  if (nessie::memory_domain().empty())
    return {"shm", false, "/proc is not mounted: processes of this node cannot be told from others"};
  auto use_cma = config.get_bool("nnti.shm.cma", true);
  auto own = use_cma.ok() && !*use_cma ? std::string("relayed by its owner: nnti.shm.cma is off") : explain_cma();
  return {"shm", true,
          "processes of this node; memory that Nessie allocated is mapped; the application's own is " + own,
          facts(config)};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  auto transport = ShmTransport::make(options);
  if (!transport.ok()) return transport.error();
  return std::unique_ptr<Transport>(std::move(*transport));
}

Result<ShmSettings> ShmSettings::of(const nessie::Config &config) {
  auto use_cma = config.get_bool("nnti.shm.cma", true);
  if (!use_cma.ok()) return use_cma.error();
  auto with_queue = is_second(config, "nnti.channel", "mailbox", "shared-queue");
  if (!with_queue.ok()) return with_queue.error();
  auto in_advance = is_second(config, "nnti.channel_setup", "first-use", "in-advance");
  if (!in_advance.ok()) return in_advance.error();
  auto slots = slots_of(config);
  if (!slots.ok()) return slots.error();
  auto entries = queue_entries_of(config);
  if (!entries.ok()) return entries.error();
  return ShmSettings{*use_cma, *with_queue ? ChannelKind::kSharedQueue : ChannelKind::kMailbox, *in_advance, *slots,
                     *entries};
}

Result<std::unique_ptr<ShmTransport>> ShmTransport::make(const TransportOptions &options) {
  if (nessie::memory_domain().empty())
    return Error{Code::kUnsupported, "/proc is not mounted: processes of this node cannot be told from others"};
  auto settings = ShmSettings::of(options.config);
  if (!settings.ok()) return settings.error();
  auto table = OwnTable::make();
  if (!table.ok()) return table.error();
  std::unique_ptr<ShmTransport> transport(new ShmTransport(options, std::move(*table), *settings));
  if (options.listen)
    if (auto status = transport->listen(options.config); !status.ok()) return status.error();
  return transport;
}

ShmTransport::ShmTransport(const TransportOptions &options, OwnTable table, const ShmSettings &settings)
    : Host(options, std::move(table), settings),
      credential_(options.credential),
      protocol_(bootstrap::protocol_name("shm", options.sealed)),
      asymmetric_fence_(nessie::join_asymmetric_fences()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      poller_(options.poller),
      doorbell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  poller_.watch(doorbell_.get(), rung_, Poller::Trigger::kEdge);
}

ShmTransport::~ShmTransport() {
  for (auto &connection : connections_) connection->close();
  poller_.unwatch(doorbell_.get());
}

Result<std::string> ShmTransport::name_to_listen_at(const nessie::Config &config) const {
  auto place = place_to_listen(config, name());
  if (!place.ok()) return place.error();
  if (!*place) return fmt::format("nessie-{}-{:016x}", ::getpid(), nessie::random_u64());
  if (auto here = can_reach(**place); !here.ok())
    return Error{Code::kInvalidArgument,
                 fmt::format("cannot listen at {}: {}", (*place)->to_string(), here.error().message)};
  return socket_of(**place);
}

Status ShmTransport::listen(const nessie::Config &config) {
  auto name = name_to_listen_at(config);
  if (!name.ok()) return name.error();
  auto socket = bootstrap::listen_unix(*name);
  if (!socket.ok()) return socket.error();
  socket_name_ = std::move(*name);
  auto answer = [this](int fd, bootstrap::Hello &theirs) -> Result<bootstrap::Hello> {
    auto parts = take_hello(fd, theirs, true);
    if (!parts.ok()) return parts.error();
    if (auto seated = seat(*parts); !seated.ok()) return seated.error();
    answered_ = std::move(*parts);
    return answer_to(*answered_);
  };
  auto accept = [this](bootstrap::Established established) {
    accepted_.push_back(add_connection(std::move(established.socket), std::move(*answered_)));
  };
  listener_ = std::make_unique<bootstrap::Listener>(std::move(*socket), protocol_, credential_, answer, accept);
  watch(listener_->wait_fd(), kListener, false);
  return {};
}

std::string ShmTransport::url() const {
  return listener_ ? fmt::format("shm://{}/{}", nessie::memory_domain(), socket_name_) : std::string();
}

Status ShmTransport::can_reach(const nessie::Url &url) const {
  auto slash = url.address.find('/');
  if (slash == std::string::npos)
    return Error{Code::kInvalidArgument, fmt::format("'{}' is no address of shm: host/name is expected", url.address)};
  auto host = std::string_view(url.address).substr(0, slash);
  if (host == nessie::memory_domain()) return {};
  auto kernel = host.substr(0, host.find('-'));
  if (kernel == std::string_view(nessie::memory_domain()).substr(0, nessie::memory_domain().find('-')))
    return Error{Code::kUnsupported, "the peer is on this node, but in another network namespace (a container?)"};
  return Error{Code::kUnsupported, "the peer is on another node"};
}

Result<std::unique_ptr<Connecting>> ShmTransport::connect(const nessie::Url &url, Deadline) {
  auto connecting = std::make_unique<ShmConnecting>(*this, socket_of(url));
  if (auto status = connecting->begin(); !status.ok()) return status.error();
  return std::unique_ptr<Connecting>(std::move(connecting));
}

// --- what peers tell each other ---------------------------------------------------------------------------------------

HelloBlob ShmTransport::blob() const {
  HelloBlob blob;
  blob.cma_allowed = settings_.use_cma ? 1 : 0;
  blob.probe_address = reinterpret_cast<std::uint64_t>(&probe_);
  blob.probe_value = probe_;
  blob.asymmetric_fence = asymmetric_fence_ ? 1 : 0;
  return blob;
}

Result<bootstrap::Hello> ShmTransport::hello_of(const HelloBlob &blob, std::initializer_list<int> descriptors) const {
  auto bytes = std::as_bytes(std::span(&blob, 1));
  bootstrap::Hello hello{{bytes.begin(), bytes.end()}, {}};
  for (int fd : descriptors) {
    if (fd < 0) continue;
    hello.descriptors.push_back(nessie::duplicate(fd));
    if (!hello.descriptors.back()) return bootstrap::no_descriptors();
  }
  return hello;
}

Result<bootstrap::Hello> ShmTransport::hello() const {
  auto mine = blob();
  mine.channel = static_cast<std::uint32_t>(settings_.channel);
  mine.slots = settings_.slots;
  return hello_of(mine, {table_.fd(), doorbell_.get()});
}

Result<bootstrap::Hello> ShmTransport::answer_to(const PeerParts &parts) const {
  const bool with_queue = parts.channel == ChannelKind::kSharedQueue;
  auto mine = blob();
  mine.seat = parts.own_seat;
  mine.queue_entries = with_queue ? static_cast<std::uint32_t>(queue_->entries()) : 0;
  return hello_of(mine, {table_.fd(), doorbell_.get(), with_queue ? queue_->fd() : -1});
}

Result<PeerParts> ShmTransport::take_hello(int socket, bootstrap::Hello &theirs, bool accepted) const {
  HelloBlob blob;
  if (theirs.blob.size() != sizeof blob || theirs.descriptors.size() < 2)
    return Error{Code::kBadMessage, "the peer's hello has another shape; run the same Nessie on both sides",
                 nessie::Scope::kPeer};
  if (!std::ranges::all_of(theirs.descriptors, &nessie::Fd::valid)) return bootstrap::no_descriptors();
  std::memcpy(&blob, theirs.blob.data(), sizeof blob);
  if (blob.layout_version != kLayoutVersion)
    return Error{Code::kUnsupported, "the peer's shared memory has another layout; run the same Nessie on both sides",
                 nessie::Scope::kPeer};
  if (!is_eventfd(theirs.descriptors[1].get()))
    return Error{Code::kBadMessage, "what the peer gave to wake it up by is no eventfd", nessie::Scope::kPeer};
  auto table = map_shared_memory(theirs.descriptors[0].get(), sizeof(EndpointTable), Access::kRead);
  if (!table.ok()) return table.error();
  PeerParts parts;
  parts.accepted = accepted;
  parts.table = std::move(*table);
  parts.doorbell = std::move(theirs.descriptors[1]);
  parts.owner = blob.probe_value;
  if (auto status = accepted ? take_choice(blob, parts) : take_answer(blob, theirs, parts); !status.ok())
    return status.error();
  parts.asymmetric_fence = asymmetric_fence_ && blob.asymmetric_fence != 0;
  auto process = process_behind(socket);
  if (!process.ok()) return process.error();
  parts.process = *process;
  if (!settings_.use_cma || blob.cma_allowed == 0)
    parts.cma = Error{Code::kUnsupported, "nnti.shm.cma is off"};
  else
    parts.cma = cma_probe(parts.process, blob.probe_address, blob.probe_value);
  return parts;
}

/// The connecting side chooses the kind of channel.
Status ShmTransport::take_choice(const HelloBlob &blob, PeerParts &parts) const {
  if (blob.channel > static_cast<std::uint32_t>(ChannelKind::kSharedQueue) || !std::has_single_bit(blob.slots) ||
      blob.slots < kMinSlots || blob.slots > kMaxSlots)
    return Error{Code::kBadMessage, "the peer asks for an impossible channel", nessie::Scope::kPeer};
  parts.channel = static_cast<ChannelKind>(blob.channel);
  parts.slots = blob.slots;
  return {};
}

Status ShmTransport::take_answer(const HelloBlob &blob, const bootstrap::Hello &theirs, PeerParts &parts) const {
  const bool with_queue = settings_.channel == ChannelKind::kSharedQueue;
  if (blob.seat >= kSeats || theirs.descriptors.size() != (with_queue ? 3u : 2u))
    return Error{Code::kBadMessage, "the peer's answer has another shape; run the same Nessie on both sides",
                 nessie::Scope::kPeer};
  parts.channel = settings_.channel;
  parts.slots = settings_.slots;
  parts.their_seat = blob.seat;
  if (!with_queue) return {};
  auto queue = map_queue(theirs.descriptors[2].get(), blob.queue_entries);
  if (!queue.ok()) return queue.error();
  parts.queue = std::move(*queue);
  parts.queue_entries = blob.queue_entries;
  return {};
}

Status ShmTransport::seat(PeerParts &parts) {
  if (parts.channel == ChannelKind::kSharedQueue)
    if (auto status = provide_queue(); !status.ok()) return status;
  auto seat = seats_.take();
  if (!seat.ok()) return seat.error();
  parts.own_seat = *seat;
  auto &line = own_table().lines[*seat];
  line.consumed.store(0, std::memory_order_relaxed);
  line.starves.store(0, std::memory_order_relaxed);
  return {};
}

/// Made when the first connection needs it.
Status ShmTransport::provide_queue() {
  if (queue_ && !queue_->is_broken()) return {};
  auto queue = OwnQueue::make(settings_.queue_entries, own_table(), settings_.in_advance);
  if (!queue.ok()) return queue.error();
  if (queue_) broken_queues_.push_back(std::move(queue_));
  queue_ = std::move(*queue);
  seats_.forget_queue();
  return {};
}

ShmConnection *ShmTransport::add_connection(bootstrap::PageSocket socket, PeerParts parts) {
  connections_.push_back(std::make_unique<ShmConnection>(*this, std::move(socket), std::move(parts)));
  auto *connection = connections_.back().get();
  seats_.occupy(connection->seat(), *connection);
  watch(connection->socket_fd(), connection->seat(), false);
  connection->begin();
  return connection;
}

void ShmTransport::leave_seat(std::uint32_t seat, nessie::Fd socket) {
  const int fd = socket.get();
  seats_.leave(seat, std::move(socket));
  watch(fd, seat, false);
}

void ShmTransport::empty_seat(std::uint32_t seat, std::uint64_t drain_to) {
  seats_.empty(seat, drain_to);
  seats_.settle(queue_ ? queue_->next() : 0);
}

// --- memory -----------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<TransportMemory>> ShmTransport::register_memory(const MemoryRegion &region) {
  auto description = table_.add(region);
  if (!description.ok()) return description.error();
  return std::unique_ptr<TransportMemory>(std::make_unique<ShmMemory>(*this, *description, region.memfd));
}

std::optional<MemoryRegion> ShmTransport::find_memory(const RemoteBuffer &buffer) const {
  auto found = look_up(table(), buffer.slot, buffer.key);
  if (!found) return std::nullopt;
  return MemoryRegion{{reinterpret_cast<std::byte *>(found->address), found->size_bytes}, found->rights, -1};
}

void ShmTransport::end_registration(const RemoteBuffer &buffer, bool is_shared) {
  table_.revoke(buffer.slot);
  std::atomic_thread_fence(std::memory_order_seq_cst);
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
  table_.release(buffer.slot);
}

// --- progress ---------------------------------------------------------------------------------------------------------

void ShmTransport::watch(int fd, std::uint64_t whom, bool to_write) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (to_write ? EPOLLOUT : 0u);
  event.data.u64 = whom;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void ShmTransport::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

/// Callbacks may connect, disconnect and make progress themselves: vectors may grow, but shrink only in clean_up(). A
/// connection that needs no attention any more may have some for a while.
std::size_t ShmTransport::progress() {
  std::size_t events = 0;
  ++depth_;
  if (held_rings_->any()) held_rings_->release();
  if (++turns_ % kTurnsPerLook == 0 || look_at_sockets_now_) events += look_at_sockets();
  if (sweep_now_) sweep_mappings();
  if (!accepted_.empty()) events += report_accepted();
  if (queue_) events += read_queue();
  if (!attended_.empty()) events += attend_connections();
  if (--depth_ == 0 && must_clean_up_) clean_up();
  return events;
}

std::size_t ShmTransport::attend_connections() {
  std::size_t events = 0;
  for (std::size_t i = 0; i < attended_.size(); ++i) {
    auto &connection = *attended_[i];
    if (!connection.has_work()) continue;
    events += connection.progress();
    must_clean_up_ |= !connection.needs_attention();
  }
  return events;
}

std::size_t ShmTransport::read_queue() {
  auto &queue = *queue_;  // a callback may put another one in its place
  auto events = queue.progress(seats_, *this);
  if (queue.is_broken() && &queue == queue_.get()) give_queue_up();
  seats_.settle(queue_->next());
  return events;
}

void ShmTransport::deliver(ShmConnection &from, const Message &message, std::span<const std::byte> bytes) {
  from.deliver(message, bytes);
  must_clean_up_ |= !from.is_open();
}

void ShmTransport::reject(ShmConnection &from) {
  from.reject();
  must_clean_up_ = true;
}

/// Who wrote the garbage cannot be told: all that share the queue lose it.
void ShmTransport::give_queue_up() {
  for (const auto &connection : connections_)
    if (connection->uses_queue())
      connection->give_up({Code::kBadMessage,
                           "somebody wrote garbage into the queue that all peers share; its connections are given up",
                           nessie::Scope::kPeer});
}

bool ShmTransport::ready() {
  if (held_rings_->any()) held_rings_->release();
  if (look_at_sockets_now_ || (queue_ && queue_->ready(seats_))) return true;
  for (const auto *connection : attended_)
    if (connection->ready()) return true;
  return false;
}

bool ShmTransport::arm() {
  if (held_rings_->any()) held_rings_->release();
  table_.sleep(!connections_.empty());
  if (!ready()) return true;
  table_.awake();
  return false;
}

void ShmTransport::disarm(bool fd_ready) {
  table_.awake();
  look_at_sockets_now_ |= fd_ready || timer().passed();
}

std::size_t ShmTransport::look_at_sockets() {
  look_at_sockets_now_ = false;
  must_clean_up_ = true;
  std::array<epoll_event, 64> events;
  int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  bool listen = listener_ && listener_->timer().passed();
  for (int i = 0; i < count; ++i) {
    auto whom = events[static_cast<std::size_t>(i)].data.u64;
    listen |= whom == kListener;
    look_at(whom);
  }
  sweep_mappings();
  if (listen) listener_->progress();
  return static_cast<std::size_t>(count > 0);
}

/// Of registrations that have ended at their owners.
void ShmTransport::sweep_mappings() {
  sweep_now_ = false;
  for (const auto &connection : connections_)
    if (connection->is_open()) connection->sweep_mappings();
}

void ShmTransport::look_at(std::uint64_t whom) {
  if (whom < kSeats) {
    auto seat = static_cast<std::uint32_t>(whom);
    if (auto *connection = seats_.occupant(seat))
      connection->on_socket();
    else if (seats_.has_gone(seat))
      empty_seat(seat, queue_ ? queue_->end_of(seat) : 0);
  }
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

/// Forgets connections that are closed, and those that need no look at each turn.
void ShmTransport::clean_up() {
  must_clean_up_ = false;
  broken_queues_.clear();
  std::erase_if(attended_, [](auto *connection) {
    connection->attended = connection->needs_attention();
    return !connection->attended;
  });
  std::erase_if(connections_, [](const auto &connection) { return !connection->is_open(); });
}

}  // namespace nnti::shm
