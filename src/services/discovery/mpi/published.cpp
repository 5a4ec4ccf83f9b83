// SPDX-License-Identifier: BSD-3-Clause
#include <base/url.hpp>
#include <services/discovery/mpi/calls.hpp>
#include <services/discovery/mpi/mpi.hpp>

#include <fmt/format.h>

#include <array>
#include <utility>

namespace nessie::service::mpi {
namespace {

/// MPI raises errors of the name server on MPI_COMM_WORLD up to version 3, on MPI_COMM_SELF from version 4 on.
struct NameErrorsReturn {
  ErrorsReturn world{MPI_COMM_WORLD}, self{MPI_COMM_SELF};
};

Error publish_error(const std::string &name, int code) {
  int error_class = 0;
  MPI_Error_class(code, &error_class);
  auto error = mpi_error(fmt::format("MPI's name server does not take '{}'", name), code);
  error.code = error_class == MPI_ERR_SERVICE ? Code::kExists : Code::kUnsupported;
  return error;
}

/// kNotFound: not yet.
Result<Found> look_up(const std::string &name) {
  const NameErrorsReturn errors;
  std::array<char, MPI_MAX_PORT_NAME + 1> port{};
  if (const int code = MPI_Lookup_name(name.c_str(), MPI_INFO_NULL, port.data()); code != MPI_SUCCESS) {
    auto error = mpi_error(fmt::format("MPI's name server does not have '{}'", name), code);
    error.code = Code::kNotFound;
    return error;
  }
  if (auto urls = Url::parse_list(port.data()); !urls.ok())
    return Error{Code::kBadMessage, fmt::format("'{}' is published by MPI, but with something else than a URL: {}",
                                                name, urls.error().message)};
  return Found{port.data(), {}, {}, "MPI's name server"};
}

}  // namespace

Result<PublishedName> PublishedName::publish(std::string name, std::string url) {
  if (!is_name(name)) return Error{Code::kInvalidArgument, "a name has letters, digits, '.', '_', '-' and '/'"};
  if (auto urls = Url::parse_list(url); !urls.ok()) return urls.error();
  if (url.size() >= MPI_MAX_PORT_NAME)
    return Error{Code::kTooLarge,
                 fmt::format("MPI publishes {} characters at most, and the URL has {}: listen on fewer "
                             "transports",
                             MPI_MAX_PORT_NAME - 1, url.size())};
  if (auto status = check_usable(); !status.ok()) return status.error();
  const NameErrorsReturn errors;
  if (const int code = MPI_Publish_name(name.c_str(), MPI_INFO_NULL, url.c_str()); code != MPI_SUCCESS)
    return publish_error(name, code);
  return PublishedName(std::move(name), std::move(url));
}

PublishedName::PublishedName(PublishedName &&other) noexcept
    : name_(std::exchange(other.name_, {})), url_(std::exchange(other.url_, {})) {}

PublishedName::~PublishedName() {
  if (name_.empty() || !check_usable().ok()) return;
  const NameErrorsReturn errors;
  MPI_Unpublish_name(name_.c_str(), MPI_INFO_NULL, url_.c_str());
}

Result<Found> find_published(const std::string &name, Deadline deadline, const Pause &pause) {
  if (auto status = check_usable(); !status.ok()) return status.error();
  auto found = keep_looking([&] { return look_up(name); }, deadline, pause);
  if (found.code() != Code::kNotFound) return found;
  return Error{Code::kTimedOut,
               fmt::format("{}: start the service under the same mpiexec, or wait longer", found.error().message)};
}

}  // namespace nessie::service::mpi
