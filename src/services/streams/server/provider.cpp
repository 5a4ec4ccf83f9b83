// SPDX-License-Identifier: BSD-3-Clause
// The service as nessied hosts it: its settings, and which of several servers it is.
#include <services/streams/server/provider.hpp>

#include <services/streams/places.hpp>
#include <services/streams/server/server.hpp>

#include <base/config_reader.hpp>
#include <base/storage.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace streams {

namespace {

constexpr std::chrono::seconds kDefaultLinger{60};
constexpr std::size_t kMostWaiting = 16384;  ///< readers and writers, each with a fiber

/// What launchers say to the processes that they start: Open MPI, MPICH, Slurm.
std::uint32_t of_launcher(std::initializer_list<const char *> variables, std::uint32_t otherwise) {
  for (const auto *variable : variables)
    if (const char *text = std::getenv(variable); text != nullptr && *text != '\0')
      return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  return otherwise;
}

/// Among this user's on this node.
std::string own_place(const nessie::Config &config) {
  return "file:" + contact_of(config.get_or("streams.name", "default"));
}

/// On a disk; the same for a server that comes after one that was killed.
std::string log_folder(const nessie::Config &config, std::uint32_t index) {
  const auto said = config.get_or("streams.log", "");
  if (said == "none") return {};
  if (!said.empty()) return fmt::format("{}/server.{}", said, index);
  const auto base = nessie::folder_on_disk();
  if (!base) return {};
  return fmt::format("{}/nessie-streams-{}/{}/server.{}", *base, ::getuid(), config.get_or("streams.name", "default"),
                     index);
}

/// The run's staging servers may have another credential than who reads.
void read_files_options(const nessie::Config &config, ServerOptions &options) {
  std::error_code ignored;
  options.files_folder = std::filesystem::current_path(ignored).string();
  options.staging = config;
  if (const auto servers = config.get("streams.files_of")) options.staging.set("servers", *servers);
  if (const auto credential = config.get("streams.files_credential")) options.staging.set("credential", *credential);
}

Result<ServerOptions> server_options(const nessie::Config &config) {
  ServerOptions options;
  options.index = of_launcher({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
  options.servers = of_launcher({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 1);
  nessie::ConfigReader read(config);
  read.size("streams.memory", options.memory_bytes);
  read.size("streams.keep", options.keep_bytes);
  read.size("streams.bandwidth", options.bandwidth);
  read.size("streams.log_bytes", options.log_bytes);
  read.duration("streams.reader_timeout", options.reader_timeout);
  read.count("streams.space_versions", options.space_versions, 1, 1 << 20);
  read.count("streams.index", options.index, 0, 65535);
  read.count("streams.servers", options.servers, 1, 65536);
  if (!read.status().ok()) return read.status().error();
  if (options.index >= options.servers)
    return config.bad_value("streams.index", "a number below that of the servers (streams.servers)");
  options.log_path = log_folder(config, options.index);
  options.first = config.get_or("streams.first", own_place(config));
  auto sinks = parse_sink_rules(config.get_or("streams.sinks", ""));
  if (!sinks.ok()) return sinks.error();
  options.sinks = *std::move(sinks);
  options.files = config.get_or("streams.files", "");
  if (options.files.empty()) return options;
  read_files_options(config, options);
  options.linger = kDefaultLinger;
  read.duration("run.stream_linger", options.linger);
  if (!read.status().ok()) return read.status().error();
  return options;
}

}  // namespace

Result<std::vector<std::string>> places_to_announce(const nessie::Config &config) {
  const auto options = server_options(config);
  if (!options.ok()) return options.error();
  if (options->index != 0 || config.get("streams.first")) return std::vector<std::string>();
  std::error_code error;
  std::filesystem::create_directories(contact_folder(), error);
  if (!error) std::filesystem::permissions(contact_folder(), std::filesystem::perms::owner_all, error);
  if (error)
    return Error{
        Code::kIo,
        fmt::format("cannot make the folder {}, where clients look for servers: {}", contact_folder(), error.message()),
        nessie::Scope::kOperation, error.value()};
  return std::vector{own_place(config)};
}

Result<bool> is_first_server(const nessie::Config &config) {
  const auto options = server_options(config);
  if (!options.ok()) return options.error();
  return options->index == 0;
}

nessie::ProviderType Server::type() {
  const auto prepare = [](const nessie::Config &, nssi::RuntimeOptions &options) -> Status {
    options.max_fibers += kMostWaiting;
    return {};
  };
  return {.name = "streams",
          .prepare = prepare,
          .start = [](const nessie::ProviderContext &context) -> Result<std::unique_ptr<nessie::Provider>> {
            const auto options = server_options(context.config);
            return options.ok() ? start(context, *options) : options.error();
          }};
}

}  // namespace streams
