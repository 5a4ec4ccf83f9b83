// SPDX-License-Identifier: BSD-3-Clause
#include "call.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <deque>

namespace nessie_python {

namespace {

/// How long what somebody else does is waited for before it is looked at again.
constexpr std::chrono::milliseconds kGlance{1};

py::object bytes_of(std::span<const std::byte> bytes) {
  return py::bytes(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

/// True: the call is over.
bool wait_for_a_slice(nssi::Call &call, Deadline deadline) {
  const auto status = call.wait(deadline.earlier(Deadline::in(kSlice)));
  return status.code() != Code::kTimedOut || call.test();
}

const nnti::RegisteredBuffer *registered_in(const Buffer *data) {
  if (data == nullptr) return nullptr;
  if (!data->is_valid()) raise(Code::kInvalidArgument, "the bulk buffer is not registered any more");
  return data->registered();
}

}  // namespace

nssi::CallOptions Order::options(const Buffer *data) const {
  nssi::CallOptions options;
  options.data = registered_in(data);
  options.idempotent = idempotent;
  options.one_way = one_way;
  if (when_busy < 0 || when_busy > 1) raise(Code::kInvalidArgument, "when_busy is none of nssi.WhenBusy");
  if (when_busy == 1) options.when_busy = nssi::CallOptions::WhenBusy::kFail;
  if (timeout) options.deadline = deadline_in(timeout);
  return options;
}

// --- one that is waited for where it is made ------------------------------------------------------------------------------

py::object PendingCall::call(Host &host, const Order &order, const py::object &args, Buffer *data) {
  const View view(args);
  const auto options = order.options(data);
  const Visit visit(host);
  nssi::Call call;
  bool is_over = false;
  if (data != nullptr) data->lend();
  auto drop = [&] {
    const Released released;
    call = {};
  };
  try {
    {
      const Released released;
      call = host.runtime().call(order.service, order.op, view.bytes(), options);
      is_over = wait_for_a_slice(call, Deadline::never());
    }
    while (!is_over) {
      check_signals();
      if (host.is_closed()) raise(Code::kCancelled, "the runtime was closed");
      const Released released;
      is_over = wait_for_a_slice(call, Deadline::never());
    }
    check(call.wait());
  } catch (...) {
    drop();
    if (data != nullptr) data->give_back();
    throw;
  }
  if (data != nullptr) data->give_back();
  return bytes_of(call.view());
}

// --- one that goes on -------------------------------------------------------------------------------------------------

std::shared_ptr<PendingCall> PendingCall::start(Host &host, const Order &order, const py::object &args, Buffer *data) {
  const View view(args);
  auto options = order.options(data);
  const Visit visit(host);
  std::shared_ptr<PendingCall> made(new PendingCall(host, data));
  if (!options.deadline) options.deadline = host.default_deadline();
  made->deadline_ = *options.deadline;
  options.on_over = [completion = made->completion_] { completion->complete(); };
  if (data != nullptr) data->lend();
  std::optional<Released> released;
  if (view.bytes().size() > kQuickBytes) released.emplace();
  made->call_ = host.runtime().call(order.service, order.op, view.bytes(), options);
  return made;
}

PendingCall::~PendingCall() {
  if (PyGILState_Check() == 0) return;  // on a fiber, which has ended the call; its C++ part goes by itself
  give_back();
  if (!host_.origin().is_here()) {
    leave_behind(call_);
    leave_behind(completion_);
    return;
  }
  const Released released;
  host_.use_or_outlive([this] { call_ = {}; });
}

void PendingCall::give_back() {
  if (auto *data = std::exchange(data_, nullptr); data != nullptr) data->give_back();
}

double PendingCall::seconds_left() const {
  if (deadline_.is_never()) return 1e9;
  return std::chrono::duration<double>(deadline_.when() - nessie::Clock::now()).count();
}

bool PendingCall::test() {
  host_.origin().check_here();
  if (is_done()) return true;
  if (in_use_.exchange(true)) return false;
  {
    const Visit visit(host_);
    const Released released;
    (void)call_.test();
  }
  in_use_.store(false);
  return is_done();
}

/// A second thread, and whoever waits for what an event loop has, lets the first one do the work.
void PendingCall::wait_some(Deadline deadline) {
  const Released released;
  if (cancelling_.load() || in_use_.exchange(true)) return completion_->wait(deadline.earlier(Deadline::in(kSlice)));
  (void)wait_for_a_slice(call_, deadline);
  in_use_.store(false);
}

void PendingCall::wait(std::optional<double> timeout) {
  host_.origin().check_here();
  const auto deadline = deadline_in(timeout);
  if (is_done()) return;
  const Visit visit(host_);
  while (wait_some(deadline), !is_done()) {
    check_signals();
    if (host_.is_closed()) raise(Code::kCancelled, "the runtime was closed");
    if (deadline.passed())
      raise(Code::kTimedOut, "the result is not here yet; the call goes on, and can be waited for again");
  }
}

/// Whoever waits for it lets it go, soon.
void PendingCall::cancel() {
  host_.origin().check_here();
  if (is_done()) return;
  const Visit visit(host_);
  const Released released;
  cancelling_.store(true);
  while (!is_of_loop_.load() && in_use_.exchange(true)) {
    completion_->wait(Deadline::in(kGlance));
    if (is_done()) return;
  }
  if (is_of_loop_.load()) return end(End::kCancel);
  call_.cancel();
  in_use_.store(false);
}

// --- one of several ---------------------------------------------------------------------------------------------------

/// Those that nobody else waits for are waited for here; the others are looked at now and then.
void PendingCall::wait_some_for_any(const std::vector<std::shared_ptr<PendingCall>> &calls, Deadline deadline) {
  const Released released;
  std::vector<PendingCall *> mine;
  std::vector<nssi::Call *> theirs;
  for (const auto &each : calls) {
    const bool is_twice = std::ranges::find(mine, each.get()) != mine.end();
    if (is_twice || each->cancelling_.load() || each->in_use_.exchange(true)) continue;
    mine.push_back(each.get());
    theirs.push_back(&each->call_);
  }
  const auto slice = deadline.earlier(Deadline::in(mine.size() == calls.size() ? kSlice : kGlance));
  if (mine.empty())
    calls.front()->completion_->wait(slice);
  else
    (void)nssi::wait_any(std::span<nssi::Call *const>(theirs), slice);
  for (auto *each : mine) each->in_use_.store(false);
}

std::size_t PendingCall::wait_any(const std::vector<std::shared_ptr<PendingCall>> &calls,
                                  std::optional<double> timeout) {
  if (calls.empty()) raise(Code::kInvalidArgument, "there is no call to wait for");
  const auto deadline = deadline_in(timeout);
  const auto first_done = [&] { return std::ranges::find_if(calls, [](const auto &each) { return each->is_done(); }); };
  for (const auto &each : calls) each->host_.origin().check_here();
  if (const auto place = first_done(); place != calls.end()) return static_cast<std::size_t>(place - calls.begin());
  std::deque<Visit> visits;  // they stay where they are
  for (const auto &each : calls) visits.emplace_back(each->host_);
  for (;;) {
    wait_some_for_any(calls, deadline);
    if (const auto place = first_done(); place != calls.end()) return static_cast<std::size_t>(place - calls.begin());
    check_signals();
    for (const auto &each : calls)
      if (each->host_.is_closed()) raise(Code::kCancelled, "the runtime was closed");
    if (deadline.passed()) raise(Code::kTimedOut, "none of the results is here yet; the calls go on");
  }
}

// --- its end ----------------------------------------------------------------------------------------------------------

py::object PendingCall::result() {
  host_.origin().check_here();
  if (dropped_.load()) raise(Code::kCancelled, "the call was dropped");
  if (!is_done()) raise(Code::kBusy, "the call is in progress: wait for it first");
  give_back();
  {
    const Released released;
    host_.use_or_outlive([] {});  // a runtime that is being closed changes what the call holds
  }
  check(call_.wait());
  return bytes_of(call_.view());
}

// --- for an event loop ------------------------------------------------------------------------------------------------

void PendingCall::tell(std::shared_ptr<Mailbox> mailbox, std::uint64_t token) {
  host_.origin().check_here();
  if (!is_done() && in_use_.exchange(true))
    raise(Code::kInvalidArgument, "the call is waited for already: by a thread, or by another task");
  is_of_loop_.store(true);
  completion_->tell(std::move(mailbox), token);
}

void PendingCall::tell_also(std::shared_ptr<Mailbox> mailbox, std::uint64_t token) {
  host_.origin().check_here();
  completion_->tell(std::move(mailbox), token);
}

void PendingCall::expire() { end(End::kExpire); }

void PendingCall::abandon() {
  dropped_.store(true);
  end(End::kDrop);
}

/// On a fiber, which may wait for the server's word.
void PendingCall::end(End how) {
  if (is_done() || ending_.exchange(true)) return;
  const Visit visit(host_);
  host_.runtime().spawn([self = shared_from_this(), how] {
    switch (how) {
      case End::kExpire: return (void)self->call_.wait(Deadline::now());
      case End::kCancel: return self->call_.cancel();
      case End::kDrop: self->call_ = {};
    }
  });
}

// --- Python -----------------------------------------------------------------------------------------------------------

namespace {

template <auto kMake>
auto made(Host &host, const nssi::Service &service, nssi::OpCode op, const py::object &args, Buffer *data,
          std::optional<double> timeout, bool idempotent, bool one_way, int when_busy) {
  return kMake(host, Order{service, op, timeout, idempotent, one_way, when_busy}, args, data);
}

void bind_service(py::module_ &module) {
  py::class_<nssi::Service>(module, "Service")
      .def(py::init([](std::uint64_t peer, std::uint32_t program, std::uint32_t version, std::uint32_t provider) {
             return nssi::Service{{peer}, {program, version}, provider};
           }),
           py::arg("peer"), py::arg("program"), py::arg("version"), py::arg("provider") = 0)
      .def_property_readonly("peer", [](const nssi::Service &it) { return it.peer.value; })
      .def_property_readonly("program", [](const nssi::Service &it) { return it.interface.program; })
      .def_property_readonly("version", [](const nssi::Service &it) { return it.interface.version; })
      .def_property_readonly("provider", [](const nssi::Service &it) { return it.provider; });
}

}  // namespace

void bind_call(py::module_ &module) {
  bind_service(module);
  py::class_<PendingCall, std::shared_ptr<PendingCall>>(module, "Call")
      .def("test", &PendingCall::test)
      .def("wait", &PendingCall::wait, py::arg("timeout") = py::none())
      .def("result", &PendingCall::result)
      .def("tell", &PendingCall::tell, py::arg("mailbox"), py::arg("token"))
      .def("tell_also", &PendingCall::tell_also, py::arg("mailbox"), py::arg("token"))
      .def("cancel", &PendingCall::cancel)
      .def("expire", &PendingCall::expire)
      .def("abandon", &PendingCall::abandon)
      .def_property_readonly("is_done", &PendingCall::is_done)
      .def_property_readonly("seconds_left", &PendingCall::seconds_left);
  module.def("wait_any", &PendingCall::wait_any, py::arg("calls"), py::arg("timeout"));
  const auto host = module.attr("Runtime");
  auto runtime = py::reinterpret_borrow<py::class_<Host, std::shared_ptr<Host>>>(host);
  const auto bind = [&](const char *name, auto function, const auto &...more) {
    runtime.def(name, function, py::arg("service"), py::arg("op"), py::arg("args"), py::arg("data"),
                py::arg("timeout") = py::none(), py::arg("idempotent") = false, py::arg("one_way") = false,
                py::arg("when_busy") = 0, more...);
  };
  bind("call", &made<&PendingCall::call>);
  bind("start", &made<&PendingCall::start>, py::keep_alive<0, 1>(), py::keep_alive<0, 5>());
}

}  // namespace nessie_python
