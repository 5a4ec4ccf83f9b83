// SPDX-License-Identifier: BSD-3-Clause
// What interface files may say; and each fault with its place.
#include "xdr/idl/parser.hpp"
#include "xdr/idl/cpp_names.hpp"
#include "xdr/idl/languages.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace xdr::idl {
namespace {

Interface accepted(std::string_view source) {
  auto result = read(source);
  if (const auto *fault = std::get_if<Fault>(&result)) ADD_FAILURE() << describe(*fault, "test.x", source);
  return std::holds_alternative<Interface>(result) ? std::get<Interface>(std::move(result)) : Interface();
}

/// In every language.
std::string made_of(const Interface &interface) {
  return make_cpp(interface, {"a.x", "a", "a"}) + make_cpp_rpc(interface, {"a.x", "a", "a"}) +
         make_c_header(interface, {"a.x", "a"}) + make_c_codec(interface, {"a.x", "a"});
}

struct Refused {
  const char *source;
  int line, column;
  const char *says;  ///< somewhere
};

class Faults : public testing::TestWithParam<Refused> {};

TEST_P(Faults, AreToldWithTheirPlace) {
  const auto &[source, line, column, says] = GetParam();
  const auto result = read(source);
  ASSERT_TRUE(std::holds_alternative<Fault>(result)) << source;
  const auto &fault = std::get<Fault>(result);
  EXPECT_NE(fault.text.find(says), std::string::npos) << fault.text;
  EXPECT_EQ(fault.at.line, line) << describe(fault, "test.x", source);
  EXPECT_EQ(fault.at.column, column) << describe(fault, "test.x", source);
}

INSTANTIATE_TEST_SUITE_P(
    Idl, Faults,
    testing::Values(
        // words
        Refused{"const A = 5; /* no end", 1, 14, "does not end"}, Refused{"const A = 08;", 1, 11, "no number"},
        Refused{"const A = 18446744073709551616;", 1, 11, "64 bits"}, Refused{"const A = 0x;", 1, 11, "no digits"},
        Refused{"// so", 1, 1, "/* like this */"},
        Refused{"const A = 5;\n#include \"b.x\"\n", 2, 1, "#include is not understood"},
        Refused{"#define\n", 1, 1, "a name expected"}, Refused{"#define A(x) 5\n", 1, 1, "one number"},
        Refused{"#define A 5 + 5\n", 1, 13, "means nothing"}, Refused{"#define A B C\n", 1, 1, "one number"},
        Refused{"#undef 5\n", 1, 1, "one name"}, Refused{"#if A < 2\n#endif\n", 1, 1, "one name or number"},
        Refused{"\n #if\n#endif\n", 2, 2, "one name or number"}, Refused{"#elif A\n", 1, 1, "no condition"},
        Refused{"#if A\n#elif A < 2\n#endif\n", 2, 1, "one name or number"},
        Refused{"#define A B\n#define B A\nconst C = A;", 3, 11, "no constant"},
        Refused{"#define A 5\n#undef A\nconst C = A;", 3, 11, "no constant"},
        Refused{"#ifdef X\nconst A = 1;\n", 1, 1, "no #endif"}, Refused{"#endif\n", 1, 1, "no condition"},
        Refused{"const A = $;", 1, 11, "means nothing"},
        // grammar
        Refused{"strict a { int b; };", 1, 1, "a definition expected"}, Refused{"const A = 5", 1, 12, "';' expected"},
        Refused{"struct a { };", 1, 12, "a type expected"}, Refused{"struct a { int b }", 1, 18, "';' expected"},
        Refused{"struct int { int b; };", 1, 8, "is a word of the language"},
        Refused{"enum a { B C };", 1, 12, "'}' expected"}, Refused{"struct a { string b; };", 1, 19, "largest length"},
        Refused{"struct a { opaque b; };", 1, 19, "opaque bytes need"},
        Refused{"struct a { string b[4]; };", 1, 19, "length varies"},
        Refused{"struct a { string *b; };", 1, 12, "typedef it first"},
        Refused{"struct a { quadruple b; };", 1, 12, "quadruple is not supported"},
        Refused{"struct a { short b; };", 1, 12, "XDR has no short"},
        Refused{"struct a { unsigned char b; };", 1, 21, "XDR has no char"},
        Refused{"union a switch (int b) { default: void; };", 1, 26, "'case' expected"},
        Refused{"union a switch (void) { case 1: int b; };", 1, 17, "a union switches on an int"},
        Refused{"union a switch (int b) { case 1: void; default: void; case 2: void; };", 1, 55,
                "its default is the last"},
        Refused{"program a { version b { int C(void, int) = 1; } = 1; } = 1;", 1, 31, "no argument beside others"},
        Refused{"program a { version b { int C(bulk in, bulk in) = 1; } = 1; } = 1;", 1, 40, "one bulk parameter"},
        Refused{"program a { version b { int C(bulk up) = 1; } = 1; } = 1;", 1, 36, "bulk in, bulk out"},
        Refused{"program a { version b { int C(void) = 1 [slow]; } = 1; } = 1;", 1, 42, "fiber, short, bulk"},
        Refused{"program a { version b { int C(void) = 1 [short, bulk]; } = 1; } = 1;", 1, 49, "one kind of handler"},
        Refused{"program a { version b { int C(void) = 1 [short; } = 1; } = 1;", 1, 47, "']' expected"},
        // rules
        Refused{"const A = 1;\nconst A = 2;", 2, 7, "first in line 1"}, Refused{"const A = B;", 1, 11, "no constant"},
        Refused{"struct a { b c; };", 1, 12, "no type is called 'b'"},
        Refused{"const B = 1; struct a { B c; };", 1, 25, "'B' is no type"},
        Refused{"struct a { int b; int b; };", 1, 23, "two fields called 'b'"},
        Refused{"struct a { int b[-1]; };", 1, 18, "a size is"},
        Refused{"enum a { B = 2147483648 };", 1, 14, "does not fit"},
        Refused{"enum a { B = 2147483647, C };", 1, 26, "does not fit"},
        Refused{"struct a { a b; };", 1, 8, "contains itself"},
        Refused{"struct a { b c; }; struct b { a d[2]; };", 1, 8, "contains itself"},
        Refused{"typedef a b<>; typedef b a<>;", 1, 26, "contains itself"},
        Refused{"union a switch (float b) { case 1: void; };", 1, 23, "switches on an int"},
        Refused{"enum e { X = 1 }; union a switch (e b) { case 2: void; };", 1, 47, "2 is no value of e"},
        Refused{"union a switch (int b) { case 1: void; case 1: void; };", 1, 45, "has a case 1 already"},
        Refused{"union a switch (bool b) { case 2: void; };", 1, 32, "neither TRUE nor FALSE"},
        Refused{"union a switch (unsigned b) { case -1: void; };", 1, 36, "does not fit"},
        Refused{"union a switch (int b) { case 1: int b; };", 1, 38, "two fields called 'b'"},
        Refused{"program a { version b { int C(void) = 1; int D(void) = 1; } = 1; } = 1;", 1, 56, "of number 1"},
        Refused{"program a { version b { int C(void) = 1; } = 1; version c { int C(void) = 1; } = 1; } = 1;", 1, 82,
                "two versions of number 1"},
        Refused{"program a { version b { int C(void) = 1; } = 1; } = 4294967296;", 1, 53, "a program's number"}));

TEST(Idl, DescribesAFaultWithItsLine) {
  EXPECT_EQ(describe({{2, 3}, "is wrong"}, "a.x", "one\n\ttwo\n"), "a.x:2:3: error: is wrong\n    \ttwo\n    \t ^");
}

TEST(Idl, OfALongLine_ShowsWhatIsAboutTheFault) {
  const auto line = std::string(1000, 'a') + "!" + std::string(1000, 'b');
  EXPECT_EQ(describe({{1, 1001}, "is wrong"}, "a.x", line),
            fmt::format("a.x:1:1001: error: is wrong\n    ... {}!{} ...\n    {}^", std::string(80, 'a'),
                        std::string(79, 'b'), std::string(84, ' ')));
  EXPECT_EQ(describe({{1, 2}, "is wrong"}, "a.x", line),
            fmt::format("a.x:1:2: error: is wrong\n    {} ...\n     ^", std::string(160, 'a')));
}

TEST(Idl, SkipsWhatIsForRpcgensOutput) {
  const auto interface = accepted(
      "#ifdef RPC_HDR\n%#include <a.h>\n#endif\n#ifndef RPC_HDR\nnonsense $\n#if 1\n#endif\n#else\nconst A = "
      "1;\n  #endif\n"
      "#ifdef OTHER\n  # if 1\n  #endif\n\t#else\n# endif\n"
      "# 7 \"other.x\"\n%more\nconst B = A;\n");
  ASSERT_EQ(interface.definitions.size(), 2u);
  EXPECT_EQ(std::get<Constant>(interface.definitions[1]).value.number, (Number{1, false}));
}

TEST(Idl, KnowsConditions) {
  for (const auto *taken :
       {"#if RPC_HDR", "#if 1", "#if !0", "#if !OTHER", "#if !!RPC_HDR", "#if defined RPC_HDR", "#if defined(RPC_HDR)",
        "#if !defined(OTHER)", "#if (FOUR)", "#ifdef FOUR", "#ifdef EMPTY", "#if 0\n#elif 0\n#elif FOUR",
        "#ifdef FOUR // as C has them", "#if 0 /* and\n more */\n#else"}) {
    const auto interface = accepted(
        fmt::format("#define FOUR 4\n#define EMPTY /* so */\n{}\nconst A = FOUR;\n#else\n$\n#endif\n", taken).c_str());
    EXPECT_EQ(interface.definitions.size(), 1u) << taken;
  }
  for (const auto *left : {"#if 0", "#if OTHER", "#if !RPC_HDR", "#ifndef FOUR", "#if EMPTY", "#if !defined(FOUR)"}) {
    const auto interface =
        accepted(fmt::format("#define FOUR 4\n#define EMPTY\n{}\n$\n#else\nconst A = FOUR;\n#endif\n", left).c_str());
    EXPECT_EQ(interface.definitions.size(), 1u) << left;
  }
  EXPECT_EQ(accepted("#if 1\nconst A = 1;\n#elif 1\n$\n#elif 2 2\n#else\n$\n#endif\n").definitions.size(), 1u);
}

TEST(Idl, PutsInWhatIsDefined) {
  const auto interface = accepted(
      "#define MOST 0x10 /* of\n them */\n#define LEAST (-2)\n#define also MOST\n#define number int\n#define NOTHING\n"
      "const A = also; NOTHING const B = LEAST; struct s { number a[MOST]; };\n#define MOST 3\nconst C = also;\n");
  ASSERT_EQ(interface.definitions.size(), 4u);
  const auto number = [&](std::size_t i) { return std::get<Constant>(interface.definitions[i]).value.number; };
  EXPECT_EQ(number(0), (Number{16, false}));
  EXPECT_EQ(number(1), (Number{2, true}));
  EXPECT_EQ(number(3), (Number{3, false}));
}

TEST(Idl, KnowsNumbersInEveryBase) {
  const auto interface = accepted("const A = 0x1F; const B = 017; const C = -9223372036854775808; const D = -0;");
  const auto number = [&](std::size_t i) { return std::get<Constant>(interface.definitions[i]).value.number; };
  EXPECT_EQ(number(0), (Number{31, false}));
  EXPECT_EQ(number(1), (Number{15, false}));
  EXPECT_EQ(number(2), (Number{std::uint64_t{1} << 63, true}));
  EXPECT_EQ(number(3), (Number{0, false}));
}

TEST(Idl, NamesTypesThatAreDefinedWhereTheyAreUsed) {
  const auto interface = accepted(
      "struct a { enum { OFF = 0, ON = 1 } state; struct { int x; } inner<2>; };\n"
      "typedef struct { int y; } b;\n");
  ASSERT_EQ(interface.definitions.size(), 4u);
  EXPECT_EQ(std::get<Enum>(interface.definitions[0]).name, "a_state");
  EXPECT_EQ(std::get<Struct>(interface.definitions[1]).name, "a_inner");
  EXPECT_EQ(std::get<Struct>(interface.definitions[3]).name, "b");
}

TEST(Idl, WhatIsDefinedWithinATypeIsCalledAfterIt) {
  const auto interface = accepted(
      "struct pair { struct { struct { int x; } p; } left; struct { struct { int x; } p; } right; };\n"
      "typedef struct { enum { ON } is; } three[3];\ntypedef union switch (bool b) { case TRUE: int n; } *maybe;\n"
      "typedef enum { A, B } many<>;\n");
  std::string names;
  for (const auto &definition : interface.definitions) names += type_name_of(definition) + " ";
  EXPECT_EQ(names,
            "pair_left_p pair_left pair_right_p pair_right pair three_element_is three_element three maybe_element "
            "maybe many_element many ");
  EXPECT_FALSE(made_of(interface).empty());
  for (const auto *unfinished : {"struct a { struct { int x; }", "typedef union switch (bool b) {", "typedef enum {"})
    EXPECT_TRUE(std::holds_alternative<Fault>(read(unfinished)));
}

TEST(Idl, KeepsWhatIsForTheOutput_InItsPlace) {
  const auto interface = accepted("%one\n%two\nconst A = 1;\n%three\n#ifdef RPC_XDR\n%four\n#endif\n");
  ASSERT_EQ(interface.passages.size(), 2u);
  EXPECT_EQ(interface.passages[0].text, "one\ntwo\n");
  EXPECT_EQ(interface.passages[0].before, 0u);
  EXPECT_EQ(interface.passages[1].text, "three\n");
  EXPECT_EQ(interface.passages[1].before, 1u);
}

TEST(Idl, AListMayHaveANameForItsPointer) {
  accepted("typedef struct node *list; struct node { int x; list next; };");
  accepted("typedef b a<>; typedef s b; struct s { a x; };");
}

TEST(Idl, AnEnumsValueWithoutANumber_IsOneMoreThanTheOneBefore) {
  const auto interface = accepted("enum a { A, B, C = -1, D, E = 0x10, F };");
  std::string numbers;
  for (const auto &each : std::get<Enum>(interface.definitions[0]).enumerators) numbers += literal(each.number) + " ";
  EXPECT_EQ(numbers, "0 1 -1 0 16 17 ");
}

TEST(Idl, KnowsBulkParameters) {
  const auto interface = accepted(
      "typedef int a; program P { version V { a READ(a, bulk out) = 1; void WRITE(bulk in) = 2; string C(string) = 3; "
      "} = "
      "1; } = 7;");
  const auto &procedures = std::get<Program>(interface.definitions[1]).versions[0].procedures;
  ASSERT_EQ(procedures.size(), 3u);
  EXPECT_EQ(procedures[0].bulk, Bulk::kOut);
  EXPECT_EQ(procedures[0].arguments.size(), 1u);
  EXPECT_EQ(procedures[1].bulk, Bulk::kIn);
  EXPECT_TRUE(procedures[1].arguments.empty());
  EXPECT_EQ(procedures[2].bulk, Bulk::kNone);
}

TEST(Idl, NamesThatCppKeepsForItself_GetAnUnderscore) {
  const auto text = make_cpp(accepted("struct class { int new; };"), {"a.x", "a", "a"});
  EXPECT_NE(text.find("struct class_ {\n  std::int32_t new_{};"), std::string::npos) << text;
  EXPECT_TRUE(is_cpp_namespace("a::b_1"));
  for (const auto *name : {"", "a::", "1a", "a-b", "class", "a:b", "time", "read"})
    EXPECT_FALSE(is_cpp_namespace(name)) << name;
}

TEST(Idl, NamesThatCKeepsForItself_GetAnUnderscore) {
  const auto interface = accepted("struct for { int class; int register<>; };");
  EXPECT_NE(make_c_header(interface, {"a.x", "a"})
                .find("struct for_ {\n  int class;\n  struct {\n    u_int "
                      "register_len;\n    int *register_val;\n  } register_;\n};"),
            std::string::npos);
  EXPECT_NE(make_c_codec(interface, {"a.x", "a"}).find("&objp->register_.register_val"), std::string::npos);
}

TEST(Idl, InCAConstantThatIsAMembersNameToo_IsAnEnumerator) {
  const auto text = make_c_header(
      accepted("const most = 3; const SIZE = 0x100000000; const index = 4; const UP = 5; struct a { int SIZE; };"),
      {"a.x", "a"});
  EXPECT_NE(
      text.find("enum { most = 3 };\n__extension__ enum { SIZE = 0x100000000 };\n#define index 4\n#define UP 5\n"),
      std::string::npos)
      << text;
}

TEST(Idl, InCAMacroMeansOneNumber_AndNothingElse) {
  const auto interface = accepted(
      "struct key { int size; };\n"
      "program A { version ONE { int OPEN(int) = 1; int key(int) = 2; int size(int) = 3; int EOF(int) = 4; } = 1; } = "
      "7;\n"
      "program B { version ONE { int OPEN(int) = 2; int shut(int) = 3; } = 1; } = 8;\n");
  const auto header = make_c_header(interface, {"a.x", "a"});
  EXPECT_NE(header.find("\n#define A 7\n#define ONE 1\n\n#define B 8\n#define shut 3\n"), std::string::npos) << header;
  EXPECT_NE(make_c_codec(interface, {"a.x", "a"})
                .find("#include \"a.h\"\n/* They would change what follows. */\n#undef shut\n\n"),
            std::string::npos);
  EXPECT_NE(make_c_rpc_header(interface, {"a.x", "a"}).find("#define b_open_1_op 2u\n"), std::string::npos);
}

TEST(Idl, WhatALanguageCannotSay_HasItsPlace) {
  const auto place = [](const std::optional<Fault> &fault) {
    return fault ? fmt::format("{}:{}", fault->at.line, fault->at.column) : "none";
  };
  EXPECT_EQ(place(check_c(accepted("const A = 1;\nconst EOF = 1;"))), "2:7");
  EXPECT_EQ(place(check_c(accepted("const index = 1;\nstruct a { int index; };"))), "1:7");
  EXPECT_EQ(place(check_c(accepted("struct for_ { int a; };\nenum e { for };"))), "2:10");
  EXPECT_EQ(place(check_c(accepted("struct a {\n  int errno;\n  int errno_; };"))), "3:7");
  EXPECT_EQ(place(check_c(accepted("struct a { int errno; }; enum b { NULL }; const PATH_MAX = 9;"))), "none");
  EXPECT_EQ(place(check_cpp(accepted("struct class { int a; };\nstruct class_ { int a; };"))), "2:8");
  EXPECT_EQ(
      place(check_cpp(accepted("program P { version int_ { int A(void) = 1; } = 1;\n"
                               "version class { int A(void) = 1; } = 2; version class_ { int A(void) = 1; } = 3;\n"
                               "} = 1;"))),
      "2:49");
  EXPECT_EQ(place(check_cpp(accepted("struct nessie { int a; int class; int class_; }; struct nssi { nessie a; };"))),
            "none");
}

TEST(Idl, TheHeaderInCHasTheLinesThatAreForIt) {
  const auto text =
      make_c_header(accepted("%one\nconst A = 0x1F; const B = -2;\n%two\nconst C = A;"), {"a-b.x", "a-b"});
  EXPECT_NE(text.find("#define _A_B_H_RPCGEN\n"), std::string::npos);
  EXPECT_NE(text.find("one\n#define A 0x1F\n#define B (-2)\ntwo\n#define C A\n"), std::string::npos) << text;
}

TEST(Idl, WhatNobodyWrote_IsRefusedBeforeItExhaustsTheStack) {
  std::string deep = "struct a { ", many;
  for (int i = 0; i < 100'000; ++i) deep += "struct { ";
  const auto nested = read(deep);
  ASSERT_TRUE(std::holds_alternative<Fault>(nested));
  EXPECT_NE(std::get<Fault>(nested).text.find("64 deep"), std::string::npos);
  for (int i = 0; i < 10'001; ++i) many += fmt::format("typedef t{} t{};\n", i + 1, i);
  const auto chained = read(many);
  ASSERT_TRUE(std::holds_alternative<Fault>(chained));
  EXPECT_NE(std::get<Fault>(chained).text.find("10000 things"), std::string::npos);
}

}  // namespace
}  // namespace xdr::idl
