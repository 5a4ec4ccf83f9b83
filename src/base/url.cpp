// SPDX-License-Identifier: BSD-3-Clause
#include "base/url.hpp"

#include "base/hex.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace nessie {
namespace {

constexpr std::size_t kMaxUrlBytes = 1024;
constexpr std::string_view kHexDigits = "0123456789ABCDEF";

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_printable(char c) { return c > ' ' && c < 0x7f; }

Error bad_url(std::string_view text, std::string_view why) {
  return {Code::kInvalidArgument, fmt::format("'{}' is no URL: {}", text.substr(0, 80), why)};
}

bool is_transport_name(std::string_view name) {
  auto allowed = [](char c) { return is_lower(c) || is_digit(c) || c == '+' || c == '_' || c == '-'; };
  return !name.empty() && is_lower(name.front()) && std::all_of(name.begin(), name.end(), allowed);
}

/// Undoes %XX. Decoded text may hold any byte but a control byte.
bool percent_decode(std::string_view text, std::string &decoded) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
    if (high < 0 || low < 0 || high * 16 + low < 0x20 || high * 16 + low == 0x7f) return false;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (char c : text) {
    if (is_printable(c) && c != '%' && c != '&' && c != ';' && c != '=') {
      encoded += c;
    } else {
      auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    }
  }
  return encoded;
}

/// Adds one "key=value" to the query; false if it is none, or the key is there already.
bool add_parameter(std::string_view text, std::map<std::string, std::string> &query) {
  auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  std::string key, value;
  if (!percent_decode(text.substr(0, equals), key) || !percent_decode(text.substr(equals + 1), value)) return false;
  return query.emplace(std::move(key), std::move(value)).second;
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  if (text.size() > kMaxUrlBytes) return bad_url(text, fmt::format("longer than {} bytes", kMaxUrlBytes));
  if (!std::all_of(text.begin(), text.end(), is_printable))
    return bad_url("…", "it holds white space, control or non-ASCII bytes");
  auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return bad_url(text, "no '://' in it");
  Url url;
  url.transport = text.substr(0, scheme_end);
  if (!is_transport_name(url.transport))
    return bad_url(text, fmt::format("'{}' is no transport's name", url.transport));
  auto rest = text.substr(scheme_end + 3);
  if (rest.find(';') != std::string_view::npos) return bad_url(text, "';' in it (a list where one URL is expected?)");
  auto question = rest.find('?');
  url.address = rest.substr(0, question);
  if (url.address.empty()) return bad_url(text, "no address after '://'");
  while (question != std::string_view::npos) {
    rest.remove_prefix(question + 1);
    question = rest.find('&');
    auto parameter = rest.substr(0, question);
    if (!add_parameter(parameter, url.query)) return bad_url(text, fmt::format("'{}' is no new key=value", parameter));
  }
  return url;
}

Result<std::vector<Url>> Url::parse_list(std::string_view text) {
  std::vector<Url> urls;
  for (;;) {
    auto separator = text.find(';');
    auto url = parse(text.substr(0, separator));
    if (!url.ok()) return url.error();
    urls.push_back(std::move(*url));
    if (separator == std::string_view::npos) return urls;
    text.remove_prefix(separator + 1);
  }
}

std::string Url::to_string() const {
  auto text = transport + "://" + address;
  char separator = '?';
  for (const auto &[key, value] : query) {
    text += separator + percent_encode(key) + '=' + percent_encode(value);
    separator = '&';
  }
  return text;
}

}  // namespace nessie
