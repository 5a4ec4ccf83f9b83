// SPDX-License-Identifier: BSD-3-Clause
// For tests: UCX as it is, for a hostile peer (framed/hostile_peer.hpp). It stands on UCX itself, not on our worker, so
// that every byte of it is the test's.
#pragma once

#include "nnti/framed/hostile_peer.hpp"
#include "nnti/transports/ucx/transport.hpp"

#include <deque>

namespace nnti::ucx {

using framed::Bytes;

inline constexpr unsigned kFrames = 1, kChunks = 2;  // the active messages' numbers

/// UCX as it is: sends anything, and keeps what comes.
class RawUcx final : public framed::RawPeer {
 public:
  RawUcx() {
    ucp_config_t *ucx_settings = nullptr;
    EXPECT_EQ(library().config_read(nullptr, nullptr, &ucx_settings), UCS_OK);
    library().config_modify(ucx_settings, "TLS", "tcp");
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_AM;
    EXPECT_EQ(library().init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, ucx_settings, &context_), UCS_OK);
    library().config_release(ucx_settings);
    ucp_worker_params_t worker{};
    EXPECT_EQ(library().worker_create(context_, &worker, &worker_), UCS_OK);
    take(kFrames, take_frame);
    take(kChunks, take_chunk);
  }
  ~RawUcx() override {
    if (endpoint_ != nullptr) {
      ucp_request_param_t parameters{};
      parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
      forget(library().ep_close_nbx(endpoint_, &parameters));
    }
    for (int i = 0; i < 1000; ++i) progress();
    library().worker_destroy(worker_);
    library().cleanup(context_);
  }
  RawUcx(const RawUcx &) = delete;
  RawUcx &operator=(const RawUcx &) = delete;

  Bytes hello() override { return encode_hello({framed::kHostileToken, address()}); }
  void meet(std::span<const std::byte> theirs, const framed::Bootstrap &) override {
    const auto hello = decode_hello(theirs);
    token = hello->token;
    connect(hello->address);
  }
  bool knocks() const override { return true; }
  void send_frame(std::span<const std::byte> bytes) override { send(kFrames, {}, bytes, UCP_AM_SEND_FLAG_EAGER); }
  void send_chunk(const framed::ChunkHeader &header, std::span<const std::byte> bytes) override {
    const Chunk chunk{token, header};
    send(kChunks, std::as_bytes(std::span(&chunk, 1)), bytes);
  }

  Bytes address() {
    ucp_address_t *address = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(library().worker_get_address(worker_, &address, &size), UCS_OK);
    const auto *begin = reinterpret_cast<const std::byte *>(address);
    Bytes bytes(begin, begin + size);
    library().worker_release_address(worker_, address);
    return bytes;
  }
  void connect(const Bytes &address) {
    ucp_ep_params_t parameters{};
    parameters.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t *>(address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler.cb = [](void *, ucp_ep_h, ucs_status_t) {};
    ASSERT_EQ(library().ep_create(worker_, &parameters, &endpoint_), UCS_OK);
  }
  void send(unsigned id, std::span<const std::byte> header, std::span<const std::byte> bytes, std::uint32_t flags = 0) {
    auto &kept = sent_.emplace_back(header.begin(), header.end());
    kept.insert(kept.end(), bytes.begin(), bytes.end());
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = flags;
    forget(library().am_send_nbx(endpoint_, id, kept.data(), header.size(), kept.data() + header.size(), bytes.size(),
                                 &parameters));
  }
  void progress() override { library().worker_progress(worker_); }

 private:
  void take(unsigned id, ucp_am_recv_callback_t callback) {
    ucp_am_handler_param_t parameters{};
    parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                            UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    parameters.id = id;
    parameters.flags = UCP_AM_FLAG_WHOLE_MSG;
    parameters.cb = callback;
    parameters.arg = this;
    EXPECT_EQ(library().worker_set_am_recv_handler(worker_, &parameters), UCS_OK);
  }
  /// UCX keeps the request until it is done; what it reads, or fills, is ours for as long as we live.
  static void forget(ucs_status_ptr_t request) {
    if (UCS_PTR_IS_PTR(request)) library().request_free(request);
  }
  static ucs_status_t take_frame(void *self, const void *, std::size_t, void *data, std::size_t size,
                                 const ucp_am_recv_param_t *) {
    const auto *begin = static_cast<const std::byte *>(data);
    static_cast<RawUcx *>(self)->frames.emplace_back(begin, begin + size);
    return UCS_OK;
  }
  static ucs_status_t take_chunk(void *arg, const void *header, std::size_t header_size, void *data, std::size_t size,
                                 const ucp_am_recv_param_t *parameters) {
    auto &self = *static_cast<RawUcx *>(arg);
    Chunk chunk;
    std::memcpy(&chunk, header, std::min(header_size, sizeof chunk));
    self.chunks.push_back(chunk.header);
    if (!(parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) return UCS_OK;
    if (self.hold_chunks) return UCS_INPROGRESS;
    auto &kept = self.sent_.emplace_back(size);
    ucp_request_param_t receive{};
    forget(library().am_recv_data_nbx(self.worker_, data, kept.data(), kept.size(), &receive));
    return UCS_INPROGRESS;
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::deque<Bytes> sent_;
};

inline framed::HostileTransport hostile_transport() {
  framed::HostileTransport transport{"ucx", {}, nullptr, ucx::open};
  transport.config.set("nnti.ucx.address", "127.0.0.1");
  transport.config.set("nnti.ucx.tls", "tcp");
  if (auto loaded = load_library(); !loaded.ok())
    transport.why = loaded.error().message;
  else
    transport.make = [] { return std::unique_ptr<framed::RawPeer>(std::make_unique<RawUcx>()); };
  return transport;
}

}  // namespace nnti::ucx
