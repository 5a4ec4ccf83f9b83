// SPDX-License-Identifier: BSD-3-Clause
#include "host.hpp"

#include "desk.hpp"

#include <base/config.hpp>

#include <thread>

namespace nessie_python {

// --- Visit ------------------------------------------------------------------------------------------------------------

int &Visit::depth() {
  static thread_local int depth = 0;
  return depth;
}

Visit::Visit(Host &host) : host_(host) {
  host_.origin_.check_here();
  host_.visitors_.fetch_add(1);
  if (host_.closed_.load()) {
    host_.visitors_.fetch_sub(1);
    host_.visitors_.notify_all();
    raise(Code::kCancelled, "the runtime is closed");
  }
  ++depth();
}

Visit::~Visit() {
  --depth();
  if (host_.visitors_.fetch_sub(1) == 1 && host_.closed_.load()) host_.visitors_.notify_all();
}

// --- Host -------------------------------------------------------------------------------------------------------------

namespace {

/// Python's threads wait on fibers of their own for their commands; these hold no Python, and need little.
constexpr std::size_t kFiberStackBytes = std::size_t{64} * 1024;

constexpr std::chrono::milliseconds kLongestLook{1000};  ///< at where a service may be, before signals are looked at

nssi::RuntimeOptions options_of(HostOptions options) {
  nssi::RuntimeOptions made;
  made.fiber_stack_bytes = kFiberStackBytes;
  made.endpoint.transports = std::move(options.transports);
  made.endpoint.listen = options.listen;
  made.endpoint.config = take(nessie::Config::load());
  for (auto &[key, value] : options.settings) made.endpoint.config.set(key, std::move(value));
  if (options.credential) made.endpoint.credential = take(nessie::Credential::from_hex(*options.credential));
  return made;
}

}  // namespace

Host::Host(std::unique_ptr<nssi::Runtime> runtime) : runtime_(std::move(runtime)), url_(runtime_->url()) {}

Host::~Host() {
  close();
  if (origin_.is_here()) return;
  leave_behind(runtime_);
  leave_behind(announcements_);
  leave_behind(workers_);
}

std::shared_ptr<Host> Host::open(HostOptions options) {
  const auto most = options.max_handlers;
  auto made = options_of(std::move(options));
  const auto timeout = take(made.endpoint.config.get_duration("nssi.timeout", std::chrono::milliseconds(30000)));
  const Released released;
  std::shared_ptr<Host> host(new Host(take(nssi::Runtime::open(std::move(made)))));
  host->timeout_ = timeout;
  host->workers_->set_most(most);
  return host;
}

std::uint64_t Host::connect(const std::string &url, double timeout) {
  const auto deadline = deadline_in(timeout);
  const Released released;
  Visit visit(*this);
  return take(runtime_->connect(url, deadline)).value;
}

/// Whoever waits for a service that is not there yet wants to be able to interrupt that.
std::vector<nssi::Place> Host::wait_for(const std::string &what, Deadline deadline) {
  for (auto slice = kSlice;; slice = std::min(2 * slice, kLongestLook)) {
    {
      const Released released;
      Visit visit(*this);
      auto places = nssi::find(*runtime_, what, deadline.earlier(Deadline::in(slice)));
      const bool may_come = places.code() == Code::kTimedOut || places.code() == Code::kPeerLost;
      if (!may_come || deadline.passed()) return take(std::move(places));
    }
    check_signals();
  }
}

std::uint64_t Host::connect_to(const std::string &what, double timeout) {
  const auto deadline = deadline_in(timeout);
  const auto places = wait_for(what, deadline);
  const Released released;
  Visit visit(*this);
  return take(nssi::connect_to(*runtime_, places, deadline)).value;
}

std::vector<std::string> Host::find(const std::string &what, double timeout) {
  std::vector<std::string> urls;
  for (auto &place : wait_for(what, deadline_in(timeout))) urls.push_back(std::move(place.url));
  return urls;
}

void Host::announce(const std::string &where, const std::string &kind,
                    const std::map<std::string, std::string> &attributes, double timeout) {
  const auto deadline = deadline_in(timeout);
  nssi::AnnounceOptions options{kind};
  options.attributes.assign(attributes.begin(), attributes.end());
  const Released released;
  Visit visit(*this);
  auto announcement = take(nssi::announce(*runtime_, where, options, deadline));
  const std::lock_guard lock(announcing_);
  announcements_.push_back(std::move(announcement));
}

void Host::disconnect(std::uint64_t peer) {
  const Released released;
  Visit visit(*this);
  runtime_->disconnect({peer});
}

// --- serving ----------------------------------------------------------------------------------------------------------

void Host::add_operation(nssi::Operation operation, py::object handler, py::object serve) {
  Visit visit(*this);
  kept_.push_back(std::make_unique<py::object>(std::move(handler)));
  auto *kept_handler = kept_.back().get();
  kept_.push_back(std::make_unique<py::object>(std::move(serve)));
  auto *kept_serve = kept_.back().get();
  operation.handler = [this, kept_handler, kept_serve](nssi::Request &request) {
    this->serve(request, kept_handler, kept_serve);
  };
  operation.reads_args_once = true;  // into a bytes object
  const auto status = [&] {
    const Released released;
    return runtime_->add_operation(std::move(operation));
  }();
  check(status);
}

/// A short handler whose arguments had to be fetched is on a fiber, too.
void Host::serve(nssi::Request &request, py::object *handler, py::object *serve) {
  if (!runtime_->in_fiber()) return serve_here(request, handler, serve);
  auto desk = std::make_shared<Desk>(request, Desk::Place::kFiber);
  workers_->give({desk, handler}, request.caller());
  desk->attend(*runtime_);
}

void Host::serve_here(nssi::Request &request, py::object *handler, py::object *serve) {
  py::gil_scoped_acquire acquire;
  auto desk = std::make_shared<Desk>(request, Desk::Place::kHere);
  try {
    (*serve)(desk, *handler);
  } catch (py::error_already_set &thrown) {
    interruption_ = std::make_unique<py::error_already_set>(thrown);
    runtime_->stop();
  }
  desk->leave();
}

// --- driving ----------------------------------------------------------------------------------------------------------

/// Has run() return again and again, in the main thread, for signals.
void Host::tick() {
  while (!closed_.load()) {
    runtime_->sleep_until(Deadline::in(kSlice));
    if (!user_drives_.load()) continue;
    ticked_.store(true);
    runtime_->stop();
  }
}

void Host::drive_for_a_slice(bool is_user) {
  const Released released;
  std::unique_lock lock(driving_, kSlice);
  if (!lock.owns_lock() || (is_user && stop_.load()) || closed_.load()) return;
  user_drives_.store(is_user);
  ticked_.store(false);
  if (finishing_.load()) runtime_->stop_when_done(Deadline::at(finish_by_.load()));  // run() forgets it
  runtime_->run();
  user_drives_.store(false);
  if (!ticked_.load() && finishing_.exchange(false)) stop_.store(true);
}

void Host::throw_interruption() {
  if (!interruption_) return;
  const auto thrown = std::move(interruption_);
  throw *thrown;
}

void Host::run() {
  Visit visit(*this);
  if (!ticks_) runtime_->spawn([this] { tick(); });
  ticks_ = true;
  while (!stop_.load() && !closed_.load()) {
    drive_for_a_slice(true);
    check_signals();
    throw_interruption();
  }
  stop_.store(false);
}

void Host::pump() {
  Visit visit(*this);
  while (!closed_.load()) drive_for_a_slice(false);
}

void Host::stop() {
  Visit visit(*this);
  stop_.store(true);
  runtime_->stop();
}

void Host::stop_when_done(std::optional<double> timeout) {
  const auto deadline = deadline_in(timeout);
  Visit visit(*this);
  finish_by_.store(deadline.is_never() ? nessie::Clock::time_point::max() : deadline.when());
  finishing_.store(true);
  runtime_->stop_when_done(deadline);
}

void Host::close() {
  if (!origin_.is_here()) return;
  if (Visit::depth() > 0) raise(Code::kInvalidArgument, "a short handler cannot close its runtime: stop() it");
  {
    const Released released;
    std::lock_guard lock(ending_);
    if (closed_.exchange(true)) return;
    workers_->close();
    runtime_->stop();
    for (int inside; (inside = visitors_.load()) != 0;) visitors_.wait(inside);
    announcements_.clear();
    runtime_.reset();
  }
  kept_.clear();
}

}  // namespace nessie_python
