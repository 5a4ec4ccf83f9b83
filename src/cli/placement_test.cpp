// SPDX-License-Identifier: BSD-3-Clause
#include "placement.hpp"

#include "testing/printed_hosts.hpp"

#include <base/host.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <numeric>
#include <set>

namespace nessie::cli {

void PrintTo(const ServerPlace &place, std::ostream *out) {
  *out << place.index << '@' << place.host << (place.here ? "!" : "") << '[' << place.cores << ']';
}

namespace {

using Places = std::vector<ServerPlace>;

/// Two domains of four cores.
const NodeCores kEightCores{{{{0}, {1}, {2}, {3}}, {{4}, {5}, {6}, {7}}}};

PlaceWish place(std::string_view words) {
  const auto wish = parse_place(words);
  EXPECT_TRUE(wish) << words;
  return wish ? *wish : PlaceWish{};
}

/// A job of hosts a (this one), b and c with eight slots each.
PlacementRequest request(std::string_view words, int ranks, int servers = 0) {
  const HostList hosts{{"a", 8, true}, {"b", 8}, {"c", 8}};
  return {Allocation{hosts, "SLURM_JOB_NODELIST"}, Ranks{ranks, 0}, kEightCores, place(words), servers};
}

Placement placed(const PlacementRequest &request) {
  const auto placement = place_servers(request);
  EXPECT_TRUE(placement) << placement.error().message;
  return placement ? *placement : Placement{};
}

std::string refusal(const PlacementRequest &request) {
  const auto placement = place_servers(request);
  EXPECT_EQ(placement.code(), Code::kInvalidArgument);
  return placement ? "" : placement.error().message;
}

TEST(PlaceWords, SayWhereServersGo) {
  EXPECT_EQ(place("near").kind, PlaceWish::Kind::kNear);
  EXPECT_EQ(place("numa").kind, PlaceWish::Kind::kNuma);
  EXPECT_EQ(place("node").kind, PlaceWish::Kind::kNode);
  EXPECT_EQ(place("node").count, 0);
  EXPECT_EQ(place("node:2").count, 2);
  EXPECT_EQ(place("each-node:3").count, 3);
  EXPECT_EQ(place("host:a,b").hosts, (std::vector<std::string>{"a", "b"}));
}

TEST(PlaceWords, ThatAreNoneAreRefusedWithWhatIsMeant) {
  for (const char *words :
       {"", "nodes", "node:", "node:0", "node:x", "near:2", "numa:1", "host", "host:", "host:,", ":"})
    EXPECT_EQ(parse_place(words).code(), Code::kInvalidArgument) << words;
  EXPECT_NE(parse_place("nodee").error().message.find("did you mean node?"), std::string::npos);
}

TEST(Near, IsWhereNessieRunIs_OnAnyCore) {
  EXPECT_EQ(placed(request("near", 8, 2)).servers, (Places{{0, "a", true, ""}, {1, "a", true, ""}}));
  auto elsewhere = request("near", 8);
  elsewhere.allocation.hosts.front().here = false;
  EXPECT_EQ(placed(elsewhere).servers, (Places{{0, host_name(), true, ""}}));
}

TEST(NodesOfTheirOwn, AreTheLastOnes_AndTheProgramIsKeptFromThem) {
  const auto placement = placed(request("node", 16));
  EXPECT_EQ(placement.servers, (Places{{0, "c", false, "0-7"}}));
  EXPECT_EQ(placement.program, (HostList{{"a", 8, true}, {"b", 8}}));
  EXPECT_EQ(placement.servers_only, (HostList{{"c", 8}}));
  EXPECT_EQ(placement.ranks, (std::vector<int>{8, 8}));
  EXPECT_TRUE(placement.warnings.empty());
}

TEST(NodesOfTheirOwn, AreAsManyAsServers_OrAsWasSaid) {
  EXPECT_EQ(placed(request("node", 8, 2)).servers, (Places{{0, "b", false, "0-7"}, {1, "c", false, "0-7"}}));
  EXPECT_EQ(placed(request("node:1", 8, 2)).servers, (Places{{0, "c", false, "0-3"}, {1, "c", false, "4-7"}}));
  EXPECT_EQ(placed(request("node:2", 8)).servers.size(), 2u);
}

TEST(NodesOfTheirOwn, ThatThereAreNotEnoughOfAreRefused) {
  EXPECT_NE(refusal(request("node:3", 8)).find("3 nodes for servers alone"), std::string::npos);
  EXPECT_NE(refusal(request("node:2", 8, 1)).find("1 staging server cannot be on 2 nodes"), std::string::npos);
  auto alone = request("node", 8);
  alone.allocation = {{{"a", 0, true}}, ""};
  EXPECT_NE(refusal(alone).find("ask for more nodes"), std::string::npos);
}

TEST(NodesOfTheirOwn, ThatLeaveTooFewSlotsAreWarnedOf) {
  const auto placement = placed(request("node", 24));
  ASSERT_EQ(placement.warnings.size(), 1u);
  EXPECT_EQ(placement.warnings.front(),
            "24 processes of the program have 16 slots on the nodes that are left for it (a, b)");
  EXPECT_EQ(placement.ranks, (std::vector<int>{12, 12}));
}

TEST(EachNode, HasServersOnTheCoresThatRanksLeave) {
  const auto placement = placed(request("each-node", 14));  // 8, 6, none
  EXPECT_EQ(placement.servers, (Places{{0, "a", true, ""}, {1, "b", false, "3,7"}, {2, "c", false, "0-7"}}));
  ASSERT_EQ(placement.warnings.size(), 1u);
  EXPECT_NE(placement.warnings.front().find("each core of a:"), std::string::npos) << placement.warnings.front();
}

TEST(EachNode, MayHaveSeveral_AndSaysHowManyThereAre) {
  auto of_six = request("each-node:2", 18);
  of_six.ranks.per_host = 6;
  EXPECT_EQ(placed(of_six).servers, (Places{{0, "a", true, "3"},
                                            {1, "a", true, "7"},
                                            {2, "b", false, "3"},
                                            {3, "b", false, "7"},
                                            {4, "c", false, "3"},
                                            {5, "c", false, "7"}}));
  EXPECT_EQ(placed(request("each-node", 8, 3)).servers.size(), 3u);
  EXPECT_NE(refusal(request("each-node", 8, 2)).find("leave --servers out"), std::string::npos);
  EXPECT_NE(refusal(request("each-node:22", 8)).find("more than 64"), std::string::npos);
}

TEST(Numa, HasOneOnEachDomain_WithItsFreeCoresOrAll) {
  auto of_two = request("numa", 14);
  of_two.allocation.hosts.pop_back();
  EXPECT_EQ(placed(of_two).servers,
            (Places{{0, "a", true, "0-3"}, {1, "a", true, "4-7"}, {2, "b", false, "3"}, {3, "b", false, "7"}}));
}

TEST(NamedHosts, AreTheJobs_OrAnyIfNobodyToldWhichTheseAre) {
  EXPECT_EQ(placed(request("host:c,localhost", 7)).servers, (Places{{0, "c", false, "0-7"}, {1, "a", true, "7"}}));
  EXPECT_EQ(placed(request("host:b", 8, 2)).servers, (Places{{0, "b", false, "0-3"}, {1, "b", false, "4-7"}}));
  EXPECT_NE(refusal(request("host:d", 8)).find("SLURM_JOB_NODELIST names a, b, c"), std::string::npos);
  EXPECT_NE(refusal(request("host:a,b", 8, 1)).find("name fewer"), std::string::npos);
  auto alone = request("host:d", 4);
  alone.allocation = {{{"a", 0, true}}, ""};
  EXPECT_EQ(placed(alone).servers, (Places{{0, "d", false, "0-7"}}));
}

TEST(Placement, IsToldInALineForEach) {
  EXPECT_EQ(describe(placed(request("each-node", 14))),
            "server 0: a (here), any core\nserver 1: b, cores 3,7\nserver 2: c, cores 0-7\n"
            "program: 14 processes: 8 on a, 6 on b, 0 on c\n");
}

TEST(Placement, IsToldAsJson) {
  const auto json = to_json(placed(request("node", 9)));
  EXPECT_EQ(json["servers"], nlohmann::json::parse(R"([{"index": 0, "host": "c", "here": false, "cores": "0-7"}])"));
  EXPECT_EQ(json["program"],
            nlohmann::json::parse(R"([{"host": "a", "processes": 8}, {"host": "b", "processes": 1}])"));
}

void expect_sound(const PlacementRequest &job, const Placement &placement) {
  const auto servers = static_cast<int>(placement.servers.size());
  EXPECT_GT(servers, 0);
  EXPECT_TRUE(job.servers == 0 || servers == job.servers);
  EXPECT_EQ(placement.ranks.size(), placement.program.size());
  EXPECT_EQ(placement.program.size() + placement.servers_only.size(), job.allocation.hosts.size());
  const int ranks = std::accumulate(placement.ranks.begin(), placement.ranks.end(), 0);
  EXPECT_TRUE(job.ranks.count == 0 || ranks == job.ranks.count);
  std::set<std::string> taken;
  for (const auto &server : placement.servers)
    EXPECT_TRUE(server.cores.empty() || taken.insert(server.host + server.cores).second);
}

TEST(Placement, IsSoundForEveryJob) {
  for (const char *words : {"near", "node", "node:2", "each-node", "each-node:3", "numa", "host:b", "host:a,c,a"}) {
    for (int number = 0; number < 31 * 10 * 2; ++number) {
      auto job = request(words, number % 31, number / 31 % 10);
      job.ranks.per_host = number / 310 * 3;
      const auto placement = place_servers(job);
      SCOPED_TRACE(testing::Message() << words << ' ' << number);
      if (placement) expect_sound(job, *placement);
    }
  }
}

}  // namespace
}  // namespace nessie::cli
