// SPDX-License-Identifier: BSD-3-Clause
// Writes a value of drawing.x as bytes (XDR, RFC 4506), which are the same in every language, and reads it again.
//
//   $ build/idl_draw_cpp
//   00000003 74776F00 00000001 00000001 00000002 00000001 3FE00000 00000000
//   00000001 00000000 00000000 00000002 00000002 68690000 00000000
//   two: a circle of radius 0.5 at (1, 2), hi at (0, 0)
//   cut off: refused
#include <drawing.hpp>

#include <cstdio>
#include <memory>

using drawing::kind;

void print_hexadecimal(const std::vector<std::byte> &bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool ends_line = i % 32 == 31 || i + 1 == bytes.size();
    std::printf("%02X%s", std::to_integer<unsigned>(bytes[i]), ends_line ? "\n" : i % 4 == 3 ? " " : "");
  }
}

void print(const drawing::element &it) {
  if (const auto *radius = it.what.radius()) std::printf("a circle of radius %.1f", *radius);
  if (const auto *text = it.what.text()) std::printf("%s", text->c_str());
  std::printf(" at (%d, %d)%s", it.at.x, it.at.y, it.next ? ", " : "\n");
}

int main() {
  drawing::drawing two;
  two.title = "two";
  auto &circle = two.first.emplace();
  circle.at = {1, 2};
  circle.what.select(kind::CIRCLE);
  *circle.what.radius() = 0.5;
  auto &label = circle.next.emplace();
  label.what.select(kind::LABEL);
  *label.what.text() = "hi";

  auto bytes = xdr::encode_checked(two);  // an error where a value breaks a rule of the interface
  if (!bytes) return std::fprintf(stderr, "%s\n", bytes.error().to_string().c_str()), 1;
  print_hexadecimal(*bytes);

  const auto copy = xdr::decode<drawing::drawing>(*bytes);
  if (!copy) return std::fprintf(stderr, "%s\n", copy.error().to_string().c_str()), 1;
  std::printf("%s: ", copy->title.c_str());
  for (const auto *it = &copy->first; *it; it = &(*it)->next) print(**it);

  bytes->resize(bytes->size() - 4);  // whatever is wrong with bytes from elsewhere, it is told
  const auto half = xdr::decode<drawing::drawing>(*bytes);
  std::printf("cut off: %s\n", half ? "read" : "refused");
}
