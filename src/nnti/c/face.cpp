// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/c/face.hpp"

#include "nnti/transport/transport.hpp"

#include <fmt/ranges.h>
#include <nnti/transport_ids.h>
#include <base/log.hpp>
#include <base/url.hpp>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace nnti::face {

namespace {

struct Contexts {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::shared_ptr<Context>> open;
  std::unordered_set<std::uint64_t> closed;
};

/// Never destroyed: a thread may still be inside a call while the process exits.
Contexts &contexts() {
  static auto *all = new Contexts;
  return *all;
}

std::string &last_error_of_thread() {
  thread_local std::string message;
  return message;
}

std::vector<std::string_view> built_in() {
  std::vector<std::string_view> names;
  for (const auto &kind : transport_list()) names.push_back(kind.name);
  return names;
}

Error no_transport(std::string_view what) {
  return {
      Code::kUnsupported,
      fmt::format("{} does not exist here; there are {}, or NNTI_DEFAULT_TRANSPORT for whichever reaches a peer best",
                  what, fmt::join(built_in(), ", "))};
}

/// "ofi://10.0.0.1?provider=tcp" says where to listen, as settings of that transport.
Status apply_url(const char *text, nessie::Config &config, std::span<const std::string_view> ignored) {
  if (text == nullptr || *text == '\0') return {};
  auto url = nessie::Url::parse(text);
  if (!url.ok()) return url.error();
  const auto names = built_in();
  if (std::ranges::find(names, url->transport) == names.end()) {
    if (std::ranges::find(ignored, url->transport) != ignored.end()) return {};
    return no_transport(fmt::format("the transport of '{}'", text));
  }
  if (!url->address.empty()) config.set("nnti." + url->transport + ".address", url->address);
  for (const auto &[key, value] : url->query) config.set("nnti." + url->transport + "." + key, value);
  return {};
}

}  // namespace

Number number_of(Code code) {
  switch (code) {
#define NNTI_NUMBER_OF(name, number, result, next) \
  case static_cast<Code>(number): return k##result;
    NESSIE_CODES(NNTI_NUMBER_OF)
#undef NNTI_NUMBER_OF
  }
  return kEIO;
}

const char *name_of(int number) {
  switch (number) {
#define NNTI_NAME_OF(name, number, number_in_trios) \
  case number: return "NNTI_" #name;
    NESSIE_RESULTS(NNTI_NAME_OF, NNTI_NAME_OF)
#undef NNTI_NAME_OF
    default: return "unknown NNTI result";
  }
}

std::vector<std::span<std::byte>> pieces_of(char **segments, const std::uint64_t *lengths, std::uint64_t count) {
  constexpr std::uint64_t kMost = 65'536;  // as Context::register_segments()
  std::vector<std::span<std::byte>> pieces;
  if (count > kMost) return pieces;
  for (std::uint64_t i = 0; i < count; ++i) pieces.emplace_back(reinterpret_cast<std::byte *>(segments[i]), lengths[i]);
  return pieces;
}

Outcome copy_url(const Context &context, char *url, std::uint64_t max_bytes) {
  if (url == nullptr) return null_argument();
  const auto &text = context.url();
  if (text.size() >= max_bytes) return {kEMSGSIZE, fmt::format("the URL needs {} bytes", text.size() + 1)};
  std::memcpy(url, text.c_str(), text.size() + 1);
  return {};
}

Outcome outcome_of(const Event &event) {
  if (event.code == Code::kOk) return {};
  const Number number = number_of(event.code);
  return {number, std::string("the operation failed: ") + nessie_code_advice(static_cast<int>(event.code))};
}

Number report(const Outcome &outcome) {
  if (!outcome.ok()) last_error_of_thread() = std::string(name_of(outcome.number)) + ": " + outcome.message;
  return outcome.number;
}

const std::string &last_error() { return last_error_of_thread(); }

void log_exception(const std::exception &error) { nessie::log::error("NNTI: {}", error.what()); }

Result<Deadline> deadline_of(int timeout_ms) {
  if (timeout_ms < -1)
    return Error{Code::kInvalidArgument,
                 fmt::format("a timeout of {} ms; it is -1 (for ever), 0 (not at all) or more", timeout_ms)};
  return Deadline::from_ms(timeout_ms);
}

Result<std::vector<std::string>> transports_numbered(int id) {
  static constexpr const char *kOld[] = {"", "Portals", "InfiniBand", "Gemini", "DCMF", "PAMI"};
  using Names = std::vector<std::string>;
  switch (id) {
    case 6: return Names{"mpi"};
    case 7: return Names{"inproc", "shm"};
    case 8: return Names{"shm"};
    case 9: return Names{"ofi"};
    case 10: return Names{"inproc"};
    case 11: return Names{};
    case 12: return Names{"ucx"};
    case 13: return Names{"tcp"};
    default: break;
  }
  if (id <= 0 || id >= NNTI_TRANSPORT_IDS_END)
    return Error{Code::kInvalidArgument, fmt::format("there is no transport with the number {}", id)};
  return no_transport(fmt::format("a transport over {} by itself", kOld[id]));
}

Result<ContextOptions> options_for(int transport, const char *my_url, std::span<const std::string_view> ignored) {
  auto transports = transports_numbered(transport);
  if (!transports.ok()) return transports.error();
  auto config = nessie::Config::load();
  if (!config.ok()) return config.error();
  ContextOptions options;
  options.config = std::move(*config);
  options.transports = std::move(*transports);
  if (auto status = apply_url(my_url, options.config, ignored); !status.ok()) return status.error();
  return options;
}

void add_context(std::shared_ptr<Context> context) {
  std::lock_guard guard(contexts().mutex);
  const auto id = context->id().value;
  contexts().open.emplace(id, std::move(context));
}

std::shared_ptr<Context> find_context(ProcessId id) {
  std::lock_guard guard(contexts().mutex);
  auto found = contexts().open.find(id.value);
  return found == contexts().open.end() ? nullptr : found->second;
}

std::shared_ptr<Context> remove_context(ProcessId id) {
  std::lock_guard guard(contexts().mutex);
  auto node = contexts().open.extract(id.value);
  if (node.empty()) return nullptr;
  contexts().closed.insert(id.value);
  return std::move(node.mapped());
}

bool was_open(ProcessId id) {
  std::lock_guard guard(contexts().mutex);
  return contexts().closed.contains(id.value);
}

}  // namespace nnti::face
