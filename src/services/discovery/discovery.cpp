// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/discovery.hpp>

#include <base/config.hpp>
#include <services/discovery/contact/contact_file.hpp>
#include <services/discovery/contact/launcher_name.hpp>
#include <services/discovery/contact/schemes.hpp>
#include <services/discovery/directory/client/client.hpp>
#include <services/discovery/directory/client/find.hpp>

#include <fmt/format.h>

#include <optional>

namespace nssi {

using nessie::service::Contact;
using nessie::service::ContactFile;
using nessie::service::LauncherName;

namespace {

using nessie::service::kDirectory, nessie::service::kFile, nessie::service::kLauncher;

/// What the client of the directory asks the configuration for.
nessie::Config config_of(Runtime &runtime) {
  nessie::Config config;
  if (const auto directory = runtime.setting("directory")) config.set("directory", *directory);
  return config;
}

Place to_place(const nessie::service::Found &found) {
  Place place{found.url, {}, found.attributes, found.source};
  for (const auto &offer : found.offers) place.services.push_back({{}, offer.interface, offer.provider});
  return place;
}

Place to_place(const directory::instance &it, const std::string &source) {
  Place place{it.url, {{{}, {it.program_number, it.version_number}, it.provider}}, {}, source, it.name};
  for (const auto &attribute : it.attributes) place.attributes.emplace_back(attribute.name, attribute.value);
  return place;
}

Result<std::vector<directory::Registration>> register_all(Runtime &runtime, const std::vector<Service> &services,
                                                          std::string_view name, const AnnounceOptions &options,
                                                          Deadline deadline) {
  const auto config = config_of(runtime);
  const auto where = directory::directory_of(config);
  if (!where.ok()) return where.error();
  directory::Directory directory(runtime, *where);
  std::vector<directory::Registration> all;
  for (const auto &service : services) {
    directory::instance what;
    what.name = std::string(name);
    what.url = runtime.url();
    what.program_number = service.interface.program;
    what.version_number = service.interface.version;
    what.provider = service.provider;
    for (const auto &[key, value] : options.attributes)
      what.attributes.push_back({std::string(key), std::string(value)});
    auto registration = directory.announce(what, options.lease, deadline);
    if (!registration.ok()) return registration.error();
    all.push_back(*std::move(registration));
  }
  return all;
}

Result<Contact> contact_of(Runtime &runtime, const std::vector<Service> &services, const AnnounceOptions &options) {
  if (!options.attributes.empty())
    return Error{Code::kInvalidArgument, "only a directory keeps attributes: leave them out, or announce to dir:NAME"};
  Contact contact;
  contact.service = options.kind;
  contact.url = runtime.url();
  for (const auto &service : services) contact.offers.push_back({service.interface, service.provider});
  return contact;
}

}  // namespace

Result<std::vector<Place>> find(Runtime &runtime, std::string_view what, Deadline deadline) {
  const auto found = directory::find(runtime, config_of(runtime), what, deadline);
  if (!found.ok()) return found.error();
  std::vector<Place> places;
  for (const auto &each : *found) places.push_back(to_place(each));
  return places;
}

Result<PeerId> connect_to(Runtime &runtime, std::string_view what, Deadline deadline) {
  const auto places = find(runtime, what, deadline);
  return places.ok() ? connect_to(runtime, *places, deadline) : places.error();
}

Result<PeerId> connect_to(Runtime &runtime, std::span<const Place> places, Deadline deadline) {
  Result<PeerId> peer = Error{Code::kNotFound, "there is no place to connect to"};
  for (const auto &place : places) {
    const bool is_last = &place == &places.back();
    peer = runtime.connect(place.url, is_last ? deadline : deadline.halfway());
    if (peer.ok()) return peer;
  }
  if (places.empty()) return peer;
  return Error{peer.code(), fmt::format("{} (from {})", peer.error().message, places.back().source), peer.error().scope,
               peer.error().cause};
}

struct DirectoryWatch::State {
  directory::Directory directory;
  std::string source;
  directory::query what;
  directory::mark seen = {};
  std::optional<std::vector<Place>> last = {};
};

DirectoryWatch::DirectoryWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
DirectoryWatch::DirectoryWatch(DirectoryWatch &&) noexcept = default;
DirectoryWatch &DirectoryWatch::operator=(DirectoryWatch &&) noexcept = default;
DirectoryWatch::~DirectoryWatch() = default;

Result<DirectoryWatch> watch(Runtime &runtime, std::string_view what) {
  if (!what.starts_with(kDirectory))
    return Error{Code::kInvalidArgument,
                 fmt::format("only what is in a directory can be watched, dir:NAME or dir:BEGINNING*, not '{}'", what)};
  what.remove_prefix(kDirectory.size());
  const bool is_prefix = what.ends_with('*');
  if (is_prefix) what.remove_suffix(1);
  directory::query query{is_prefix, std::string(what)};
  if (auto status = directory::check(query); !status.ok()) return status.error();
  const auto where = directory::directory_of(config_of(runtime));
  if (!where.ok()) return where.error();
  return DirectoryWatch(std::make_unique<DirectoryWatch::State>(
      DirectoryWatch::State{{runtime, *where}, fmt::format("the directory at {}", *where), std::move(query)}));
}

Result<std::vector<Place>> DirectoryWatch::next(Deadline deadline) {
  for (;;) {
    auto got = state_->directory.watch(state_->what, state_->seen, deadline);
    if (!got.ok()) return got.error();
    state_->seen = got->at;
    std::vector<Place> places;
    for (const auto &each : got->instances) places.push_back(to_place(each, state_->source));
    if (state_->last != places) return *(state_->last = std::move(places));
    if (deadline.passed()) return Error{Code::kTimedOut, "nothing has changed within the deadline"};
  }
}

struct Announcement::State {
  std::optional<ContactFile> file;
  std::optional<LauncherName> name;
  std::vector<directory::Registration> registrations;
};

Announcement::Announcement(std::unique_ptr<State> state) : state_(std::move(state)) {}
Announcement::Announcement(Announcement &&) noexcept = default;
Announcement::~Announcement() = default;

Status Announcement::status() const {
  for (const auto &registration : state_->registrations)
    if (auto status = registration.status(); !status.ok()) return status;
  return {};
}

Result<Announcement> announce(Runtime &runtime, std::string_view where, const AnnounceOptions &options,
                              Deadline deadline) {
  if (runtime.url().empty())
    return Error{Code::kInvalidArgument, "nobody can connect to this runtime: it was opened without listening"};
  const auto services = runtime.services();
  if (services.empty())
    return Error{Code::kInvalidArgument, "this runtime offers nothing; add operations before it is announced"};
  auto state = std::make_unique<Announcement::State>();
  if (where.starts_with(kDirectory)) {
    auto registrations = register_all(runtime, services, where.substr(kDirectory.size()), options, deadline);
    if (!registrations.ok()) return registrations.error();
    state->registrations = *std::move(registrations);
    return Announcement(std::move(state));
  }
  auto contact = contact_of(runtime, services, options);
  if (!contact.ok()) return contact.error();
  if (where.starts_with(kFile)) {
    auto file = ContactFile::write(std::string(where.substr(kFile.size())), *std::move(contact));
    if (!file.ok()) return file.error();
    state->file.emplace(*std::move(file));
  } else if (where.starts_with(kLauncher)) {
    const nessie::service::Pause drive = [&](auto time) { return directory::pause(runtime, Deadline::in(time)); };
    auto name =
        LauncherName::publish(std::string(where.substr(kLauncher.size())), *std::move(contact), deadline, drive);
    if (!name.ok()) return name.error();
    state->name.emplace(*std::move(name));
  } else {
    return nessie::service::check_announced(where).error();
  }
  return Announcement(std::move(state));
}

}  // namespace nssi
