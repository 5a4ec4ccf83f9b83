// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/server.hpp>

#include <services/streams/places.hpp>

#include <base/log.hpp>
#include <base/random.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace streams {

namespace {

nssi::DirectorOptions director_options(const ServerOptions &options) {
  nssi::DirectorOptions result;
  result.bytes_per_second = options.bandwidth;
  result.policy = nssi::callers_in_turn();
  return result;
}

}  // namespace

Server::Server(const nessie::ProviderContext &context, const ServerOptions &options)
    : runtime_(context.runtime),
      options_(options),
      incarnation_(nessie::random_u64()),
      budget_(context.budget),
      director_(context.runtime, director_options(options)),
      made_(context.runtime),
      names_(options.space_versions),
      noted_(context.runtime),
      joined_(options.servers),
      files_changed_(context.runtime) {
  if (is_first()) joined_[0] = {PROTOCOL, 0, options.servers, context.runtime.url(), incarnation_};
  store_ = std::make_unique<Store>(context.runtime, context.budget, options.memory_bytes);
}

Result<std::unique_ptr<nessie::Provider>> Server::start(const nessie::ProviderContext &context,
                                                        const ServerOptions &options) {
  std::unique_ptr<Server> server(new Server(context, options));
  if (auto status = server->add_to(context.runtime, context.number); !status.ok()) return status.error();
  if (auto status = server->follow_files(); !status.ok()) return status.error();
  context.runtime.spawn([server = server.get()] { server->recover(); });
  return std::unique_ptr<nessie::Provider>(std::move(server));
}

std::string Server::describe() const {
  std::uint64_t open = 0, readers = 0;
  for (const auto &stream : in_order_) {
    open += stream->account->is_open() ? 1 : 0;
    readers += stream->account->groups().size();
  }
  return fmt::format(
      "streams open: {}, of {}; groups of readers: {}; steps in memory: {} MiB of {}, in the log: {} MiB", open,
      in_order_.size(), readers, store_->used_bytes() >> 20, store_->limit_bytes() >> 20, store_->logged_bytes() >> 20);
}

void Server::measure(const Tell &tell) const {
  tell("memory_bytes", {}, static_cast<double>(store_->used_bytes()));
  tell("memory_high_bytes", {}, static_cast<double>(store_->high_bytes()));
  tell("memory_limit_bytes", {}, static_cast<double>(store_->limit_bytes()));
  tell("log_bytes", {}, static_cast<double>(store_->logged_bytes()));
  tell("space_bytes", {}, static_cast<double>(space_.tally()->memory_bytes + space_.tally()->log_bytes));
  const auto &times = store_->times();
  tell("buffers_total", {}, static_cast<double>(times.count));
  tell("buffer_seconds_total", {{"queue", "empty"}}, times.empty_s);
  tell("buffer_seconds_total", {{"queue", "pending"}}, times.pending_s);
  tell("buffer_seconds_total", {{"queue", "full"}}, times.full_s);
  for (const auto &stream : in_order_) {
    const auto report = stream->account->report();
    const std::string name = report.name;
    tell("steps_total", {{"stream", name}}, static_cast<double>(report.steps));
    tell("steps_held", {{"stream", name}}, static_cast<double>(report.steps - std::min(report.oldest, report.steps)));
    for (const auto &reader : report.readers)
      tell("reader_lag_steps", {{"stream", name}, {"subscription", reader.subscription}},
           static_cast<double>(reader.lag));
  }
}

void Server::quiesce() {
  await_file_readers();
  is_ending_ = true;
  for (const auto &[key, stream] : streams_)
    for (auto *waiting : {&stream->changed, &stream->part_came, &stream->readers_came}) waiting->notify_all();
  made_.notify_all();
  noted_.notify_all();
  for (auto *get : space_gets_) get->changed.notify_all();
  store_->notify();
  while (is_reading_) (void)made_.wait(Deadline::in(std::chrono::milliseconds(100)));
  if (journal_) (void)journal_->flush();
}

/// Memory that was borrowed from the runtime goes before it; what is in the log stays there, if it is to outlive this,
/// could not be read, or is another server's.
void Server::stop() {
  const bool has_logged = !is_log_read_ || std::ranges::any_of(streams_, [](const auto &each) {
    return !each.second->account || each.second->account->lasting() == Lasting::kInLog;
  });
  files_.reset();
  file_readers_.reset();
  store_->use_log(nullptr, 0);
  by_name_.clear();
  in_order_.clear();
  streams_.clear();
  space_ = {};
  journal_.reset();
  std::error_code ignored;
  const std::filesystem::path contacts(contact_folder());
  for (const auto &folder : {contacts, contacts.parent_path()})
    std::filesystem::remove(folder, ignored);  // if nothing is in it
  if (!has_logged) std::filesystem::remove_all(options_.log_path, ignored);
  const auto of_name = std::filesystem::path(options_.log_path).parent_path();
  if (is_run(of_name.filename().string())) std::filesystem::remove(of_name, ignored);  // likewise
}

nssi::Outcome<ListResult> Server::list(Request &) {
  ListResult result;
  for (const auto &stream : in_order_) {
    result.streams.push_back(stream->account->report());
    result.streams.back().is_file = stream->is_file;
  }
  for (const auto &[key, stream] : streams_) {
    const auto &tally = *stream->shelf.tally();
    result.held.push_back({key, tally.memory_bytes, tally.log_bytes});
  }
  return result;
}

}  // namespace streams
