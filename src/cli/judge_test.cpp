// SPDX-License-Identifier: BSD-3-Clause
#include "judge.hpp"

#include <gnu/lib-names.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace nessie::cli {
namespace {

ElfFile file_with(const Names &wanted, const Names &defined = {}, const std::string &soname = {}) {
  ElfFile file;
  file.of_this_machine = true;
  file.wanted = wanted;
  file.defined = defined;
  file.soname = soname;
  return file;
}

Object library(const std::string &soname, const Names &wanted, const Names &defined) {
  return {"/lib/" + soname, file_with(wanted, defined, soname)};
}

Object our_mpi() { return library(NESSIE_MPI_SONAME, {}, {"PMPI_Comm_rank", "MPI_Comm_rank"}); }
Object our_pnetcdf() {
  auto object = library(NESSIE_PNETCDF_SONAME, {"MPI_File_set_view"}, {"ncmpi_create", "ncmpi_inq_libvers"});
  object.pnetcdf_version = NESSIE_PNETCDF_VERSION " of a day";
  return object;
}

/// A program that looks for these, linked to our MPI and our PnetCDF.
Subject program(const Names &wanted = {"ncmpi_create"}) {
  Subject subject;
  subject.path = "/home/user/sim";
  subject.objects = {{subject.path, file_with(wanted)}, our_pnetcdf(), our_mpi()};
  subject.objects[0].elf.interpreter = "/lib64/" LD_SO;
  return subject;
}

bool says(const Judgement &judgement, const std::string &text) {
  return std::ranges::any_of(judgement.findings,
                             [&](const Finding &finding) { return finding.what.find(text) != std::string::npos; });
}

void expect_not(const Subject &subject, const std::string &why) {
  const auto judgement = judge(subject);
  EXPECT_EQ(judgement.verdict, Verdict::kNot);
  EXPECT_NE(judgement.sentence().find("would not be staged: "), std::string::npos);
  EXPECT_NE(judgement.why.find(why), std::string::npos) << judgement.why;
}

TEST(Judge, WhatCallsOurPnetcdf_IsStaged) {
  for (const char *name :
       {"ncmpi_create", "nfmpi_create_", "__pnetcdf_MOD_nf90mpi_create", "_ZN7PnetCDF10NcmpiFileE"}) {
    const auto judgement = judge(program({name}));
    EXPECT_EQ(judgement.verdict, Verdict::kStaged) << name;
    EXPECT_EQ(judgement.calls, std::vector<std::string>{"PnetCDF"});
    EXPECT_EQ(judgement.pnetcdf, "/lib/" NESSIE_PNETCDF_SONAME);
  }
}

TEST(Judge, WhatDoesNotCallIt_IsNot) { expect_not(program({"printf"}), "it does not call PnetCDF"); }

TEST(Judge, WhatNothingCanBePreloadedInto_IsNot) {
  auto subject = program();
  subject.objects[0].elf.interpreter.clear();
  expect_not(subject, "it is linked statically");
  subject.objects[0].elf.interpreter = "/lib/ld-musl-x86_64.so.1";
  expect_not(subject, "its dynamic linker, /lib/ld-musl");
  subject = program();
  subject.rights = "the setuid bit";
  subject.rights_count = true;
  expect_not(subject, "it has the setuid bit");
  subject = program();
  subject.objects[0].elf = {};
  expect_not(subject, "another kind of machine");
}

TEST(Judge, WhatIsLinkedToNessiesLibrary_HasItInSpiteOfRights) {
  auto subject = program();
  subject.objects[0].elf.needed = {"libnessie_pnetcdf.so"};
  EXPECT_EQ(judge(subject).verdict, Verdict::kStaged);
  EXPECT_TRUE(says(judge(subject), "it is linked to Nessie's library"));
  subject.rights = "the setuid bit";
  subject.rights_count = true;
  EXPECT_EQ(judge(subject).verdict, Verdict::kPartly);
}

TEST(Judge, RightsThatGiveNothing_AreNamed) {
  auto subject = program();
  subject.rights = "the setuid bit";
  const auto judgement = judge(subject);
  EXPECT_EQ(judgement.verdict, Verdict::kStaged);
  EXPECT_TRUE(says(judgement, "no more rights than you have"));
}

TEST(Judge, PnetcdfInsideTheProgram_IsOutOfReach) {
  auto subject = program({"MPI_Init"});
  subject.objects[0].elf.hidden = {"ncmpi_create"};
  expect_not(subject, "it has PnetCDF inside");
  expect_not(program({"MPI_Type_get_contents", "MPI_File_set_view"}), "it has PnetCDF inside");  // stripped
  subject = program({"ncmpi_open"});
  subject.objects[0].elf.hidden = {"ncmpi_helper"};
  EXPECT_EQ(judge(subject).verdict, Verdict::kStaged);
}

TEST(Judge, AnotherMpi_IsNamedAsTheLibraryNamesIt) {
  auto subject = program();
  subject.objects[2] = library("libother.so.12", {}, {"PMPI_Comm_rank"});
  expect_not(subject, "the program uses /lib/libother.so.12, and Nessie was built for " NESSIE_MPI_SONAME);
  subject = program();
  subject.objects.push_back(library("libsecond.so.1", {}, {"PMPI_Comm_rank"}));
  expect_not(subject, "the program uses /lib/libsecond.so.1");
  subject = program();
  subject.objects[0].elf.defined = {"MPI_Comm_rank"};
  expect_not(subject, "the program brings its own MPI");
  subject = program();
  subject.objects[2] = library("libstub.so", {}, {"MPI_Comm_rank"});
  expect_not(subject, "the program uses /lib/libstub.so");
  subject = program();
  subject.objects.insert(subject.objects.begin() + 1, library("libtool.so", {"PMPI_Comm_rank"}, {"MPI_Comm_rank"}));
  EXPECT_EQ(judge(subject).verdict, Verdict::kStaged);
}

TEST(Judge, AnotherMpiWithoutPnetcdf_IsNoObstacle) {
  auto subject = program({"MPI_Init"});
  subject.objects = {subject.objects[0], library("libother.so.12", {}, {"PMPI_Comm_rank"})};
  expect_not(subject, "it does not call PnetCDF");
}

TEST(Judge, AnotherPnetcdf_IsNamedAsTheLibraryNamesIt) {
  auto subject = program();
  subject.objects[1].elf.soname = "libpnetcdf.so.99";
  expect_not(subject, "the program uses /lib/" NESSIE_PNETCDF_SONAME " (PnetCDF " NESSIE_PNETCDF_VERSION);
  subject = program();
  subject.objects[1].pnetcdf_version = "9.9 of a day";
  expect_not(subject, "(PnetCDF 9.9 of a day), and Nessie was built for " NESSIE_PNETCDF_SONAME);
  subject.objects[1].pnetcdf_version.clear();
  EXPECT_EQ(judge(subject).verdict, Verdict::kStaged);
}

TEST(Judge, PreloadThatIsReplacedOrHasPnetcdf_IsAnObstacle) {
  auto subject = program();
  subject.preload_replaced = "-x LD_PRELOAD=tool.so";
  expect_not(subject, "LD_PRELOAD is replaced");
  subject = program();
  subject.preloaded = {NESSIE_PNETCDF_SONAME};
  expect_not(subject, "PnetCDF itself");
}

TEST(Judge, APreloadedTool_IsNeitherTheProgramNorItsPnetcdf) {
  for (const auto &[called, verdict] : {std::pair{"ncmpi_create", Verdict::kStaged}, {"printf", Verdict::kNot}}) {
    auto subject = program({called});
    subject.preloaded = {"/lib/libtool.so"};
    auto tool = library("libtool.so", {"dlsym", "ncmpi_close"}, {"ncmpi_create", "ncmpi_inq_libvers"});
    tool.elf.hidden = {"ncmpi_create"};  // it is not stripped
    subject.objects.insert(subject.objects.begin() + 1, tool);
    EXPECT_EQ(judge(subject).verdict, verdict) << called;
  }
}

TEST(Judge, WhatDoesNotStart_IsNot) {
  auto subject = program();
  subject.missing = {"libabsent.so"};
  expect_not(subject, "libabsent.so is not found");
}

TEST(Judge, WhatIsLinkedToUnknownLibraries_IsNotPromised) {
  auto subject = program();
  subject.why_unlisted = "nobody says";
  EXPECT_EQ(judge(subject).verdict, Verdict::kPartly);
}

TEST(Judge, OtherIoLibrariesBesidePnetcdf_StayNative) {
  const auto judgement = judge(program({"ncmpi_create", "H5Fcreate", "MPI_File_open", "adios2_open"}));
  EXPECT_EQ(judgement.sentence(),
            "would be staged in part: files of PnetCDF; those of HDF5, ADIOS2, MPI-IO are native");
  EXPECT_TRUE(says(judgement, "the program calls HDF5"));
}

TEST(Judge, WhatItsOwnLibrariesCall_Counts_AndWhatIoLibrariesCallDoesNot) {
  auto subject = program({"write_all"});
  subject.objects.push_back(library("libphysics.so", {"ncmpi_create"}, {"write_all"}));
  EXPECT_EQ(judge(subject).verdict, Verdict::kStaged);
  subject.objects.push_back(library("libhdf5.so.103", {"MPI_File_open"}, {"H5Fcreate"}));
  EXPECT_EQ(judge(subject).verdict, Verdict::kStaged);
}

TEST(Judge, NetcdfIsStagedThroughPnetcdfOnly) {
  auto subject = program({"nc_create_par"});
  subject.objects.push_back(library("libnetcdf.so.19", {"ncmpi_create", "H5Fcreate"}, {"nc_create"}));
  EXPECT_EQ(judge(subject).sentence(), "would be staged in part: files of PnetCDF; those of netCDF-4 are native");
  subject.objects[0].elf.wanted = {"nc_create"};
  expect_not(subject, "opens no files in parallel");
  subject.objects[3].elf.wanted = {"H5Fcreate"};
  expect_not(subject, "built without PnetCDF");
}

TEST(Judge, WhatOpensLibrariesLater_MayBeStaged) {
  auto subject = program({"dlopen"});
  EXPECT_EQ(judge(subject).verdict, Verdict::kPartly);
  subject.trial = Trial{2, false, ""};
  EXPECT_EQ(judge(subject).verdict, Verdict::kPartly);
  subject.trial = Trial{1, true, "exited with 0"};
  expect_not(subject, "it does not call PnetCDF");
}

TEST(Judge, WhoseOwnLibraryOpensOthers_MayBeStaged) {
  auto subject = program({"Py_Main"});
  subject.objects.push_back(library("libpython3.so", {"dlopen"}, {"Py_Main"}));
  subject.objects[2].elf.wanted = {"dlopen"};  // MPI
  expect_not(subject, "it does not call PnetCDF");
  subject.objects[0].elf.needed = {"libpython3.so"};
  EXPECT_EQ(judge(subject).verdict, Verdict::kPartly);
}

TEST(Judge, WhatATrialOpened_Counts) {
  auto subject = program({"dlopen"});
  subject.objects.resize(1);
  auto mpi = our_mpi(), pnetcdf = our_pnetcdf(), plugin = library("plugin.so", {"ncmpi_create"}, {});
  mpi.late = pnetcdf.late = plugin.late = true;
  subject.trial = Trial{1, true, "exited with 0"};
  subject.objects.insert(subject.objects.end(), {mpi, pnetcdf});
  const auto looked_up = judge(subject);
  EXPECT_EQ(looked_up.verdict, Verdict::kStaged);
  EXPECT_TRUE(says(looked_up, "looks functions up in it"));
  subject.objects.push_back(plugin);
  EXPECT_TRUE(says(judge(subject), "plugin.so calls PnetCDF"));
}

TEST(Judge, WhatATrialOpenedPastPreloadedLibraries_IsNative) {
  auto subject = program({"dlopen"});
  subject.objects.resize(1);
  for (auto object : {our_mpi(), our_pnetcdf(), library("plugin.so", {"ncmpi_create"}, {})}) {
    object.late = object.deep = true;
    subject.objects.push_back(object);
  }
  subject.trial = Trial{1, true, "exited with 0"};
  expect_not(subject, "RTLD_DEEPBIND");
}

TEST(Judge, AWrapperIsWhatItStarts) {
  auto subject = program({"execvp"});
  subject.path = "/usr/bin/env";
  subject.argument = "./sim";
  const auto judgement = judge(subject);
  EXPECT_EQ(judgement.verdict, Verdict::kPartly);
  EXPECT_TRUE(says(judgement, "it may start ./sim"));
  subject.objects[0].elf.wanted = {"ncmpi_create"};
  EXPECT_EQ(judge(subject).verdict, Verdict::kStaged);
}

TEST(Judge, PythonIsSaidToComeLate_ThoughAShellChoosesIt) {
  auto subject = program({"fork"});
  subject.path = "/bin/bash";
  subject.scripts = {"/home/user/analysis.py", "/home/user/.pyenv/shims/python3"};
  const auto judgement = judge(subject);
  EXPECT_EQ(judgement.verdict, Verdict::kPartly);
  EXPECT_TRUE(says(judgement, "Python loads PnetCDF late"));
  subject.scripts = {"/home/user/python_job.sh"};
  EXPECT_FALSE(says(judge(subject), "Python loads PnetCDF late"));
}

TEST(Judge, AShellIsWhatItStarts) {
  auto subject = program({"fork"});
  subject.path = "/bin/sh";
  subject.scripts = {"/home/user/job.sh"};
  const auto judgement = judge(subject);
  EXPECT_EQ(judgement.verdict, Verdict::kPartly);
  EXPECT_TRUE(says(judgement, "/home/user/job.sh is a script, for /bin/sh"));
}

}  // namespace
}  // namespace nessie::cli
