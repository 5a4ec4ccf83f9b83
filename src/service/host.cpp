// SPDX-License-Identifier: BSD-3-Clause
#include <service/host.hpp>

#include <base/log.hpp>
#include <nssi/statistics.hpp>

#include <algorithm>
#include <thread>

void nessie::Provider::peer_lost(nnti::PeerId) {}

namespace nessie::service {

Result<std::unique_ptr<Host>> Host::open(HostOptions options) {
  std::unique_ptr<Host> host(new Host(std::move(options)));
  auto runtime_options = host->options_.runtime;
  runtime_options.budget = &host->budget_;
  runtime_options.add_to_statistics = [host = host.get()](nssi::Statistics &all) { host->add_to(all); };
  auto runtime = nssi::Runtime::open(std::move(runtime_options));
  if (!runtime.ok()) return runtime.error();
  host->owned_runtime_ = *std::move(runtime);
  host->runtime_ = host->owned_runtime_.get();
  host->runtime_->on_peer_lost([host = host.get()](nssi::PeerId peer, const Error &) {
    for (auto &each : host->hosted_) each.provider->peer_lost(peer);
  });
  return host;
}

void Host::add_to(nssi::Statistics &all) {
  const std::lock_guard lock(describing_mutex_);
  for (const auto *it : described_) {
    all.providers.push_back(
        {it->place.name, it->place.type, it->place.number, it->place.pool, it->provider->describe()});
    auto &figures = all.providers.back().figures;
    it->provider->measure([&](const auto &name, const auto &labels, double value) {
      figures.push_back({name, labels, value});
    });
  }
}

Host::~Host() {
  if (owned_runtime_) (void)finish();
}

Result<Provider *> Host::start(ProviderPlace place, const Start &start) {
  std::list<Hosted> starting;  // whatever the runtime does meanwhile, the others have nothing to do with it yet
  auto &hosted = starting.emplace_back(Hosted{std::move(place), options_.runtime.endpoint.config, nullptr, nullptr});
  for (const auto &setting : hosted.place.settings) hosted.config.set(setting);
  auto &main_thread = options_.main_thread != nullptr ? *options_.main_thread : own_main_thread_;
  hosted.context = std::make_unique<ProviderContext>(
      ProviderContext{*runtime_, hosted.place.name, hosted.place.number, hosted.place.pool, hosted.config, budget_,
                      main_thread, hosted.place.uses, [this] { end(); }});
  auto started = start(*hosted.context);
  if (!started.ok()) return started.error();
  hosted.provider = *std::move(started);
  hosted_.splice(hosted_.end(), starting);
  const std::lock_guard lock(describing_mutex_);
  described_.push_back(&hosted);
  return hosted.provider.get();
}

void Host::run() {
  std::thread driver([&] {
    runtime_->run();
    if (options_.main_thread == nullptr) own_main_thread_.stop();
  });
  if (options_.main_thread == nullptr) own_main_thread_.run();
  driver.join();
}

bool Host::holds_data() const {
  return std::ranges::any_of(hosted_, [](const Hosted &each) { return each.provider->holds_data(); });
}

void Host::end() {
  const bool is_first = asked_to_end_.fetch_add(1) == 0;
  runtime_->spawn([this, is_first] {
    if (is_first) return quiesce();
    if (!holds_data()) return runtime_->stop();
    log::warning("data are on their way to their files, and would be lost: this goes on until they are there");
  });
}

/// A fiber. Nobody's request comes between the last look and the refusal of further ones.
void Host::quiesce() {
  do quiesce_all();
  while (holds_data() && !is_finished_);
  runtime_->stop_when_done(Deadline::in(options_.patience));
}

/// Who asks twice may have the runtime end while some still quiesce, or have not begun to.
void Host::quiesce_all() {
  struct State {
    State(nssi::Runtime &runtime, std::size_t count) : all_have(runtime), left(count) {}
    nssi::Event all_have;
    std::size_t left;
  };
  const auto state = std::make_shared<State>(*runtime_, hosted_.size());
  for (auto &each : hosted_)
    runtime_->spawn([this, state, provider = each.provider.get()] {
      if (!is_finished_) provider->quiesce();
      if (--state->left == 0) state->all_have.set();
    });
  if (state->left > 0) (void)state->all_have.wait();
}

int Host::finish() {
  is_finished_ = true;
  {
    const std::lock_guard lock(describing_mutex_);
    described_.clear();
  }
  int code = 0;
  for (auto each = hosted_.rbegin(); each != hosted_.rend(); ++each) {
    each->provider->stop();
    if (code == 0) code = each->provider->exit_code();
  }
  owned_runtime_.reset();  // whose fibers may be at the providers' work still
  while (!hosted_.empty()) hosted_.pop_back();
  return code;
}

}  // namespace nessie::service
