// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/c/runtime.hpp>

namespace nssi::c_runtime {
namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 20;

Error &last_error() {
  static thread_local Error error{.code = Code::kOk, .message = {}};
  return error;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Calls `use` with each part of `text` that is not blank; ends with the first error.
template <class Use> Status for_each_part(std::string_view text, char separator, Use use) {
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (const auto part = trimmed(text.substr(0, end)); !part.empty())
      if (Status status = use(part); !status.ok()) return status;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

Status apply_setting(nessie::Config &config, std::string_view line) {
  const auto equals = line.find('=');
  const auto name = trimmed(line.substr(0, equals));
  if (equals == line.npos || name.empty())
    return invalid("the setting \"" + std::string(line) + "\" is not of the form `name = value`");
  config.set(name, std::string(trimmed(line.substr(equals + 1))));
  return {};
}

Result<nnti::EndpointOptions> endpoint_options(const nssi_rt_options &from) {
  nnti::EndpointOptions options;
  auto config = nessie::Config::load();
  if (!config.ok()) return config.error();
  options.config = *std::move(config);
  auto status = for_each_part(from.settings != nullptr ? from.settings : "", '\n',
                              [&](std::string_view line) { return apply_setting(options.config, line); });
  if (!status.ok()) return status.error();
  (void)for_each_part(from.transports != nullptr ? from.transports : "", ',', [&](std::string_view name) {
    options.transports.emplace_back(name);
    return Status();
  });
  options.listen = from.connects_only == 0;
  return options;
}

Result<RuntimeOptions> options_of(const nssi_rt_options &from) {
  RuntimeOptions options;
  auto endpoint = endpoint_options(from);
  if (!endpoint.ok()) return endpoint.error();
  options.endpoint = *std::move(endpoint);
  options.fiber_stack_bytes = from.fiber_stack_bytes != 0 ? from.fiber_stack_bytes : kStackBytes;
  if (from.max_fibers != 0) options.max_fibers = from.max_fibers;
  options.bulk_quiet = std::chrono::microseconds(from.bulk_quiet_us);
  if (from.bulk_longest_hold_us != 0) options.bulk_longest_hold = std::chrono::microseconds(from.bulk_longest_hold_us);
  return options;
}

/// Calls `use` with the C++ runtime behind the handle.
template <class Use> int with(const nssi_rt_runtime *handle, Use use) {
  return guarded([&]() -> Status {
    if (!is_open(handle)) return invalid("the runtime is null or closed");
    return use(*handle->home->runtime);
  });
}

template <class Make> Status make_buffer(nssi_rt_runtime *runtime, int32_t rights, nssi_rt_buffer **buffer, Make make) {
  if (buffer == nullptr) return invalid("buffer is null");
  if (rights < NSSI_RT_READ || rights > NSSI_RT_READ_WRITE)
    return invalid("rights are NSSI_RT_READ, NSSI_RT_WRITE or NSSI_RT_READ_WRITE");
  auto made = make(static_cast<nnti::Rights>(rights));
  if (!made.ok()) return made.error();
  auto one = Handles<nssi_rt_buffer>::take();
  one->home = runtime->home;
  one->buffer = *std::move(made);
  *buffer = Handles<nssi_rt_buffer>::open(std::move(one));
  return {};
}

}  // namespace

int fail(const Error &error) noexcept {
  auto &last = last_error();
  last.code = error.code;
  last.scope = error.scope;
  last.cause = error.cause;
  last.retry_after = error.retry_after;
  try {
    last.message = error.message;
  } catch (const std::bad_alloc &) { last.message.clear(); }
  return static_cast<int>(error.code);
}

int fail(Code code, std::string_view message) noexcept {
  try {
    return fail(Error{code, std::string(message)});
  } catch (const std::bad_alloc &) { return fail(Error{code, {}}); }
}

}  // namespace nssi::c_runtime

using namespace nssi::c_runtime;
using nssi::Status;

int32_t nssi_rt_last_code(void) { return static_cast<int32_t>(last_error().code); }
const char *nssi_rt_last_error(void) { return last_error().message.c_str(); }
int32_t nssi_rt_last_scope(void) { return static_cast<int32_t>(last_error().scope); }
int32_t nssi_rt_last_cause(void) { return last_error().cause; }
int64_t nssi_rt_last_retry_after_ms(void) { return last_error().retry_after.count(); }

// --- runtimes ---------------------------------------------------------------------------------------------------------

nssi::c_runtime::Lent::Lent(Runtime &runtime) {
  auto one = Handles<nssi_rt_runtime>::take();
  one->home = std::make_shared<Home>();
  one->home->runtime = {std::shared_ptr<void>(), &runtime};
  one->is_lent = true;
  handle_ = Handles<nssi_rt_runtime>::open(std::move(one));
}

void nssi::c_runtime::Lent::end() {
  if (!Handles<nssi_rt_runtime>::close(handle_)) return;
  handle_->home->end();
  handle_->home.reset();
  handle_->is_lent = false;
  Handles<nssi_rt_runtime>::give_back(handle_);
}

int nssi_rt_open(const nssi_rt_options *options, nssi_rt_runtime **runtime) {
  return guarded([&]() -> Status {
    if (runtime == nullptr) return invalid("runtime is null");
    auto wanted = options_of(options != nullptr ? *options : nssi_rt_options{});
    if (!wanted.ok()) return wanted.error();
    auto opened = nssi::Runtime::open(*std::move(wanted));
    if (!opened.ok()) return opened.error();
    auto home = std::make_shared<Home>();
    home->runtime = *std::move(opened);
    auto one = Handles<nssi_rt_runtime>::take();
    one->home = std::move(home);
    *runtime = Handles<nssi_rt_runtime>::open(std::move(one));
    return {};
  });
}

int nssi_rt_close(nssi_rt_runtime *runtime) {
  return with(runtime, [&](nssi::Runtime &it) -> Status {
    if (runtime->is_lent) return invalid("the runtime is its host's, who closes it");
    if (it.in_fiber() || in_short_handler_of(it)) return invalid("a handler cannot close its own runtime");
    if (!Handles<nssi_rt_runtime>::close(runtime)) return invalid("the runtime is being closed");
    runtime->home->end();
    runtime->home.reset();
    Handles<nssi_rt_runtime>::give_back(runtime);
    return {};
  });
}

const char *nssi_rt_url(const nssi_rt_runtime *runtime) {
  const char *url = nullptr;
  (void)with(runtime, [&](nssi::Runtime &it) -> Status {
    url = it.url().c_str();
    return {};
  });
  return url;
}

int nssi_rt_connect(nssi_rt_runtime *runtime, const char *url, int32_t timeout_ms, uint64_t *peer) {
  return with(runtime, [&](nssi::Runtime &it) -> Status {
    if (url == nullptr || peer == nullptr) return invalid("url or peer is null");
    const auto deadline = deadline_of(timeout_ms);
    if (!deadline.ok()) return deadline.error();
    auto connected = it.connect(url, *deadline);
    if (!connected.ok()) return connected.error();
    *peer = connected->value;
    return {};
  });
}

int nssi_rt_disconnect(nssi_rt_runtime *runtime, uint64_t peer) {
  return with(runtime, [&](nssi::Runtime &it) -> Status {
    it.disconnect({peer});
    return {};
  });
}

int nssi_rt_max_inline_args(nssi_rt_runtime *runtime, uint64_t peer, uint64_t *size_bytes) {
  return with(runtime, [&](nssi::Runtime &it) -> Status {
    if (size_bytes == nullptr) return invalid("size_bytes is null");
    *size_bytes = it.max_inline_args({peer});
    return {};
  });
}

int nssi_rt_sleep(nssi_rt_runtime *runtime, int32_t time_ms) {
  return with(runtime, [&](nssi::Runtime &it) -> Status {
    if (time_ms < 0) return invalid("a sleep has an end");
    const auto end = nssi::Deadline::in(std::chrono::milliseconds(time_ms));
    it.sleep_until(end);
    if (!end.passed() && it.in_fiber()) return nssi::Error{nssi::Code::kCancelled, "the runtime is being closed"};
    return {};
  });
}

// --- bulk buffers -----------------------------------------------------------------------------------------------------

int nssi_rt_register(nssi_rt_runtime *runtime, void *memory, uint64_t size_bytes, int32_t rights,
                     nssi_rt_buffer **buffer) {
  return with(runtime, [&](nssi::Runtime &it) -> Status {
    if (memory == nullptr && size_bytes != 0) return invalid("memory is null");
    return make_buffer(runtime, rights, buffer, [&](nnti::Rights allowed) {
      return it.register_memory({static_cast<std::byte *>(memory), size_bytes}, allowed);
    });
  });
}

int nssi_rt_allocate(nssi_rt_runtime *runtime, uint64_t size_bytes, int32_t rights, nssi_rt_buffer **buffer) {
  return with(runtime, [&](nssi::Runtime &it) -> Status {
    return make_buffer(runtime, rights, buffer, [&](nnti::Rights allowed) { return it.allocate(size_bytes, allowed); });
  });
}

void *nssi_rt_buffer_bytes(const nssi_rt_buffer *buffer) {
  return is_open(buffer) ? buffer->buffer.bytes().data() : nullptr;
}

uint64_t nssi_rt_buffer_size(const nssi_rt_buffer *buffer) {
  return is_open(buffer) ? buffer->buffer.bytes().size() : 0;
}

int32_t nssi_rt_buffer_rights(const nssi_rt_buffer *buffer) {
  return is_open(buffer) ? static_cast<int32_t>(buffer->buffer.rights()) : 0;
}

int nssi_rt_free_buffer(nssi_rt_buffer *buffer) {
  return guarded([&]() -> Status {
    if (!is_open(buffer)) return invalid("the buffer is null or freed");
    if (buffer->lent.load() != 0)
      return nssi::Error{nssi::Code::kBusy, "the buffer is lent to a call: wait for the call, or free it, first"};
    if (!Handles<nssi_rt_buffer>::close(buffer)) return invalid("the buffer is being freed");
    if (buffer->home->runtime) buffer->home->runtime->unregister_memory(std::move(buffer->buffer));
    buffer->buffer.reset();
    buffer->home.reset();
    Handles<nssi_rt_buffer>::give_back(buffer);
    return {};
  });
}
