// SPDX-License-Identifier: BSD-3-Clause
// In which order types can be defined, and what is known of them.
#include "xdr/idl/graph.hpp"
#include "xdr/idl/parser.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace xdr::idl {
namespace {

std::string names(const std::vector<const Definition *> &definitions) {
  std::vector<std::string> made;
  for (const auto *definition : definitions) made.push_back(type_name_of(*definition));
  return fmt::format("{}", fmt::join(made, " "));
}
std::string order_of(std::string_view source) {
  const auto interface = std::get<Interface>(read(source));
  const TypeGraph graph(interface);
  return fmt::format("{}; {}", names(graph.declared_first()), names(graph.in_order()));
}

TEST(IdlGraph, WhatIsNeededGoesBeforeIt) {
  EXPECT_EQ(order_of("struct a { b x; c *y; d z<>; }; struct b { int i; }; struct c { b x; }; typedef b d;"),
            "; b c d a");
}

TEST(IdlGraph, RoundACycle_OnlyValuesAreNeeded) {
  EXPECT_EQ(order_of("struct a { b *x; }; struct b { a y; };"), "a b; a b");
  EXPECT_EQ(order_of("struct b { a y; }; struct a { b *x; };"), "b a; a b");
  EXPECT_EQ(order_of("struct b { a y; }; struct a { p x; }; typedef b *p;"), "b a; p a b");
  EXPECT_EQ(order_of("struct b { t y; }; typedef a t; struct a { b x<>; };"), "b a; t a b");
}

TEST(IdlGraph, KnowsLists) {
  const auto interface = std::get<Interface>(read(
      "struct a { int x; a *next; }; typedef b *list; struct b { int x; list next; }; struct c { c *l; int x; };"));
  const TypeGraph graph(interface);
  EXPECT_TRUE(graph.is_chain(std::get<Struct>(graph.at("a"))));
  EXPECT_TRUE(graph.is_chain(std::get<Struct>(graph.at("b"))));
  EXPECT_FALSE(graph.is_chain(std::get<Struct>(graph.at("c"))));
}

TEST(IdlGraph, KnowsWhatHoldsItsOwnKind) {
  const auto interface = std::get<Interface>(read(
      "struct a { b *x; }; struct b { a y; e *z; }; struct c { b x; }; struct d { c *x; e y; }; struct e { int x; };\n"
      "typedef f g<>; struct f { g x; };"));
  const TypeGraph graph(interface);
  std::string recursive, boxes;
  for (const auto *type : {"a", "b", "c", "d", "e", "f", "g"}) {
    if (graph.is_recursive(type)) recursive += type;
    if (graph.holds_boxes(type)) boxes += type;
  }
  EXPECT_EQ(recursive, "abfg");
  EXPECT_EQ(boxes, "abcd");
  EXPECT_TRUE(graph.hold_each_other("a", "b"));
  EXPECT_TRUE(graph.hold_each_other("a", "a"));
  EXPECT_FALSE(graph.hold_each_other("c", "b"));
  EXPECT_FALSE(graph.hold_each_other("a", "f"));
  EXPECT_FALSE(graph.hold_each_other("c", "c"));
}

TEST(IdlGraph, LooksThroughALongChainOfTypedefs) {
  std::string source = "typedef int t0<>;\n";
  for (int i = 1; i < 9'000; ++i) source += fmt::format("typedef t{} t{};\n", i - 1, i);
  const auto interface = std::get<Interface>(read(source));
  const TypeGraph graph(interface);
  EXPECT_EQ(graph.behind({Type::Kind::kNamed, "t8999", {}}).name, "t0");
  EXPECT_EQ(graph.in_order().size(), 9'000u);
}

TEST(IdlGraph, KnowsTheLeastBytesOfAType) {
  const auto interface =
      std::get<Interface>(read("struct s { int a; hyper b[2]; opaque c[5]; string d<9>; s *e; u f; };\n"
                               "union u switch (int n) { case 1: hyper a; case 2: int b[2]; default: int c[3]; };\n"
                               "typedef s most[4294967295]; typedef most all[4294967295];"));
  const TypeGraph graph(interface);
  const auto least = [&](const std::string &type) {
    Declaration declaration;
    declaration.type = {Type::Kind::kNamed, type, {}};
    return graph.least_bytes(declaration);
  };
  EXPECT_EQ(least("u"), 12u);
  EXPECT_EQ(least("s"), 4u + 16 + 8 + 4 + 4 + 12);
  EXPECT_EQ(least("all"), 0xffffffffu);
}

}  // namespace
}  // namespace xdr::idl
