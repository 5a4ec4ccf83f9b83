// SPDX-License-Identifier: BSD-3-Clause
#include "desk.hpp"

#include "view.hpp"

#include <pybind11/stl.h>

#include <algorithm>

namespace nessie_python {

namespace {

Error over() {
  return {Code::kInvalidArgument, "the request is over: its handler has ended, or the runtime was closed"};
}

}  // namespace

Desk::Desk(nssi::Request &request, Place place)
    : place_(place),
      caller_(request.caller().value),
      data_bytes_(request.data_bytes()),
      op_(request.op()),
      role_(request.role()),
      deadline_(request.deadline()),
      request_(&request) {
  std::ranges::copy(request.caller_identity(), identity_.begin());
}

// --- the handler's side -----------------------------------------------------------------------------------------------

std::optional<double> Desk::seconds_left() const {
  if (deadline_.is_never()) return std::nullopt;
  return std::chrono::duration<double>(deadline_.when() - nessie::Clock::now()).count();
}

py::object Desk::args() {
  if (args_) return args_;
  origin_.check_here();
  std::lock_guard lock(mutex_);  // the request stays meanwhile
  if (request_ == nullptr || left_) throw Raised(over());
  const auto bytes = request_->args();
  args_ = py::bytes(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return args_;
}

void Desk::get_data(const py::object &destination, std::uint64_t offset) {
  const View view(destination, View::kWritable);
  check(carry_out([&](nssi::Request &request) { return request.get_data(view.bytes(), offset); }));
}

void Desk::put_data(const py::object &source, std::uint64_t offset) {
  const View view(source);
  check(carry_out([&](nssi::Request &request) { return request.put_data(view.bytes(), offset); }));
}

/// A caller that is gone is no fault of the handler.
void Desk::reply(const py::object &result) {
  const auto view = result.is_none() ? View() : View(result);
  origin_.check_here();
  if (answered_) raise(Code::kExists, "the request has been answered");
  answered_ = true;
  check(carry_out([&](nssi::Request &request) {
    auto status = request.reply(view.bytes());
    const bool is_gone = status.code() == Code::kPeerLost || status.code() == Code::kCancelled;
    return is_gone ? Status() : status;
  }));
}

void Desk::reply_error(const Error &error) {
  origin_.check_here();
  if (answered_) raise(Code::kExists, "the request has been answered");
  answered_ = true;
  check(carry_out([&](nssi::Request &request) { return (void)request.reply_error(error), Status(); }));
}

void Desk::check_caller() {
  origin_.check_here();
  std::lock_guard lock(mutex_);  // the request stays meanwhile
  check(request_ != nullptr ? request_->check() : over());
}

bool Desk::is_wanted() {
  std::lock_guard lock(mutex_);
  if (request_ == nullptr) return false;
  unwanted_ = request_->check();
  return unwanted_.ok();
}

Status Desk::carry_out(const Work &work) {
  origin_.check_here();
  return place_ == Place::kHere ? carry_out_here(work) : carry_out_on_fiber(work);
}

Status Desk::carry_out_here(const Work &work) {
  if (std::this_thread::get_id() != thread_)
    return Error{Code::kInvalidArgument, "the request of a short handler belongs to its thread"};
  if (request_ == nullptr) return over();
  const Released released;
  return work(*request_);
}

/// The memory that the work uses is the handler's: waits, however long it takes. The request's deadline bounds that.
Status Desk::carry_out_on_fiber(const Work &work) {
  Command command{work};
  const Released released;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return command_ == nullptr; });  // another thread's
  if (request_ == nullptr) return over();
  command_ = &command;
  if (event_ != nullptr) event_->set();
  done_.wait(lock, [&] { return command.is_done; });
  return std::move(command.outcome);
}

void Desk::leave() {
  if (!origin_.is_here()) return;
  std::lock_guard lock(mutex_);
  left_ = true;
  args_ = py::object();
  if (place_ == Place::kHere) request_ = nullptr;
  if (event_ != nullptr) event_->set();
}

// --- the fiber's side -------------------------------------------------------------------------------------------------

void Desk::attend(nssi::Runtime &runtime) {
  while (auto *command = next_command(runtime)) {
    auto status = command->work(*request_);
    std::lock_guard lock(mutex_);
    finish(*command, std::move(status));
  }
  std::lock_guard lock(mutex_);
  if (command_ != nullptr) finish(*command_, over());
  if (!unwanted_.ok()) (void)request_->reply_error(unwanted_.error());
  request_ = nullptr;
}

/// With the mutex.
void Desk::finish(Command &command, Status status) {
  command.outcome = std::move(status);
  command.is_done = true;
  command_ = nullptr;
  done_.notify_all();
}

/// Null: there will be no more.
Desk::Command *Desk::next_command(nssi::Runtime &runtime) {
  nssi::Event event(runtime);
  {
    std::lock_guard lock(mutex_);
    if (command_ != nullptr || left_) return command_;
    event_ = &event;
  }
  const bool is_ending = !event.wait().ok();
  std::lock_guard lock(mutex_);
  event_ = nullptr;
  return is_ending ? nullptr : command_;
}

// --- Python -----------------------------------------------------------------------------------------------------------

void bind_desk(py::module_ &module) {
  py::class_<Desk, std::shared_ptr<Desk>>(module, "Request")
      .def_property_readonly("caller", &Desk::caller)
      .def_property_readonly("caller_identity", &Desk::caller_identity)
      .def_property_readonly("role", &Desk::role)
      .def_property_readonly("op", &Desk::op)
      .def_property_readonly("args", &Desk::args)
      .def_property_readonly("data_bytes", &Desk::data_bytes)
      .def_property_readonly("seconds_left", &Desk::seconds_left)
      .def_property_readonly("is_answered", &Desk::is_answered)
      .def_property_readonly("is_here", &Desk::is_here)
      .def("check", &Desk::check_caller)
      .def("get_data", &Desk::get_data, py::arg("destination"), py::arg("offset") = 0)
      .def("put_data", &Desk::put_data, py::arg("source"), py::arg("offset") = 0)
      .def("reply", &Desk::reply, py::arg("result") = py::none())
      .def(
          "reply_error",
          [](Desk &desk, int code, std::string message, int scope, int cause) {
            desk.reply_error({static_cast<Code>(code), std::move(message), static_cast<nessie::Scope>(scope), cause});
          },
          py::arg("code"), py::arg("message"), py::arg("scope"), py::arg("cause"));
}

}  // namespace nessie_python
