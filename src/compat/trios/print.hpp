// SPDX-License-Identifier: BSD-3-Clause
// Structs as text, for people.
#pragma once

#include <Trios_nnti_xdr.h>

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

namespace nnti::trios {

/// Lines "prefix NAME = value" into a text.
class Page {
 public:
  explicit Page(const char *prefix) : prefix_(prefix ? prefix : "") {}
  template <class Value> void line(std::string_view name, const Value &value) {
    fmt::format_to(std::back_inserter(text_), "{} {}{} = {}\n", prefix_, indent_, name, value);
  }
  /// `value` may be null; it has a function describe(). Without a name it has that of its type.
  template <class T> void part(const char *name, std::string_view type, const T *value) {
    const std::string_view title = name ? std::string_view(name) : type;
    if (value == nullptr) return line(title, "NULL");
    line(title, fmt::format("{} {{", type));
    indent_ += "    ";
    describe(*this, *value);
    indent_.resize(indent_.size() - 4);
    fmt::format_to(std::back_inserter(text_), "{} {}}}\n", prefix_, indent_);
  }
  const std::string &text() const { return text_; }

 private:
  std::string prefix_, indent_, text_;
};

void describe(Page &page, const NNTI_peer_t &peer);
/// Not the segments: those of a handle that is dead are not there any more.
void describe(Page &page, const NNTI_buffer_t &buffer);

/// Nothing if there is no file.
inline void put(FILE *fp, const std::string &text) {
  if (fp != nullptr) std::fputs(text.c_str(), fp);
}

}  // namespace nnti::trios

/// Prints a TYPE into a file or a stream.
#define TRIOS_PRINTS(function, type)                                                          \
  static std::string text_of(const char *name, const char *prefix, const type *value) {       \
    nnti::trios::Page page(prefix);                                                           \
    page.part(name, #type, value);                                                            \
    return page.text();                                                                       \
  }                                                                                           \
  void function(FILE *fp, const char *name, const char *prefix, const type *value) {          \
    nnti::trios::put(fp, text_of(name, prefix, value));                                       \
  }                                                                                           \
  void function(std::ostream &out, const char *name, const char *prefix, const type *value) { \
    out << text_of(name, prefix, value);                                                      \
  }
