// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/session.hpp>

#include <interpose/embedded/embedded_abi.h>
#include <interpose/pnetcdf/engine/finalize.hpp>
#include <interpose/pnetcdf/engine/patience.hpp>

#include <base/log.hpp>
#include <services/launch/client/client.hpp>

#include <dlfcn.h>
#include <errno.h>

#include <algorithm>
#include <new>
#include <utility>

namespace interpose {

Session &Session::get() {
  static Session session;
  return session;
}

void Session::begin_in_child() {
  Session &session = get();
  const Found found = session.found_;
  new (&session) Session;
  session.found(found);
  session.waits_at_close_ = true;
}

void Session::finish() {
  waits_at_close_ = true;
  if (client_ == nullptr) return;
  settle_files();
  client_->flush_trace();
}

void Session::settle_at_exit(const staging::SettleArgs &file) {
  std::lock_guard lock(mutex_);
  const auto same = [&](const staging::SettleArgs &other) { return other.identity == file.identity; };
  if (std::ranges::none_of(to_settle_, same)) to_settle_.push_back(file);
}

void Session::settle_no_more(const staging::FileIdentity &file) {
  std::lock_guard lock(mutex_);
  std::erase_if(to_settle_, [&](const staging::SettleArgs &other) { return other.identity == file; });
  if (servers_died_) native_since_death_.push_back(file);
}

bool Session::is_native_since_death(const staging::FileIdentity &file) {
  std::lock_guard lock(mutex_);
  return std::ranges::find(native_since_death_, file) != native_since_death_.end();
}

void Session::settle_files() {
  std::unique_lock lock(mutex_);
  const auto files = std::exchange(to_settle_, {});
  lock.unlock();
  for (const auto &file : files)
    if (auto settled = client_->settle(file); !settled) {
      nessie::log::warning("{}: at the end of the program, it is not known whether its data are in the file: {}",
                           file.path, settled.error().to_string());
      return;
    }
}

bool Session::connected() {
  std::lock_guard lock(mutex_);
  if (!tried_) {
    tried_ = true;
    connect();
  }
  return client_ != nullptr;
}

bool Session::look_for_servers() {
  if (!servers_died_ && connected() && client_->all_died()) note_servers_died();
  return servers_died_;
}

namespace {

nessie::Result<staging::Closing> closing_of(const nessie::Config &config) {
  const auto text = config.get_or("close", "auto");
  if (text == "auto") return staging::Closing::kIfSoon;
  if (text == "early") return staging::Closing::kEarly;
  if (text == "durable") return staging::Closing::kDurable;
  return config.bad_value("close", "auto, early or durable");
}

void add(nessie::Config &config, const char *key, const char *found) {
  if (found != nullptr && !config.get(key)) config.set(key, found);
}

/// Servers that are in the program's own processes began with its MPI. kNotFound: there are none.
nessie::Status find_embedded(nessie::Config &config) {
  using nessie::Code;
  using nessie::Error;
  if (!config.get_or("servers", "").starts_with(NESSIE_EMBEDDED_SCHEME)) return {};
  const auto where =
      reinterpret_cast<decltype(&nessie_embedded_where)>(::dlsym(RTLD_DEFAULT, NESSIE_EMBEDDED_WHERE_SYMBOL));
  const auto *servers = where == nullptr ? nullptr : where();
  if (servers == nullptr)
    return Error{Code::kNotFound,
                 "servers in the program's processes begin with MPI_Init, which it did not call by way of "
                 "libnessie_embedded.so (missing in LD_PRELOAD, or MPI_Init was looked up in the MPI itself): run it "
                 "without --embedded"};
  if (servers->urls == nullptr) return Error{Code::kNotFound, servers->why};
  config.set("servers", servers->urls);
  config.set("credential", servers->credential);
  return {};
}

}  // namespace

void Session::connect() {
  auto config = nessie::Config::load();
  if (!config) {
    reason_ = config.error().message;
    return;
  }
  add(*config, "servers", found_.servers);
  add(*config, "credential", found_.credential);
  add(*config, "staging.job", found_.job);
  const auto closing = closing_of(*config);
  if (!closing) {
    reason_ = closing.error().message;
    return;
  }
  closing_ = *closing;
  if (auto found = find_embedded(*config); !found.ok()) {
    reason_ = found.error().message;
    return;
  }
  auto client = staging::Client::connect(*config, program_invocation_short_name, ranks_on_node());
  if (client) {
    client_ = std::move(*client);
    servers_ = client_->servers();
    // Servers that are ranks of this job end when all of it has done with MPI.
    if (config->get_or("servers", "").starts_with(launch::kScheme)) at_finalize([] { get().finish(); });
  } else {
    reason_ = client.error().to_string();
  }
}

}  // namespace interpose
