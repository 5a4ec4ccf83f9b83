// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/files.hpp>

#include <base/log.hpp>
#include <base/thread.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fnmatch.h>
#include <algorithm>
#include <cctype>

namespace streams {

using nessie::Deadline;

namespace {

constexpr std::int64_t kMostRecords = 65536;  // of a file that had many when it was opened: the newest
constexpr std::chrono::milliseconds kLook{250};
constexpr std::chrono::seconds kForHeader{60};

/// Whether digits, and nothing else, stand where the pattern's only '*' is.
bool is_numbered(const std::string &pattern, const std::string &name) {
  const auto star = pattern.find('*');
  if (star == std::string::npos || pattern.find_first_of("*?[\\", star + 1) != std::string::npos ||
      pattern.find_first_of("?[\\") != std::string::npos || name.size() < pattern.size())
    return false;
  const auto digits = std::string_view(name).substr(star, name.size() - pattern.size() + 1);
  return std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; });
}

VariableArgs describe(const staging::ClassicVariable &variable, bool leaves_record_out) {
  VariableArgs args;
  args.name = variable.name;
  args.type = static_cast<ElementType>(variable.type);
  args.shape.assign(variable.shape.begin() + (leaves_record_out ? 1 : 0), variable.shape.end());
  const auto fill = std::ranges::find(variable.attributes, "_FillValue", &staging::ClassicAttribute::name);
  const bool has_fill = fill != variable.attributes.end() && fill->type == variable.type;
  if (has_fill && fill->value.size() == size_of(args.type)) args.fill.assign(fill->value.begin(), fill->value.end());
  return args;
}

void add_attributes(const std::string &variable, const std::vector<staging::ClassicAttribute> &attributes,
                    std::vector<AttributeArgs> &all) {
  for (const auto &attribute : attributes) {
    AttributeArgs args{variable, attribute.name, static_cast<ElementType>(attribute.type), attribute.value};
    if (check(args).ok()) all.push_back(std::move(args));
  }
}

/// The names of its dimensions, as writers of streams say them.
void add_dimensions(const staging::ClassicVariable &variable, bool leaves_record_out, std::vector<AttributeArgs> &all) {
  constexpr const char *kDimensions = "dimensions";
  const auto is_said = [](const auto &attribute) { return attribute.name == kDimensions; };
  if (std::ranges::any_of(variable.attributes, is_said)) return;
  const auto names = std::span(variable.dimensions).subspan(leaves_record_out && variable.is_record ? 1 : 0);
  const auto text = fmt::format("{}", fmt::join(names, " "));
  const auto bytes = std::as_bytes(std::span(text));
  if (!names.empty())
    all.push_back({variable.name, kDimensions, ElementType::kChar, Bytes(bytes.begin(), bytes.end())});
}

std::vector<AttributeArgs> attributes_of(const staging::ClassicHeader &header, bool leaves_record_out) {
  std::vector<AttributeArgs> all;
  add_attributes({}, header.attributes, all);
  for (const auto &variable : header.variables) {
    if (!check_name("variable", variable.name).ok()) continue;
    add_attributes(variable.name, variable.attributes, all);
    add_dimensions(variable, leaves_record_out, all);
  }
  return all;
}

/// Of a whole file; a record variable has so many records.
Variables all_of(const staging::ClassicHeader &header, std::int64_t records) {
  auto all = std::make_shared<std::vector<VariableArgs>>();
  for (const auto &variable : header.variables) {
    auto args = describe(variable, false);
    if (variable.is_record) args.shape[0] = records;
    if (check(args).ok()) all->push_back(std::move(args));
  }
  return all;
}

Variables of_a_record(const staging::ClassicHeader &header) {
  auto all = std::make_shared<std::vector<VariableArgs>>();
  for (const auto &variable : header.variables)
    if (auto args = describe(variable, variable.is_record); variable.is_record && check(args).ok())
      all->push_back(std::move(args));
  return all;
}

bool has_records(const staging::ClassicHeader &header) {
  return std::ranges::any_of(header.variables, [](const auto &variable) { return variable.is_record; });
}

}  // namespace

// --- steps ------------------------------------------------------------------------------------------------------------

std::optional<FileSteps::Name> FileSteps::name_of(const std::string &path) const {
  const bool is_below = !folder_.empty() && path.starts_with(folder_ + "/");
  const auto name = is_below ? path.substr(folder_.size() + 1) : path;
  const auto matched = pattern_.find('/') == std::string::npos ? name.substr(name.rfind('/') + 1) : name;
  if (::fnmatch(pattern_.c_str(), matched.c_str(), 0) != 0) return std::nullopt;
  const bool is_one_of_many = is_numbered(pattern_, matched);
  return Name{is_one_of_many ? pattern_ : name, is_one_of_many};
}

std::vector<FileStep> FileSteps::take(const staging::WatchedFile &file, const staging::ClassicHeader &header) {
  std::vector<FileStep> steps;
  const auto name = name_of(file.path);
  if (!name) return steps;
  if (!name->is_numbered) {
    if (is_former(file, followed_[name->stream])) return steps;
    for (const auto &mark : file.marks) take_mark(file, mark, header, name->stream, steps);
    return steps;
  }
  if (!file.marks.empty()) numbered_[file.file] = file.marks.back();
  if (file.stage == staging::FileStage::kOpen || !numbered_.contains(file.file)) return steps;
  const auto mark = numbered_.extract(file.file).mapped();
  const auto records = mark.records;
  steps.push_back({name->stream,
                   {file.file, mark, FileSource::kWholeFile, SourceKind::kOfNumberedFile, nullptr},
                   all_of(header, records),
                   attributes_of(header, false)});
  return steps;
}

/// Made anew by its program; or replaced, or emptied, by other hands. A file without records is all of it each time.
bool FileSteps::begins_anew(const staging::WatchedFile &file, const staging::ClassicHeader *header) {
  const auto name = name_of(file.path);
  const auto known = !name || name->is_numbered ? followed_.end() : followed_.find(name->stream);
  if (known == followed_.end()) return false;
  auto &followed = known->second;
  if (followed.file == file.file) return (void)(followed.is_open = file.stage == staging::FileStage::kOpen), false;
  if (is_former(file, followed)) return false;
  const bool is_replaced = file.created_ns == 0 && file.identity != followed.identity;
  const bool has_fewer = !followed.is_open && !file.marks.empty() && file.marks.front().records < followed.records;
  const bool is_made = file.created_ns > followed.created_ns;
  if (!is_made && (header == nullptr || (!is_replaced && !has_fewer))) return false;
  if (!followed.has_records && (header == nullptr || !has_records(*header))) return false;
  followed = {};
  follow(file, followed);
  return true;
}

/// Another one has taken its place since.
bool FileSteps::is_former(const staging::WatchedFile &file, const Followed &followed) {
  return file.created_ns != 0 && file.created_ns < followed.created_ns;
}

void FileSteps::follow(const staging::WatchedFile &file, Followed &followed) {
  followed.file = file.file;
  followed.is_open = file.stage == staging::FileStage::kOpen;
  followed.created_ns = std::max(followed.identity == file.identity ? followed.created_ns : 0, file.created_ns);
  followed.identity = file.identity;
}

void FileSteps::take_mark(const staging::WatchedFile &file, const staging::Mark &mark,
                          const staging::ClassicHeader &header, const std::string &stream,
                          std::vector<FileStep> &steps) {
  auto &followed = followed_[stream];
  followed.has_records = has_records(header);
  const auto kind = followed.has_records ? SourceKind::kOfRecord : SourceKind::kOfFile;
  FileStep step{stream, {file.file, mark, FileSource::kWholeFile, kind, nullptr}, nullptr, {}};
  if (followed.file != file.file || followed.headers != file.headers) {
    followed.of_record = of_a_record(header);
    step.attributes = attributes_of(header, true);
  }
  follow(file, followed);
  if (followed.has_records) return take_records(file, mark, header, followed, std::move(step), steps);
  followed.headers = file.headers;
  if (!mark.is_all) return;
  step.variables = all_of(header, 0);
  steps.push_back(std::move(step));
}

void FileSteps::take_records(const staging::WatchedFile &file, const staging::Mark &mark,
                             const staging::ClassicHeader &header, Followed &followed, FileStep step,
                             std::vector<FileStep> &steps) {
  std::vector<VariableArgs> constants;
  for (const auto &variable : header.variables) {
    const bool was_put = std::ranges::find(mark.variables, variable.varid) != mark.variables.end();
    const bool is_new = mark.is_all && !followed.constants.contains(variable.varid);
    if (variable.is_record || (!was_put && !is_new)) continue;
    auto args = describe(variable, false);
    args.is_constant = true;
    if (!check(args).ok()) continue;
    followed.constants.insert(variable.varid);
    constants.push_back(std::move(args));
  }
  const auto first = std::max(followed.records, mark.records - kMostRecords);
  if (first >= mark.records && constants.empty()) return;
  followed.headers = file.headers;
  for (auto record = first; record < mark.records; ++record) {
    auto next = std::exchange(step, {step.stream, step.source, nullptr, {}});
    next.source.record = record;
    next.variables = followed.of_record;
    if (!constants.empty()) {
      auto both = std::make_shared<std::vector<VariableArgs>>(*followed.of_record);
      std::ranges::move(std::exchange(constants, {}), std::back_inserter(*both));
      next.variables = std::move(both);
    }
    steps.push_back(std::move(next));
  }
  followed.records = std::max(followed.records, mark.records);
  if (constants.empty()) return;
  step.variables = std::make_shared<std::vector<VariableArgs>>(std::move(constants));
  steps.push_back(std::move(step));
}

// --- following --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Files>> Files::start(FilesOptions options, Listener listener, Deadline deadline) {
  auto watcher = staging::Watcher::connect(options.staging, deadline);
  if (!watcher.ok()) return watcher.error();
  return std::unique_ptr<Files>(new Files(std::move(options), std::move(listener), *std::move(watcher)));
}

Files::Files(FilesOptions options, Listener listener, std::unique_ptr<staging::Watcher> watcher)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      steps_(options_.pattern, options_.folder),
      watcher_(std::move(watcher)),
      thread_(nessie::start_thread([this] { follow(); })) {}

Files::~Files() {
  is_ending_ = true;
  if (thread_.joinable()) thread_.join();
}

void Files::follow() {
  while (!is_ending_) {
    const auto news = watcher_->next(Deadline::in(kLook));
    if (!news.ok()) return end_all(news.error().message);
    take(*news);
    if (news->is_over) return end_all({});
  }
}

void Files::take(const staging::News &news) {
  for (const auto &file : news.files) take(file);
  for (const auto &[path, why, is_choice] : news.native) {
    const auto name = steps_.name_of(path);
    if (!name || is_choice) continue;
    listener_.on_end(name->stream, fmt::format("{} is written by native PnetCDF from now on: {}", path, why));
    open_.erase(path);
  }
}

/// A program may open its file once more as long as it runs: so that is when its stream ends.
void Files::take(const staging::WatchedFile &file) {
  const auto name = steps_.name_of(file.path);
  if (!name || !check_name("stream", name->stream).ok()) return;
  take_steps(file, *name);
  const auto known = open_.find(file.path);
  if (known == open_.end() || known->second.file != file.file || file.stage != staging::FileStage::kClosed) return;
  if (!file.is_left && file.failed.empty()) return;
  open_.erase(known);
  listener_.on_end(name->stream, file.failed.empty() ? "" : fmt::format("{}: {}", file.path, file.failed));
}

void Files::take_steps(const staging::WatchedFile &file, const FileSteps::Name &name) {
  std::shared_ptr<const staging::ClassicHeader> header;
  if (!file.marks.empty() || (name.is_numbered && file.stage != staging::FileStage::kOpen)) {
    auto found = watcher_->header(file.file, Deadline::in(kForHeader));
    if (!found.ok()) return nessie::log::warning("{} cannot be followed: {}", file.path, found.error().message);
    header = *std::move(found);
  }
  if (steps_.begins_anew(file, header.get())) {
    open_.erase(file.path);
    listener_.on_anew(name.stream);
  }
  if (!header) return;
  for (auto &step : steps_.take(file, *header)) {
    step.source.header = header;
    if (!name.is_numbered) open_[file.path] = {name.stream, file.file};
    listener_.on_step(std::move(step));
  }
}

void Files::end_all(const std::string &why) {
  for (const auto &[path, open] : open_) listener_.on_end(open.stream, why);
  open_.clear();
  listener_.on_end(options_.pattern, why);  // of files that are numbered, if there are such
  listener_.on_over();
}

Status Files::read(const FileSource &source, const std::string &variable, const Box &box, std::span<std::byte> data,
                   Deadline deadline) {
  const auto *found = source.header->find(variable);
  if (found == nullptr) return Error{Code::kNotFound, fmt::format("the file has no variable '{}'", variable)};
  nessie::service::Box place;
  if (found->is_record && source.record != FileSource::kWholeFile) {
    place.start.push_back(source.record);
    place.count.push_back(1);
  }
  place.start.insert(place.start.end(), box.start.begin(), box.start.end());
  place.count.insert(place.count.end(), box.count.begin(), box.count.end());
  return watcher_->read(source.file, source.mark, found->varid, place, data, deadline);
}

}  // namespace streams
