// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/forward.hpp"

#include "services/streams/sinks/slabs.hpp"

#include <fmt/core.h>

#include <cstring>

namespace nessie::streams::sinks {

namespace {

constexpr std::chrono::milliseconds kAtOnce{500};        ///< how long a wait goes on before it is asked whether to stop
constexpr std::chrono::milliseconds kToConnect{10'000};  ///< for servers to answer
constexpr const char *kShift = "nessie_shift", *kOrigin = "nessie_origin";

/// What may be mended by a new writer.
bool is_link(Code code) {
  return code == Code::kTimedOut || code == Code::kPeerLost || code == Code::kUnavailable || code == Code::kNotFound ||
         code == Code::kExists || code == Code::kBusy;
}

Error stopped() { return {Code::kCancelled, "it was told to stop"}; }

Attribute shift_attribute(std::int64_t shift) {
  Attribute attribute{{}, kShift, Type::kInt64, std::vector<std::byte>(sizeof shift)};
  std::memcpy(attribute.value.data(), &shift, sizeof shift);
  return attribute;
}

Attribute origin_attribute(const Origin &origin) {
  const auto text = fmt::format("{:016x}", origin.identity);
  const auto bytes = std::as_bytes(std::span(text));
  return {{}, kOrigin, Type::kChar, {bytes.begin(), bytes.end()}};
}

}  // namespace

Result<std::unique_ptr<Forwarder>> Forwarder::open(ForwardOptions options) {
  std::unique_ptr<Forwarder> forwarder(new Forwarder(std::move(options)));
  auto &it = *forwarder;
  for (Retry retry(it.options_.patience);;) {
    auto connected = it.connect(it.options_.append, Deadline::in(kToConnect).earlier(retry.until()));
    if (connected.ok()) return forwarder;
    if (!is_link(connected.code())) return connected.error();
    if (!retry.wait(it.options_.stop)) return it.options_.stop() ? stopped() : connected.error();
  }
}

Status Forwarder::connect(bool append, Deadline deadline) {
  writer_.reset();
  defined_.clear(), said_.clear();
  has_constants_ = false;
  WriterOptions wanted;
  wanted.at = options_.to;
  wanted.append = append;
  auto writer = Writer::open(options_.name, wanted, deadline);
  if (!writer.ok()) return writer.error();
  ++connections_;
  const bool is_begun = append && writer->step() > 0;
  if (auto learnt = is_begun ? learn_shift(deadline) : Status(); !learnt.ok()) return learnt;
  if (!is_begun) shift_.reset();
  writer_.emplace(*std::move(writer));
  return {};
}

Status Forwarder::learn_shift(Deadline deadline) {
  const auto streams = list(options_.to, deadline);
  if (!streams.ok()) return streams.error();
  std::int64_t shift = 0;
  for (const auto &stream : *streams) {
    if (stream.name != options_.name) continue;
    for (const auto &each : stream.attributes) {
      if (!each.variable.empty()) continue;
      if (each.name == kShift && each.value.size() == sizeof shift)
        std::memcpy(&shift, each.value.data(), sizeof shift);
      if (each.name == kOrigin && options_.origin.identity != 0 && each != origin_attribute(options_.origin))
        return Error{Code::kInvalidArgument,
                     fmt::format("the stream '{}' there is of another run: begin a new one, without --append, or "
                                 "under another name",
                                 options_.name)};
    }
  }
  shift_ = shift;
  return {};
}

std::uint64_t Forwarder::wanted() const {
  if (!writer_ || !shift_) return 0;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(writer_->step()) + *shift_);
}

Status Forwarder::take(Step &step) {
  for (Retry retry(options_.patience);;) {
    auto done = writer_ ? Status() : connect(true, Deadline::in(kToConnect));
    if (done.ok() && shift_ && step.number() < wanted()) return {};  // it was there before the link was cut
    if (done.ok()) done = put(step);
    if (done.ok()) return done;
    writer_.reset();  // the step that is open is never seen
    if (options_.stop()) return stopped();
    if (source_has_failed_ || !is_link(done.code())) return done;
    options_.say(fmt::format("trying again: {}", done.error().message));
    if (!retry.wait(options_.stop)) return options_.stop() ? Status(stopped()) : done;
  }
}

Status Forwarder::put(Step &step) {
  if (auto begun = begin(); !begun.ok()) return begun;
  const auto shift = static_cast<std::int64_t>(step.number()) - static_cast<std::int64_t>(writer_->step());
  if (shift != shift_.value_or(0) || shift != 0)
    if (auto said = say_attribute(shift_attribute(shift)); !said.ok()) return said;
  if (auto described = describe(step); !described.ok()) return described;
  for (const auto &variable : step.variables()) {
    if (variable.is_constant && has_constants_ && !step.is_new(variable)) continue;
    if (auto put = put_variable(variable, step); !put.ok()) return put;
  }
  if (auto ended = end(); !ended.ok()) return ended;
  shift_ = shift;
  has_constants_ = true;
  return {};
}

/// Waits for room there for as long as that takes; for servers that do not answer, within the patience.
Status Forwarder::begin() {
  for (auto until = Deadline::in(options_.patience); !options_.stop();) {
    const auto state = writer_->begin_step(Deadline::in(kAtOnce));
    if (state.ok() && *state == StepState::kOk) return {};
    const bool is_silent = state.code() == Code::kTimedOut;
    if (!state.ok() && state.code() != Code::kBusy && (!is_silent || until.passed())) return state.error();
    if (!is_silent) until = Deadline::in(options_.patience);
  }
  return stopped();
}

Status Forwarder::describe(const Step &step) {
  for (const auto &variable : step.variables()) {
    auto &had = defined_[variable.name];
    if (had == variable) continue;
    if (auto defined = writer_->define(variable); !defined.ok()) return defined;
    had = variable;
  }
  if (options_.origin.identity != 0)
    if (auto said = say_attribute(origin_attribute(options_.origin)); !said.ok()) return said;
  for (const auto &each : step.attributes()) {
    const bool is_ours = each.variable.empty() && (each.name == kShift || each.name == kOrigin);
    if (is_ours || (!each.variable.empty() && !defined_.contains(each.variable))) continue;
    if (auto said = say_attribute(each); !said.ok()) return said;
  }
  return {};
}

Status Forwarder::say_attribute(const Attribute &attribute) {
  if (std::ranges::count(said_, attribute) != 0) return {};
  std::erase_if(said_,
                [&](const auto &had) { return had.variable == attribute.variable && had.name == attribute.name; });
  said_.push_back(attribute);
  return writer_->set_attribute(attribute);
}

Status Forwarder::put_variable(const Variable &variable, Step &step) {
  return for_each_slab(whole(variable.shape), variable.type, [&](const Box &box) -> Status {
    const auto bytes = elements_of(box) * size_of(variable.type);
    const auto memory = writer_->span(variable.name, box);
    if (!memory.ok()) return memory.error();
    rate_.spend(bytes, options_.stop);
    if (options_.stop()) return stopped();
    auto got = step.get(variable, box, {static_cast<std::byte *>(*memory), bytes});
    source_has_failed_ = !got.ok();
    return got;
  });
}

Status Forwarder::end() {
  const auto until = Deadline::in(options_.patience);
  for (;;) {
    auto ended = writer_->end_step(Deadline::in(kToConnect));
    if (ended.code() != Code::kTimedOut || options_.stop() || until.passed()) return ended;
  }
}

Status Forwarder::finish() {
  if (!writer_)
    if (auto connected = connect(true, Deadline::in(kToConnect)); !connected.ok()) return connected;
  return writer_->close(Deadline::in(options_.patience));
}

}  // namespace nessie::streams::sinks
