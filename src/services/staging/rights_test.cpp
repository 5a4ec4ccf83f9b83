// SPDX-License-Identifier: BSD-3-Clause
// Processes that have the job's credential, and have a server do what they may not do themselves: they send what no
// client of ours sends.
#include <services/staging/handle.hpp>
#include <services/staging/process_testing.hpp>

#include <staging_rpc.hpp>

#include <grp.h>

#include <cstdlib>

namespace staging {
namespace {

using nessie::Code;
using nessie::Deadline;
using testing::Daemon;
using testing::kWatchdog;

constexpr uid_t kNobody = 65534;
constexpr gid_t kGroup = 4242;  ///< of those who may open the file

/// From root to a user who is in these groups besides; who is not root stays who he is.
void become_nobody(std::vector<gid_t> groups) {
  if (::geteuid() != 0) return;
  if (::setgroups(groups.size(), groups.data()) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(126);
}

/// What a server says to who sends it these bytes.
Code send(const std::string &url, nssi::OpCode op, const std::vector<std::byte> &args) {
  nssi::RuntimeOptions options;
  options.endpoint.listen = false;
  auto runtime = nssi::Runtime::open(options);
  if (!runtime.ok()) return runtime.code();
  const auto peer = (*runtime)->connect(url, Deadline::in(kWatchdog));
  if (!peer.ok()) return peer.code();
  auto call = (*runtime)->call({*peer, Op::kInterface, 0}, op, args, {});
  return call.wait().code();
}

class StagingRights : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "rights-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    std::filesystem::permissions(folder_, std::filesystem::perms::all);
    path_ = folder_ + "/private.nc";
    std::ofstream(path_) << "CDF\1" << std::string(28, '\0');
    ::setenv("NESSIE_CREDENTIAL", nessie::Credential::generate().to_hex().c_str(), 1);
  }
  void TearDown() override {
    daemon_.reset();
    for (const auto *name : {"NESSIE_CREDENTIAL", "NESSIE_NNTI_ENCRYPT"}) ::unsetenv(name);
    std::filesystem::remove_all(folder_);
  }

  /// A server that may open the file, and a process that may not, unless the tests run as somebody else than root.
  void start_server() {
    if (::geteuid() == 0) { ASSERT_EQ(::chown(path_.c_str(), 0, kGroup), 0); }
    std::filesystem::permissions(path_, std::filesystem::perms(0660));
    daemon_ = std::make_unique<Daemon>(folder_, 0, 1, std::vector<std::string>{}, [] { become_nobody({kGroup}); });
  }
  Code send_as_stranger(nssi::OpCode op, const std::function<std::vector<std::byte>()> &args) {
    const auto url = daemon_->url();
    const pid_t pid = ::fork();
    if (pid == 0) {
      become_nobody({});
      ::_exit(static_cast<int>(send(url, op, args())));
    }
    const int status = testing::wait_for_change(pid, 0);
    EXPECT_TRUE(status != -1 && WIFEXITED(status)) << status;
    return static_cast<Code>(WEXITSTATUS(status));
  }

  std::string folder_, path_;
  std::unique_ptr<Daemon> daemon_;
};

/// All that can be known of a file without opening it.
FileHandle seen_from_outside(const std::string &path) {
  return describe_handle(nessie::Fd(::open(path.c_str(), O_PATH | O_CLOEXEC)).get());
}

TEST_F(StagingRights, AProcessOfThisNodeHasNothingOpenedByItsName_ThoughItsConnectionIsSealed) {
  for (const auto *encrypt : {"off", "all"}) {
    ::setenv("NESSIE_NNTI_ENCRYPT", encrypt, 1);
    start_server();
    for (const auto op : {Op::open, Op::hold})
      EXPECT_EQ(send_as_stranger(op,
                                 [&] {
                                   return xdr::encode(OpenArgs{1, path_, 0, {}, seen_from_outside(path_)});
                                 }),
                Code::kRefused)
          << encrypt;
    EXPECT_EQ(send_as_stranger(Op::create,
                               [&] {
                                 return xdr::encode(CreateArgs{2, path_, 0, {}, seen_from_outside(path_)});
                               }),
              Code::kRefused)
        << encrypt;
    EXPECT_EQ(std::filesystem::file_size(path_), 32u);
    daemon_.reset();
    std::filesystem::remove(folder_ + "/server.0.url");
  }
}

/// As of a client that says which process it is: there is no place for that.
struct HelloOfAnother {
  HelloArgs args;
  std::int64_t process = 0;
  template <class A> void xdr(A &a) { a(args, process); }
};

TEST_F(StagingRights, NobodyClaimsToBeAnotherProcess) {
  start_server();
  EXPECT_EQ(send_as_stranger(Op::hello, [] { return xdr::encode(HelloArgs{Op::kVersion, {}}); }), Code::kOk);
  EXPECT_EQ(send_as_stranger(Op::hello,
                             [] {
                               return xdr::encode(HelloOfAnother{{Op::kVersion, {}}, ::getppid()});
                             }),
            Code::kBadMessage);
}

}  // namespace
}  // namespace staging
