// SPDX-License-Identifier: BSD-3-Clause
#include "elf.hpp"

#include "testing/elf_sample.hpp"

#include <base/fd.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace nessie::cli {
namespace {

Result<ElfFile> read_bytes(std::string_view bytes) {
  const Fd file(::memfd_create("sample", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return read_elf(file.get());
}

/// The sample with another value in a field of its head.
template <class T> std::string with(const ElfSample &sample, T ElfW(Ehdr)::*field, T value) {
  auto bytes = sample.bytes();
  ElfW(Ehdr) head;
  bytes.copy(reinterpret_cast<char *>(&head), sizeof head);
  head.*field = value;
  return bytes.replace(0, sizeof head, reinterpret_cast<const char *>(&head), sizeof head);
}

ElfW(Phdr) * segment_of(std::string &bytes, ElfW(Word) type) {
  auto *first = reinterpret_cast<ElfW(Phdr) *>(bytes.data() + sizeof(ElfW(Ehdr)));
  return std::find_if(first, first + 3, [&](const auto &segment) { return segment.p_type == type; });
}

/// The sample with another value in its dynamic table.
std::string with_dynamic(std::int64_t tag, std::uint64_t value) {
  auto bytes = ElfSample().bytes();
  auto *entry = reinterpret_cast<ElfW(Dyn) *>(bytes.data() + segment_of(bytes, PT_DYNAMIC)->p_offset);
  while (entry->d_tag != tag && entry->d_tag != DT_NULL) ++entry;
  EXPECT_EQ(entry->d_tag, tag);
  entry->d_un.d_val = value;
  return bytes;
}

TEST(Elf, OfAProgram_SaysWhatItIsLinkedToAndLooksFor) {
  const auto file = read_bytes(ElfSample().bytes());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->of_this_machine);
  EXPECT_EQ(file->interpreter, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_EQ(file->needed, (std::vector<std::string>{"libpnetcdf.so.4", "libmpi.so.40"}));
  EXPECT_EQ(file->wanted, (Names{"MPI_Init", "ncmpi_create"}));
  EXPECT_EQ(file->defined, (Names{"answer", "question"}));
  EXPECT_TRUE(has_prefix(file->wanted, "ncmpi_"));
  EXPECT_FALSE(has_prefix(file->wanted, "nc_"));
}

TEST(Elf, ThatExportsNothing_IsKnownByItsRelocations) {
  for (auto hash : {ElfSample::Hash::kNone, ElfSample::Hash::kGnu, ElfSample::Hash::kSysv}) {
    ElfSample sample;
    sample.hash = hash;
    sample.defined.clear();
    const auto file = read_bytes(sample.bytes());
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file->wanted, (Names{"MPI_Init", "ncmpi_create"}));
  }
}

TEST(Elf, OfALibrary_HasANameAndNoInterpreter) {
  ElfSample sample;
  sample.interpreter.clear();
  sample.soname = "libdata.so.3";
  sample.hash = ElfSample::Hash::kSysv;
  const auto file = read_bytes(sample.bytes());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->interpreter, "");
  EXPECT_EQ(file->soname, "libdata.so.3");
  EXPECT_TRUE(file->defines("question"));
}

TEST(Elf, WithPnetcdfInside_ShowsItsHiddenNames) {
  ElfSample sample;
  sample.wanted = {"MPI_Init"};
  sample.hidden = {"main", "ncmpi_create"};
  const auto file = read_bytes(sample.bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->hidden, Names{"ncmpi_create"});
  EXPECT_FALSE(file->defines("ncmpi_create"));
}

TEST(Elf, WhoseSectionsAreDamaged_IsReadWithoutThem) {
  ElfSample sample;
  sample.hidden = {"ncmpi_create"};
  for (auto place : {ElfW(Off){1} << 40, ~ElfW(Off){0}, ElfW(Off){3}}) {
    const auto file = read_bytes(with(sample, &ElfW(Ehdr)::e_shoff, place));
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_TRUE(file->wants("ncmpi_create"));
  }
}

TEST(Elf, OfAnotherMachine_IsToldAsSuch) {
  const auto file = read_bytes(with(ElfSample(), &ElfW(Ehdr)::e_machine, ElfW(Half){0x1234}));
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->of_this_machine);
}

TEST(Elf, WhatIsSomethingElse_IsUnsupported) {
  for (const char *text : {"", "\177EL", "#!/bin/sh\n", "a long text that is no program at all, nor anything like it"})
    EXPECT_EQ(read_bytes(text).code(), Code::kUnsupported);
  EXPECT_EQ(read_elf("/").code(), Code::kUnsupported);
  EXPECT_EQ(read_elf("/absent").code(), Code::kNotFound);
  EXPECT_EQ(read_elf("/etc/passwd/absent").code(), Code::kNotFound);
}

TEST(Elf, ThatIsCutOff_IsDamagedWhereverThatIs) {
  const auto bytes = ElfSample().bytes();
  for (std::size_t size = SELFMAG; size + 8 < bytes.size(); ++size) {
    const auto file = read_bytes(std::string_view(bytes).substr(0, size));
    EXPECT_EQ(file.code(), Code::kBadMessage) << size;
  }
}

TEST(Elf, WithPlacesOutsideOfTheFile_IsDamaged) {
  for (std::uint64_t place : {std::uint64_t{1} << 20, std::uint64_t{1} << 62, ~std::uint64_t{0}, ~std::uint64_t{7}}) {
    for (const auto tag : {DT_STRTAB, DT_SYMTAB, DT_JMPREL, DT_GNU_HASH, DT_STRSZ, DT_PLTRELSZ})
      EXPECT_EQ(read_bytes(with_dynamic(tag, place)).code(), Code::kBadMessage) << tag << " " << place;
    for (const auto type : {PT_INTERP, PT_DYNAMIC}) {
      auto bytes = ElfSample().bytes();
      segment_of(bytes, static_cast<ElfW(Word)>(type))->p_offset = place;
      EXPECT_EQ(read_bytes(bytes).code(), Code::kBadMessage) << type << " " << place;
    }
    EXPECT_EQ(read_bytes(with(ElfSample(), &ElfW(Ehdr)::e_phoff, ElfW(Off){place})).code(), Code::kBadMessage);
  }
}

TEST(Elf, OfThisTest_IsReadAsItIs) {
  const auto file = read_elf("/proc/self/exe");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->of_this_machine);
  EXPECT_NE(file->interpreter, "");
  EXPECT_EQ(std::ranges::count(file->needed, "libc.so.6"), 1);
  EXPECT_TRUE(file->wants("pwrite") || file->wants("pwrite64"));
}

}  // namespace
}  // namespace nessie::cli
