// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/contact.hpp"

#include <base/url.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

namespace nessie::service {
namespace {

constexpr std::string_view kHead = "nessie-contact ", kVersion = "1", kEnd = "end";
constexpr std::size_t kMaxName = 128, kMaxValue = 1024;

bool is_text(std::string_view value) {
  const auto printable = [](char c) { return c >= ' ' && c < 0x7f; };
  return !value.empty() && value.size() <= kMaxValue && value.front() != ' ' && value.back() != ' ' &&
         std::ranges::all_of(value, printable);
}

template <class Number> std::optional<Number> number(std::string_view text, int base = 10) {
  Number value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Up to and without the separator, which is taken too. All of it if there is none.
std::string_view take(std::string_view &text, char separator) {
  const auto at = text.find(separator);
  const auto part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

/// "0x4e534449 version 1 provider 0".
std::optional<Offer> parse_offer(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  text.remove_prefix(2);
  const auto program = number<std::uint32_t>(take(text, ' '), 16);
  if (take(text, ' ') != "version") return std::nullopt;
  const auto version = number<std::uint32_t>(take(text, ' '));
  if (take(text, ' ') != "provider") return std::nullopt;
  const auto provider = number<std::uint32_t>(text);
  if (!program || !version || !provider) return std::nullopt;
  return Offer{{*program, *version}, *provider};
}

template <class Number> bool store(Number &field, std::string_view text, int base = 10) {
  const auto value = number<Number>(text, base);
  if (value) field = *value;
  return value.has_value();
}

bool add_url(Contact &contact, std::string_view text) {
  if (!Url::parse(text).ok()) return false;
  if (!contact.url.empty()) contact.url += ';';
  contact.url += text;
  return true;
}

bool add_offer(Contact &contact, std::string_view text) {
  const auto offer = parse_offer(text);
  if (!offer || contact.offers.size() == kMaxOffers) return false;
  contact.offers.push_back(*offer);
  return true;
}

struct Key {
  std::string_view name;
  bool (*read)(Contact &, std::string_view);
  bool may_repeat = false;
};

constexpr std::array kKeys = {
    Key{"service", [](Contact &c, std::string_view v) { return is_name(v) && (c.service = v, true); }},
    Key{"url", add_url, true},
    Key{"offer", add_offer, true},
    Key{"host", [](Contact &c, std::string_view v) { return c.process.host = v, true; }},
    Key{"boot", [](Contact &c, std::string_view v) { return c.process.boot = v, true; }},
    Key{"pid-space", [](Contact &c, std::string_view v) { return store(c.process.pid_space, v); }},
    Key{"pid", [](Contact &c, std::string_view v) { return store(c.process.pid, v) && c.process.pid > 0; }},
    Key{"started", [](Contact &c, std::string_view v) { return store(c.process.started, v); }},
    Key{"incarnation", [](Contact &c, std::string_view v) { return store(c.incarnation, v, 16); }}};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Contact> parse() {
    if (auto status = parse_head(); !status.ok()) return status.error();
    for (auto line = next(); line != kEnd; line = next()) {
      if (is_over_) return fault("the text ends before the line 'end': it was not written to its end");
      if (auto status = parse_line(line); !status.ok()) return status.error();
    }
    if (!text_.empty()) return fault("something follows the line 'end'");
    for (const auto &key : kKeys)
      if (key.name != "offer" && !seen_.contains(key.name)) return fault(fmt::format("'{}' is missing", key.name));
    return contact_;
  }

 private:
  Status parse_head() {
    auto head = next();
    if (!head.starts_with(kHead)) return fault("it does not begin with 'nessie-contact': it is no contact file");
    head.remove_prefix(kHead.size());
    if (head == kVersion) return {};
    if (!number<std::uint32_t>(head)) return fault("the version is no number");
    return Error{Code::kUnsupported,
                 fmt::format("it is of version {} of the format, and this program reads version {}: "
                             "use Nessie's programs of one version",
                             head, kVersion)};
  }
  Status parse_line(std::string_view line) {
    auto value = line;
    const auto name = take(value, ' ');
    if (take(value, ' ') != "=" || !is_text(value)) return fault("it is no 'key = value'");
    const auto *key = std::ranges::find(kKeys, name, &Key::name);
    if (key == kKeys.end()) return {};  // a later program's
    if (!seen_.insert(key->name).second && !key->may_repeat) return fault(fmt::format("'{}' is there twice", name));
    return key->read(contact_, value) ? Status() : fault(fmt::format("'{}' has a value that it cannot have", name));
  }
  /// A line without its end; lines that do not end are none.
  std::string_view next() {
    ++line_;
    is_over_ = text_.find('\n') == std::string_view::npos;
    return is_over_ ? std::string_view() : take(text_, '\n');
  }
  Error fault(std::string_view what) const { return {Code::kBadMessage, fmt::format("line {}: {}", line_, what)}; }

  std::string_view text_;
  int line_ = 0;
  bool is_over_ = false;
  std::set<std::string_view> seen_;
  Contact contact_;
};

std::string write(const Contact &contact) {
  auto text = fmt::format("{}{}\nservice = {}\n", kHead, kVersion, contact.service);
  for (std::string_view urls = contact.url; !urls.empty();) text += fmt::format("url = {}\n", take(urls, ';'));
  for (const auto &offer : contact.offers)
    text += fmt::format("offer = 0x{:08x} version {} provider {}\n", offer.interface.program, offer.interface.version,
                        offer.provider);
  const auto &process = contact.process;
  return text + fmt::format("host = {}\nboot = {}\npid-space = {}\npid = {}\nstarted = {}\nincarnation = {:016x}\n{}\n",
                            process.host, process.boot, process.pid_space, process.pid, process.started,
                            contact.incarnation, kEnd);
}

}  // namespace

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-' || c == '/';
  };
  return !text.empty() && text.size() <= kMaxName && std::ranges::all_of(text, allowed);
}

Result<std::string> to_text(const Contact &contact) {
  auto text = write(contact);
  if (text.size() > kMaxContactBytes)
    return Error{Code::kInvalidArgument, "a contact may have 64 KiB: offer less, or listen at fewer URLs"};
  const auto back = parse_contact(text);
  if (back.ok() && *back == contact) return text;
  return Error{Code::kInvalidArgument,
               fmt::format("the service cannot be described: {}",
                           back.ok() ? "something in it cannot be written as a line of text" : back.error().message)};
}

Result<Contact> parse_contact(std::string_view text) { return Parser(text).parse(); }

}  // namespace nessie::service
