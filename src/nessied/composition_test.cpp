// SPDX-License-Identifier: BSD-3-Clause
#include "composition.hpp"

#include <gtest/gtest.h>

namespace nessied {
namespace {

const std::vector<nessie::ProviderType> &types() {
  static const std::vector<nessie::ProviderType> all = {{.name = "staging", .uses = {"directory?"}, .is_single = true},
                                                        {.name = "directory"},
                                                        {.name = "transfer", .takes_pool = true},
                                                        {.name = "chain", .uses = {"chain?", "transfer?"}},
                                                        {.name = "reader", .uses = {"directory"}}};
  return all;
}

std::vector<std::string> order_of(const std::string &text) {
  const auto composition = parse_composition(text, "job.toml");
  EXPECT_TRUE(composition.ok()) << composition.error().message;
  const auto steps = plan(*composition, types());
  EXPECT_TRUE(steps.ok()) << steps.error().message;
  std::vector<std::string> names;
  for (const auto &step : *steps) names.push_back(step.place->name);
  return names;
}

/// What is said of it.
std::string fault_of(const std::string &text) {
  const auto composition = parse_composition(text, "job.toml");
  if (!composition.ok()) return composition.error().message;
  const auto steps = plan(*composition, types());
  return steps.ok() ? "" : steps.error().message;
}

using Names = std::vector<std::string>;

TEST(Composition, OfTypes_IsOneProviderEach) {
  const auto composition = composition_of({"staging", "transfer"});
  const auto steps = plan(composition, types());
  ASSERT_TRUE(steps.ok());
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_EQ((*steps)[0].place->name, "staging");
  EXPECT_EQ((*steps)[1].type->name, "transfer");
}

TEST(Composition, EverythingThatAFileSays_IsUnderstood) {
  const auto composition = parse_composition(R"(
    announce = ["file:a.contact", "dir:a"]
    listen = "shm,ofi"
    [nssi]
    timeout = "10s"
    [[pool]]
    name = "compute"
    threads = 3
    cores = "0"
    scheduler = "fifo"
    [[provider]]
    name = "fields"
    type = "transfer"
    number = 7
    pool = "compute"
    settings = { piece = "64K", threads = 0 }
  )",
                                             "job.toml");
  ASSERT_TRUE(composition.ok()) << composition.error().message;
  EXPECT_EQ(composition->announce, (Names{"file:a.contact", "dir:a"}));
  std::vector<std::string> settings;
  for (const auto &each : composition->settings) settings.push_back(each.name + "=" + each.value);
  EXPECT_EQ(settings, (std::vector<std::string>{"listen=shm,ofi", "nssi.timeout=10s"}));
  ASSERT_EQ(composition->pools.size(), 1u);
  EXPECT_EQ(composition->pools[0].threads, 3u);
  EXPECT_EQ(composition->pools[0].cores, "0");
  EXPECT_TRUE(composition->pools[0].in_order);
  const auto steps = plan(*composition, types());
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  EXPECT_EQ((*steps)[0].number, 7u);
  EXPECT_EQ((*steps)[0].place->at, "job.toml, line 11");
  EXPECT_EQ((*steps)[0].place->settings.size(), 2u);
}

TEST(Composition, ProvidersOfOneType_GetNumbersInTheirOrder) {
  const auto composition = parse_composition(R"(
    [[provider]]
    name = "a"
    type = "transfer"
    [[provider]]
    name = "b"
    type = "transfer"
  )",
                                             "job.toml");
  const auto steps = plan(*composition, types());
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ((*steps)[0].number, 0u);
  EXPECT_EQ((*steps)[1].number, 1u);
}

TEST(Composition, WhatIsUsed_ComesFirst_WhateverTheOrderOfTheFile) {
  EXPECT_EQ(order_of(R"(
    provider = [ { name = "c", type = "chain", uses = { chain = "b" } },
                 { name = "b", type = "chain", uses = ["a", "t"] },
                 { name = "t", type = "transfer" },
                 { name = "a", type = "chain" } ])"),
            (Names{"a", "t", "b", "c"}));
}

TEST(Composition, AUsedProviderElsewhere_IsAPlace) {
  const auto composition = parse_composition(
      R"(provider = [ { type = "reader", uses = { directory = "file:/scratch/d.contact" } } ])", "job.toml");
  const auto steps = plan(*composition, types());
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  EXPECT_EQ((*steps)[0].remote.at("directory").where, "file:/scratch/d.contact");
  EXPECT_EQ((*steps)[0].remote.at("directory").number, 0u);
  EXPECT_TRUE((*steps)[0].local.empty());
}

TEST(Composition, AUsedProviderElsewhere_MayHaveANumber) {
  const auto composition = parse_composition(
      R"(provider = [ { type = "reader", uses = { directory = { at = "dir:names", number = 4 } } } ])", "job.toml");
  const auto steps = plan(*composition, types());
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  EXPECT_EQ((*steps)[0].remote.at("directory").where, "dir:names");
  EXPECT_EQ((*steps)[0].remote.at("directory").number, 4u);
}

TEST(Composition, AKeyWithPartsWithoutEnd_IsRefused) {
  std::string text = "\n";
  for (int part = 0; part < 50'000; ++part) text += "a.";
  EXPECT_EQ(fault_of(text + "b = 1"), "job.toml, line 2: a key has too many parts");
}

struct Fault {
  const char *text, *said;
};

class CompositionFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(CompositionFaults, IsNamedWithItsPlace) {
  const auto said = fault_of(GetParam().text);
  EXPECT_NE(said.find(GetParam().said), std::string::npos) << "it says: " << said;
}

INSTANTIATE_TEST_SUITE_P(
    All, CompositionFaults,
    ::testing::Values(
        Fault{"", "job.toml: there is no [[provider]] in it to host"}, Fault{"a = [", "job.toml, line 1: "},
        Fault{"[[provder]]\ntype = \"transfer\"", "line 1: there is no provder; did you mean provider?"},
        Fault{"\nanounce = \"file:x\"", "line 2: there is no anounce; did you mean announce?"},
        Fault{"announce = [\"file:x\",\n\"fiel:x\"]", "line 1: a service is announced to file:PATH, pmix:NAME or dir"},
        Fault{"announce = \"file:\"", "dir:NAME, not to 'file:'"},
        Fault{"[[pool]]\nname = \"a\"\nthreads = 0", "line 1: the pool a is to have 0 threads; expected 1 to 1024"},
        Fault{"[[pool]]\nname = \"a\"\ncores = \"0-x\"", "line 1: the pool a: '0-x' is no list of cores, such as"},
        Fault{"[[pool]]\nname = \"a\"\ncores = \"1023\"", "line 1: the pool a: this process may not use all of the"},
        Fault{"\n[[provider]]\ntype = \"transfre\"",
              "job.toml, line 2: there is no type of provider 'transfre'; did you "
              "mean 'transfer'?"},
        Fault{"[[provider]]\ntype = \"x\"", "there is no type of provider 'x', only staging, directory"},
        Fault{"[[provider]]\nname = \"a\"", "line 1: a provider has a type"},
        Fault{"[[provider]]\ntypo = \"transfer\"", "line 2: there is no key 'typo'; did you mean 'type'?"},
        Fault{"[[provider]]\ntype = 3", "line 2: type takes a text in quotes"},
        Fault{"provider = 3", "provider is a table each, under [[provider]]"},
        Fault{"[[provider]]\ntype = \"transfer\"\n[[provider]]\ntype = \"transfer\"",
              "line 3: there are two providers 'transfer': give each a name"},
        Fault{"provider = [{name=\"a\", type=\"transfer\", number=2}, {name=\"b\", type=\"transfer\", number=2}]",
              "'b' and 'a' have the same number"},
        Fault{"provider = [{name=\"a\", type=\"staging\"}, {name=\"b\", type=\"staging\"}]",
              "a process can have one provider of type staging"},
        Fault{"[[pool]]\nname = \"fast\"\n[[provider]]\ntype = \"transfer\"\npool = \"fats\"",
              "there is no pool 'fats'; did you mean 'fast'?"},
        Fault{"[[pool]]\nname = \"fast\"\n[[provider]]\ntype = \"directory\"\npool = \"fast\"",
              "a directory runs on the thread that drives"},
        Fault{"provider = [{type=\"reader\", uses={directory={at=\"d\", number=1}}}]", "there is no provider 'd'"},
        Fault{"provider = [{type=\"reader\", uses={directory={where=\"d\"}}}]", "there is no key 'where', only at"},
        Fault{"provider = [{type=\"directory\"}, {type=\"reader\", uses={directory={at=\"directory\", number=1}}}]",
              "'directory' is in this process, and its number known"},
        Fault{"provider = [{type=\"transfer\"}, {type=\"reader\", uses={directory=\"transfer\"}}]",
              "'transfer' is a transfer, and not a directory"},
        Fault{"[[pool]]\nthreads = 1", "a pool has a name"},
        Fault{"[[pool]]\nname = \"a\"\n[[pool]]\nname = \"a\"", "there are two pools 'a'"},
        Fault{"[[pool]]\nname = \"a\"\nscheduler = \"fife\"", "there is no scheduler 'fife'; did you mean 'fifo'?"},
        Fault{"[[pool]]\nname = \"a\"\nthreads = -1", "threads takes a whole number from 0 to 4294967295"},
        Fault{"[[pool]]\nname = \"a\"\nnuma_node = 4000000", "this machine has no NUMA node 4000000"},
        Fault{"[nssi]\ntimeot = 3\n[[provider]]\ntype = \"transfer\"",
              "line 2: there is no setting nssi.timeot; did you mean nssi.timeout?"},
        Fault{"colour = 3\n[[provider]]\ntype = \"transfer\"", "line 1: there is no setting colour"},
        Fault{"[[provider]]\ntype = \"staging\"\nsettings = { memroy = \"1G\" }",
              "there is no setting staging.memroy; did you mean staging.memory?"},
        Fault{"[[provider]]\ntype = \"reader\"", "'reader' uses a directory: say which"},
        Fault{
            "[[provider]]\ntype = \"reader\"\nuses = [\"nams\"]\n[[provider]]\nname = \"names\"\ntype = \"directory\"",
            "there is no provider 'nams'; did you mean 'names'?"},
        Fault{"[[provider]]\ntype = \"transfer\"\nuses = [\"transfer\"]", "a transfer uses no others"},
        Fault{"provider = [{type=\"reader\", uses=[\"t\"]}, {name=\"t\", type=\"transfer\"}]",
              "a reader uses no transfer, only directory"},
        Fault{"provider = [{type=\"chain\", uses=[\"chain\"]}]", "in a circle: chain -> chain"},
        Fault{"provider = [{name=\"a\", type=\"chain\", uses=[\"b\"]}, {name=\"b\", type=\"chain\", uses=[\"a\"]}]",
              "in a circle: a -> b -> a"}));

}  // namespace
}  // namespace nessied
