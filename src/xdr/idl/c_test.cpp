// SPDX-License-Identifier: BSD-3-Clause
// The C that is made of golden.x: it is rpcgen's to whoever uses it, takes the bytes that our C++ takes, and no others.
#include "golden_memory.h"
#include "golden_side.h"
#include "golden_streams.hpp"
#include "golden_values.hpp"

#include <gtest/gtest.h>
#include <xdr/xdr.h>

#include <cstdlib>
#include <initializer_list>
#include <tuple>

extern "C" const char *golden_in_cpp();

namespace {

using namespace golden;
using Bytes = std::vector<std::byte>;

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

/// Of a random value; none: the types' union has no arm for it.
template <class T> Bytes random_bytes(unsigned seed) {
  Filler filler(seed);
  T value;
  filler(value);
  return filler.failed ? Bytes() : xdr::encode(value);
}

/// Calls `test` with a value of each type that has others in it.
template <class Test> void for_each_type(Test test) {
  test(everything(), "everything");
  test(node(), "node");
  test(holder(), "holder");
  test(numbers(), "numbers");
  test(aliases(), "aliases");
  test(rest(), "rest");
}

void append(Bytes &bytes, std::initializer_list<unsigned> words) {
  for (const auto word : words)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(word >> shift));
}
Bytes words(std::initializer_list<unsigned> words) {
  Bytes bytes;
  append(bytes, words);
  return bytes;
}

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
  unsigned tried = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed)
    for_each_type([&](auto value, const char *type) {
      const auto bytes = random_bytes<decltype(value)>(seed);
      if (bytes.empty()) return;
      ++tried;
      ASSERT_EQ(convert(ours(type), theirs(type), bytes), bytes) << type << " " << seed;
      ASSERT_EQ(convert(theirs(type), ours(type), bytes), bytes) << type << " " << seed;
      ASSERT_EQ(convert(ours(type), ours(type), bytes), bytes) << type << " " << seed;
    });
  EXPECT_GT(tried, 10'000u);
}

TEST(IdlC, EveryStreamOfLibtirpcWillDo) {
  for (unsigned seed = 1; seed <= 100; ++seed)
    for_each_type([&](auto value, const char *type) {
      const auto bytes = random_bytes<decltype(value)>(seed);
      Value it(type), from_file(type), from_record(type);
      if (!it.decode(bytes)) return;
      EXPECT_EQ(it.encoded_as<FileStream>(), bytes);
      EXPECT_EQ(it.encoded_as<RecordStream>(), bytes);
      EXPECT_TRUE(from_file.decode_as<FileStream>(bytes) && from_file.encoded_as<FileStream>() == bytes);
      EXPECT_TRUE(from_record.decode_as<RecordStream>(bytes) && from_record.encoded_as<FileStream>() == bytes);
      EXPECT_EQ(xdr_sizeof(reinterpret_cast<xdrproc_t>(ours(type).code), it.memory()), bytes.size());
    });
}

TEST(IdlC, LargeArraysOfNumbers_AreTheSameThroughEveryStream) {
  auto bytes = words({100'001});
  for (unsigned i = 0; i < 100'001; ++i) append(bytes, {i, ~i});
  Value numbers("offsets"), from_file("offsets"), from_record("offsets");
  ASSERT_TRUE(numbers.decode(bytes));
  EXPECT_EQ(numbers.encoded_as<RecordStream>(), bytes);
  EXPECT_TRUE(from_file.decode_as<FileStream>(bytes) && from_file.encoded_as<FileStream>() == bytes);
  EXPECT_TRUE(from_record.decode_as<RecordStream>(bytes) && from_record.encoded_as<RecordStream>() == bytes);
  EXPECT_EQ(convert(ours("offsets"), ours("offsets"), bytes), bytes);
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

TEST(IdlC, AnyBytesAreTakenOrRefused_AsByCpp) {
  std::mt19937 random(1);
  unsigned taken = 0, refused = 0;
  for (unsigned i = 0; i < 20'000; ++i)
    for_each_type([&](auto value, const char *type) {
      auto bytes = random_bytes<decltype(value)>(i % 50 + 1);
      if (bytes.empty()) return;
      for (auto changes = random() % 4; changes != 0; --changes)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 2 != 0 ? random() : random() % 5);
      if (random() % 4 == 0) bytes.resize(random() % bytes.size());
      const bool is_good = xdr::decode<decltype(value)>(bytes).ok();
      ++(is_good ? taken : refused);
      ASSERT_EQ(Value(type).decode(bytes), is_good) << type << " " << i;
      // What follows the value is nothing to a stream.
      ASSERT_TRUE(Value(type).decode_as<FileStream>(bytes) || !is_good) << type << " " << i;
      ASSERT_TRUE(Value(type).decode_as<RecordStream>(bytes) || !is_good) << type << " " << i;
    });
  EXPECT_GT(taken, 10'000u);
  EXPECT_GT(refused, 10'000u);
}

TEST(IdlC, BytesThatEndEarly_AreRefused) {
  for_each_type([&](auto value, const char *type) {
    for (unsigned seed = 1; seed <= 10; ++seed) {
      const auto bytes = random_bytes<decltype(value)>(seed);
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        Bytes some(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        ASSERT_FALSE(Value(type).decode(some));
        ASSERT_FALSE(Value(type).decode_as<FileStream>(some));
      }
    }
  });
}

TEST(IdlC, ACountThatIsNotThere_CostsNoMemory) {
  struct {
    const char *type;
    Bytes before;
  } const arrays[] = {
      {"offsets", {}}, {"tree", words({1})}, {"node", words({1})}, {"numbers", Bytes(72)}, {"number", words({7})}};
  for (const auto &[type, before] : arrays)
    for (const unsigned count : {0x10000u, 0x1fffffffu, 0x7fffffffu, 0xfffffff0u, 0xffffffffu}) {
      auto bytes = before;
      append(bytes, {count, 0, 0, 0});
      golden_watch_memory();
      EXPECT_FALSE(Value(type).decode(bytes)) << type;
      EXPECT_LT(golden_largest_block(), 1024u) << type;
      EXPECT_FALSE(Value(type).decode_as<FileStream>(bytes)) << type;
      EXPECT_FALSE(Value(type).decode_as<RecordStream>(bytes)) << type;
      EXPECT_LT(golden_largest_block(), 100'000u) << type;
    }
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

TEST(IdlC, AFlagIs0Or1_AnEnumHasAName_PaddingIsZero) {
  EXPECT_TRUE(Value("choice").decode(words({1, 0})));
  EXPECT_FALSE(Value("choice").decode(words({2, 0})));
  EXPECT_FALSE(Value("choice").decode(words({1, 2})));
  EXPECT_TRUE(Value("step").decode(words({9})));
  EXPECT_FALSE(Value("step").decode(words({8})));
  EXPECT_TRUE(Value("title").decode(words({2, 0x61620000})));
  EXPECT_FALSE(Value("title").decode(words({2, 0x61620001})));
  EXPECT_TRUE(Value("digest").decode(Bytes(20)));
  EXPECT_FALSE(Value("digest").decode(words({0, 0, 0, 0, 1})));
}

// --- what contains itself ----------------------------------------------------------------------------------------------------

TEST(IdlC, AListOfAMillion_IsCodedAndFreedWithoutRecursion) {
  constexpr std::size_t kLinks = 1'000'000;
  for (const auto &[type, before, link_bytes] :
       {std::tuple("node", Bytes(), 12u), std::tuple("item", Bytes(), 8u), std::tuple("list", words({1}), 8u)}) {
    auto bytes = before;
    bytes.resize(before.size() + kLinks * link_bytes);
    for (std::size_t i = 1; i < kLinks; ++i)  // there is a next one
      bytes[before.size() + i * link_bytes - 1] = std::byte{1};
    EXPECT_EQ(convert(ours(type), ours(type), bytes), bytes) << type;
  }
}

TEST(IdlC, StructsLie64DeepInEachOtherAtMost_AsInCpp) {
  for (const int depth : {1, 63, 64, 65, 100'000}) {
    Bytes bytes;
    for (int i = 1; i < depth; ++i) append(bytes, {0, 1});
    append(bytes, {0, 0});
    const bool is_good = xdr::decode<tree>(bytes).ok();
    EXPECT_EQ(is_good, depth <= 64);
    EXPECT_EQ(Value("tree").decode(bytes), is_good) << depth;
  }
}

}  // namespace
