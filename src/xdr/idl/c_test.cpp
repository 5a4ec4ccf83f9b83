// SPDX-License-Identifier: BSD-3-Clause
// The C that is made of golden.x: it is rpcgen's to whoever uses it, takes the bytes that our C++ takes, and no others.
#include "golden_memory.h"
#include "golden_side.h"
#include "golden_streams.hpp"
#include "golden_suite.hpp"

#include <xdr/xdr.h>

#include <cstdlib>

extern "C" const char *golden_in_cpp();

namespace {

using namespace golden_suite;

const golden_type &ours(const char *type) { return *golden_find(&golden_nessie, type); }
const golden_type &theirs(const char *type) { return *golden_find(&golden_rpcgen, type); }

/// A value of one of golden.x's types, as C has it: zeros at first.
class Value {
 public:
  explicit Value(const char *type) : type_(ours(type)), memory_(std::calloc(1, type_.size)) {}
  Value(const Value &) = delete;
  Value &operator=(const Value &) = delete;
  ~Value() {
    type_.free(memory_);
    std::free(memory_);
  }
  bool code(XDR &stream) { return type_.code(&stream, memory_) == TRUE; }
  /// All of them.
  bool decode(Bytes bytes) {
    MemoryStream stream(bytes, XDR_DECODE);
    return code(stream.get()) && xdr_getpos(&stream.get()) == bytes.size();
  }
  template <class Kind> bool decode_as(Bytes bytes) { return code(Kind(bytes, XDR_DECODE).get()); }
  template <class Kind> Bytes encoded_as() {
    Bytes bytes;
    EXPECT_TRUE(code(Kind(bytes, XDR_ENCODE).get()));
    return bytes;
  }
  void *memory() { return memory_; }

 private:
  const golden_type &type_;
  void *memory_;
};

Bytes convert(const golden_type &from, const golden_type &to, Bytes bytes) {
  Bytes made(bytes.size() + 64);
  const long size = golden_convert(&from, &to, reinterpret_cast<char *>(bytes.data()), bytes.size(),
                                   reinterpret_cast<char *>(made.data()), made.size());
  EXPECT_GE(size, 0);
  made.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return made;
}

std::optional<Bytes> convert_in_memory(const char *type, const Bytes &bytes) {
  Bytes made(bytes.size() + 64), in = bytes;
  const auto size = golden_convert(&ours(type), &ours(type), reinterpret_cast<char *>(in.data()), in.size(),
                                   reinterpret_cast<char *>(made.data()), made.size());
  EXPECT_NE(size, -2) << "what was decoded cannot be encoded";
  if (size < 0) return std::nullopt;
  made.resize(static_cast<std::size_t>(size));
  return made;
}

/// What follows a value is nothing to a stream: that is refused in memory.
template <class Kind> std::optional<Bytes> convert_by(const char *type, const Bytes &bytes) {
  Value value(type);
  if (!value.decode_as<Kind>(bytes) || !Value(type).decode(bytes)) return std::nullopt;
  return value.encoded_as<Kind>();
}

INSTANTIATE_TEST_SUITE_P(Idl, Golden,
                         testing::Values(golden_suite::Codec{"InC", convert_in_memory, true},
                                         golden_suite::Codec{"InCByStdio", convert_by<FileStream>, true},
                                         golden_suite::Codec{"InCByRecords", convert_by<RecordStream>, true}),
                         [](const auto &info) { return info.param.name; });

// --- the same as rpcgen's --------------------------------------------------------------------------------------------------

TEST(IdlC, EveryTypeHasTheLayoutOfRpcgens) {
  const auto *mine = golden_nessie.types, *other = golden_rpcgen.types;
  for (; mine->name != nullptr; ++mine, ++other) {
    ASSERT_STREQ(mine->name, other->name);
    EXPECT_EQ(mine->size, other->size) << mine->name;
  }
  const auto *field = golden_nessie.fields, *same = golden_rpcgen.fields;
  for (; field->name != nullptr; ++field, ++same) {
    ASSERT_STREQ(field->name, same->name);
    EXPECT_EQ(field->offset, same->offset) << field->name;
    EXPECT_EQ(field->size, same->size) << field->name;
  }
}

TEST(IdlC, RandomValues_HaveTheBytesOfRpcgens_BothWays) {
  for_each_random_value([](const char *type, const Bytes &bytes, unsigned seed) {
    ASSERT_EQ(convert(ours(type), theirs(type), bytes), bytes) << type << " " << seed;
    ASSERT_EQ(convert(theirs(type), ours(type), bytes), bytes) << type << " " << seed;
  });
}

TEST(IdlC, LibtirpcSizesEveryType) {
  for (unsigned seed = 1; seed <= 100; ++seed)
    for_each_type([&](auto value, const char *type) {
      const auto bytes = random_bytes<decltype(value)>(seed);
      Value it(type);
      if (!it.decode(bytes)) return;
      EXPECT_EQ(xdr_sizeof(reinterpret_cast<xdrproc_t>(ours(type).code), it.memory()), bytes.size());
    });
}

TEST(IdlC, TheHeaderIsForCppToo) { EXPECT_STREQ(golden_in_cpp(), "MOST=16 NEGATIVE=-5 GO=9 ADD=1 PASSAGE=1 x=7"); }

TEST(IdlC, WhatIsGiven_IsDecodedIntoAndNotAllocated) {
  char text[8] = "", other[8] = "";
  char *string = text;
  auto bytes = words({3, 0x61626300});
  MemoryStream stream(bytes, XDR_DECODE);
  EXPECT_TRUE(theirs("title").code(&stream.get(), &string));
  string = other;
  MemoryStream again(bytes, XDR_DECODE);
  EXPECT_TRUE(ours("title").code(&again.get(), &string));
  EXPECT_EQ(string, other);
  EXPECT_STREQ(other, text);
}

TEST(IdlC, WhatBreaksTheInterface_IsNotEncoded) {
  struct {
    u_int size;
    void *values;
  } few{4, nullptr};
  Bytes room(64);
  for (const char *type : {"keys", "offsets"}) {  // one is longer than its bound, the other is nowhere
    MemoryStream stream(room, XDR_ENCODE);
    EXPECT_FALSE(ours(type).code(&stream.get(), &few)) << type;
  }
  char *string = nullptr;
  MemoryStream stream(room, XDR_ENCODE);
  EXPECT_FALSE(ours("title").code(&stream.get(), &string));
  char longer[] = "seventeen letters";
  string = longer;
  EXPECT_FALSE(ours("title").code(&stream.get(), &string));
}

// --- bytes that nobody can trust -------------------------------------------------------------------------------------------

TEST(IdlC, ACountThatIsNotThere_CostsNoMemory) {
  for_each_count_that_is_not_there([](const char *type, const Bytes &bytes) {
    golden_watch_memory();
    EXPECT_FALSE(Value(type).decode(bytes)) << type;
    EXPECT_LT(golden_largest_block(), 1024u) << type;
    EXPECT_FALSE(Value(type).decode_as<FileStream>(bytes)) << type;
    EXPECT_FALSE(Value(type).decode_as<RecordStream>(bytes)) << type;
    EXPECT_LT(golden_largest_block(), 100'000u) << type;
  });
}

TEST(IdlC, WhenMemoryEnds_WhatThereIsCanBeFreed) {
  for_each_type([&](auto value, const char *type) {
    const auto bytes = random_bytes<decltype(value)>(7);
    for (const auto &make : {make_stream<MemoryStream>, make_stream<FileStream>}) {
      bool is_decoded = false;
      for (long allocations = 0; allocations < 1000 && !is_decoded; ++allocations) {
        auto copy = bytes;
        const auto stream = make(copy, XDR_DECODE);
        Value it(type);
        golden_fail_after(allocations);
        is_decoded = it.code(stream->get());
        golden_fail_after(-1);
      }
      EXPECT_TRUE(is_decoded) << type;
    }
  });
}

bool_t code_nothing(XDR *, void *, unsigned) { return TRUE; }

TEST(IdlC, ArraysOfWhatTakesNoMemory) {
  constexpr nessie_xdr_type kNothing{0, 4, code_nothing};
  for (const auto &make : {make_stream<MemoryStream>, make_stream<FileStream>}) {
    auto bytes = words({2, 0, 0});
    void *values = nullptr;
    u_int count = 0;
    EXPECT_TRUE(nessie_xdr_array(&make(bytes, XDR_DECODE)->get(), &values, &count, 5, &kNothing, 0));
    EXPECT_EQ(count, 2u);
    EXPECT_NE(values, nullptr);
    std::free(values);
  }
}

TEST(IdlC, AnEnumHasAName) {
  EXPECT_TRUE(Value("step").decode(words({9})));
  EXPECT_FALSE(Value("step").decode(words({8})));
}

TEST(IdlC, AListBehindItsPointer_IsCodedAndFreedWithoutRecursion) {
  auto bytes = words({1});
  for (int i = 0; i < 1'000'000; ++i) append(bytes, {0, i < 999'999 ? 1u : 0u});
  EXPECT_TRUE(convert_in_memory("list", bytes) == bytes);
}

}  // namespace
