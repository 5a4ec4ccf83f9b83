// SPDX-License-Identifier: BSD-3-Clause
#include "mailbox.hpp"

#include <pybind11/stl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nessie_python {

Mailbox::Mailbox() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0)
    throw Raised({Code::kIo, std::string("no descriptor for an event loop: ") + std::strerror(errno),
                  nessie::Scope::kOperation, errno});
}

Mailbox::~Mailbox() { ::close(fd_); }

void Mailbox::put(std::uint64_t token) {
  std::lock_guard lock(mutex_);
  tokens_.push_back(token);
  if (tokens_.size() == 1) (void)::eventfd_write(fd_, 1);
}

std::vector<std::uint64_t> Mailbox::take_all() {
  std::lock_guard lock(mutex_);
  eventfd_t count = 0;
  (void)::eventfd_read(fd_, &count);
  return std::exchange(tokens_, {});
}

void Completion::complete() {
  decltype(told_) told;
  {
    std::lock_guard lock(mutex_);
    done_.store(true, std::memory_order_release);
    told = std::move(told_);
  }
  changed_.notify_all();
  for (const auto &[mailbox, token] : told) mailbox->put(token);
}

void Completion::tell(std::shared_ptr<Mailbox> mailbox, std::uint64_t token) {
  {
    std::lock_guard lock(mutex_);
    if (!is_done()) {
      told_.emplace_back(std::move(mailbox), token);
      return;
    }
  }
  mailbox->put(token);
}

void Completion::wait(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.when(), [&] { return is_done(); });
}

void bind_mailbox(py::module_ &module) {
  py::class_<Mailbox, std::shared_ptr<Mailbox>>(module, "Mailbox")
      .def(py::init<>())
      .def("put", &Mailbox::put, py::arg("token"))
      .def("fileno", &Mailbox::fileno)
      .def("take_all", &Mailbox::take_all);
}

}  // namespace nessie_python
