// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/worker.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

namespace nnti::ucx {

namespace {

constexpr unsigned kFrameId = 1, kChunkId = 2;

struct ReleaseConfig {
  void operator()(ucp_config_t *config) const { library().config_release(config); }
};
using UcxConfig = std::unique_ptr<ucp_config_t, ReleaseConfig>;

/// UCX's settings: those of the environment, and ours.
///   PUT_ENABLE  of its tcp: with it, a peer that stopped in the middle of a transfer would still write into our memory
///               when it goes on, however long ago the transfer was cancelled; without it late bytes are thrown away.
///   CONN_NB     of its tcp: otherwise connecting blocks.
Result<UcxConfig> make_config(const nessie::Config &config) {
  ucp_config_t *read = nullptr;
  if (auto status = library().config_read(nullptr, nullptr, &read); status != UCS_OK)
    return ucx_error("UCX's settings (UCX_* in the environment) cannot be read", status);
  UcxConfig settings(read);
  library().config_modify(read, "PUT_ENABLE", "n");
  library().config_modify(read, "CONN_NB", "y");
  const auto tls = config.get("nnti.ucx.tls");
  if (tls && library().config_modify(read, "TLS", tls->c_str()) != UCS_OK)
    return Error{Code::kInvalidArgument, fmt::format("nnti.ucx.tls: UCX takes no '{}'", *tls)};
  return settings;
}

/// What one of UCX's functions prints.
template <class Print> std::string printed(Print print) {
  char *text = nullptr;
  std::size_t size = 0;
  FILE *stream = ::open_memstream(&text, &size);
  if (stream == nullptr) return {};
  print(stream);
  std::fclose(stream);
  std::string result(text, size);
  std::free(text);
  return result;
}

/// The words of the form "tcp/eth0" in what UCX prints.
std::string devices_in(const std::string &text, std::string_view keyword) {
  std::istringstream lines(text);
  std::set<std::string> devices;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(keyword) == std::string::npos) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (const auto slash = word.find('/'); slash != std::string::npos)
        devices.insert(word.substr(word.find(':') + 1));
  }
  return fmt::format("{}", fmt::join(devices, ", "));
}

/// Takes what a function that starts an operation returned.
ucs_status_t started(ucs_status_ptr_t request) {
  if (request == nullptr) return UCS_OK;
  return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_INPROGRESS;
}

void complete(void *request, ucs_status_t status, void *work) {
  library().request_free(request);
  auto &done = *static_cast<Work *>(work);
  done.events->on_complete(done, status);
}

void handle_sent(void *request, ucs_status_t status, void *work) { complete(request, status, work); }

void handle_received(void *request, ucs_status_t status, std::size_t, void *work) { complete(request, status, work); }

ucp_request_param_t parameters_for(Work &work, WorkerEvents &events) {
  work.events = &events;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.user_data = &work;
  return parameters;
}

}  // namespace

Error ucx_error(std::string_view what, ucs_status_t status) {
  const bool unsupported = status == UCS_ERR_UNSUPPORTED || status == UCS_ERR_NO_DEVICE ||
                           status == UCS_ERR_UNREACHABLE || status == UCS_ERR_NOT_IMPLEMENTED;
  const auto code = status == UCS_ERR_NO_MEMORY ? Code::kNoMemory : unsupported ? Code::kUnsupported : Code::kIo;
  return {code, fmt::format("{}: {}", what, library().status_string(status)), nessie::Scope::kOperation, -status};
}

// --- one peer -----------------------------------------------------------------------------------------------------------

Link::~Link() {
  if (endpoint_ == nullptr) return;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  parameters.cb.send = [](void *request, ucs_status_t, void *) { library().request_free(request); };
  library().ep_close_nbx(endpoint_, &parameters);
}

ucs_status_t Link::send(unsigned id, std::span<const std::byte> header, std::span<const std::byte> bytes,
                        std::uint32_t flags, Work &work) {
  auto parameters = parameters_for(work, events_);
  parameters.cb.send = handle_sent;
  parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = flags;
  return started(
      library().am_send_nbx(endpoint_, id, header.data(), header.size(), bytes.data(), bytes.size(), &parameters));
}

ucs_status_t Link::send_frame(std::span<const std::byte> bytes, Work &work) {
  return send(kFrameId, {}, bytes, UCP_AM_SEND_FLAG_EAGER, work);
}

ucs_status_t Link::send_chunk(std::span<const std::byte> bytes, ChunkSlot &slot) {
  return send(kChunkId, std::as_bytes(std::span(&slot.chunk, 1)), bytes, 0, slot);
}

std::string Link::devices() const {
  return devices_in(printed([&](FILE *stream) { library().ep_print_info(endpoint_, stream); }), "lane");
}

void Link::handle_failure(void *self, ucp_ep_h, ucs_status_t status) {
  const auto &link = *static_cast<Link *>(self);
  link.events_.on_failure(link.token_, status);
}

// --- the worker ---------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Worker>> Worker::open(const nessie::Config &config, WorkerEvents &events) {
  if (auto loaded = load_library(); !loaded.ok()) return loaded.error();
  std::unique_ptr<Worker> worker(new Worker(events));
  if (auto status = worker->open_context(config); !status.ok()) return status.error();
  if (auto status = worker->open_worker(); !status.ok()) return status.error();
  return worker;
}

Worker::~Worker() {
  if (worker_ != nullptr) library().worker_destroy(worker_);
  if (context_ != nullptr) library().cleanup(context_);
}

Status Worker::open_context(const nessie::Config &config) {
  auto settings = make_config(config);
  if (!settings.ok()) return settings.error();
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  const auto status = library().init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, settings->get(), &context_);
  if (status == UCS_OK) return {};
  context_ = nullptr;
  return ucx_error(
      fmt::format("UCX finds no device for the transports '{}' of nnti.ucx.tls (`ucx_info -d` lists those it has)",
                  config.get_or("nnti.ucx.tls", "all")),
      status);
}

Status Worker::open_worker() {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (auto status = library().worker_create(context_, &parameters, &worker_); status != UCS_OK) {
    worker_ = nullptr;
    return ucx_error("UCX cannot open a worker", status);
  }
  if (library().worker_get_efd(worker_, &wait_fd_) != UCS_OK) wait_fd_ = -1;
  if (auto status = set_handler(kFrameId, handle_frame); !status.ok()) return status;
  if (auto status = set_handler(kChunkId, handle_chunk); !status.ok()) return status;
  return learn_address();
}

Status Worker::set_handler(unsigned id, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t parameters{};
  parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                          UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  parameters.id = id;
  parameters.flags = UCP_AM_FLAG_WHOLE_MSG;
  parameters.cb = callback;
  parameters.arg = this;
  if (auto status = library().worker_set_am_recv_handler(worker_, &parameters); status != UCS_OK)
    return ucx_error("UCX cannot receive active messages", status);
  return {};
}

Status Worker::learn_address() {
  ucp_address_t *address = nullptr;
  std::size_t size = 0;
  if (auto status = library().worker_get_address(worker_, &address, &size); status != UCS_OK)
    return ucx_error("UCX cannot tell its worker's address", status);
  const auto *bytes = reinterpret_cast<const std::byte *>(address);
  address_.assign(bytes, bytes + size);
  library().worker_release_address(worker_, address);
  if (size <= kMaxAddressBytes) return {};
  return Error{Code::kUnsupported, "UCX has too many devices here; choose some with nnti.ucx.tls or UCX_NET_DEVICES"};
}

std::string Worker::devices() const {
  return devices_in(printed([&](FILE *stream) { library().context_print_info(context_, stream); }), "resource");
}

bool Worker::may_block() { return wait_fd_ >= 0 && library().worker_arm(worker_) == UCS_OK; }

Result<std::unique_ptr<Link>> Worker::connect(const std::vector<std::byte> &address, std::uint64_t token) {
  auto link = std::make_unique<Link>(events_, token);
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t *>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = Link::handle_failure;
  parameters.err_handler.arg = link.get();
  if (auto status = library().ep_create(worker_, &parameters, &link->endpoint_); status != UCS_OK) {
    link->endpoint_ = nullptr;
    return ucx_error("UCX has no transport that reaches the peer and tells of its end (see nnti.ucx.tls)", status);
  }
  return link;
}

ucs_status_t Worker::receive(const Payload &payload, std::span<std::byte> into, Work &work) {
  auto parameters = parameters_for(work, events_);
  parameters.cb.recv_am = handle_received;
  return started(library().am_recv_data_nbx(worker_, payload.data, into.data(), into.size(), &parameters));
}

ucs_status_t Worker::handle_frame(void *self, const void *, std::size_t header_size, void *data, std::size_t size,
                                  const ucp_am_recv_param_t *parameters) {
  if (header_size != 0 || (parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) return UCS_OK;
  static_cast<Worker *>(self)->events_.on_frame({static_cast<const std::byte *>(data), size});
  return UCS_OK;
}

ucs_status_t Worker::handle_chunk(void *self, const void *header, std::size_t header_size, void *data, std::size_t size,
                                  const ucp_am_recv_param_t *parameters) {
  const bool here = !(parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
  const std::span head(static_cast<const std::byte *>(header), header_size);
  const bool receiving = static_cast<Worker *>(self)->events_.on_chunk(head, {data, size, here});
  return receiving ? UCS_INPROGRESS : UCS_OK;
}

}  // namespace nnti::ucx
