// SPDX-License-Identifier: BSD-3-Clause
// Who may call what: operations for operators, and callers who prove to be one, or fail to.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>
#include <nssi/wire/wire.hpp>

#include <atomic>
#include <thread>

namespace nssi::testing {
namespace {

using std::chrono::seconds;

enum RoleOp : OpCode { kForOperators = 200, kWhoAmI };

RuntimeOptions with(const std::optional<nessie::Credential> &operators, bool listen, const std::string &transport) {
  auto options = options_for(transport, listen);
  options.operators = operators;
  return options;
}

class NssiRoles : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
  }
  void start(const std::optional<nessie::Credential> &operators) {
    server_ = std::make_unique<ServiceThread>(with(operators, true, GetParam()), [](Runtime &runtime) {
      Operation restricted{kInterface, 0, kForOperators, "restricted", HandlerKind::kShort, answer};
      restricted.role = Role::kOperator;
      (void)runtime.add_operation(std::move(restricted));
      (void)runtime.add_operation({kInterface, 0, kWhoAmI, "who", HandlerKind::kFiber, answer});
    });
  }
  /// The role, and who it is.
  static void answer(Request &r) {
    Bytes result{r.caller_identity().begin(), r.caller_identity().end()};
    result.push_back(static_cast<std::byte>(r.role()));
    (void)r.reply(result);
  }
  std::unique_ptr<Runtime> client(const std::optional<nessie::Credential> &operators) {
    return open_runtime(with(operators, false, GetParam()));
  }
  Call ask(Runtime &runtime, OpCode op) {
    auto peer = runtime.connect(server_->runtime->url(), Deadline::in(seconds(20)));
    EXPECT_TRUE(peer.ok());
    return runtime.call(at(*peer), op, {});
  }

  const nessie::Credential secret_ = nessie::Credential::generate();
  std::unique_ptr<ServiceThread> server_;
};

TEST_P(NssiRoles, AnOperatorMayCallWhatUsersMayNot) {
  start(secret_);
  auto user = client({}), op = client(secret_);
  auto refused = ask(*user, kForOperators).wait();
  ASSERT_EQ(refused.code(), Code::kRefused);
  EXPECT_NE(refused.error().message.find("restricted"), std::string::npos);
  EXPECT_TRUE(ask(*op, kForOperators).wait().ok());
}

TEST_P(NssiRoles, AHandlerSeesWhoCalls) {
  start(secret_);
  auto user = client({}), op = client(secret_);
  auto as_user = ask(*user, kWhoAmI), again = ask(*user, kWhoAmI), as_operator = ask(*op, kWhoAmI);
  for (auto *call : {&as_user, &again, &as_operator}) ASSERT_TRUE(call->wait().ok());
  EXPECT_EQ(as_user.view().back(), std::byte{0});
  EXPECT_EQ(as_operator.view().back(), std::byte{1});
  EXPECT_EQ(as_user.result(), again.result()) << "the same process, over another connection";
  EXPECT_NE(as_user.result(), as_operator.result());
}

TEST_P(NssiRoles, AnotherSecretProvesNothing) {
  start(secret_);
  auto stranger = client(nessie::Credential::generate());
  EXPECT_EQ(ask(*stranger, kForOperators).wait().code(), Code::kRefused);
  EXPECT_TRUE(ask(*stranger, kWhoAmI).wait().ok()) << "a user's operations are not affected";
}

TEST_P(NssiRoles, WithoutASecretNobodyIsAnOperator) {
  start({});
  EXPECT_EQ(ask(*client(secret_), kForOperators).wait().code(), Code::kRefused);
  EXPECT_EQ(ask(*client({}), kForOperators).wait().code(), Code::kRefused);
}

INSTANTIATE_TEST_SUITE_P(Transports, NssiRoles, ::testing::Values("inproc", "shm", "ofi"),
                         [](const auto &info) { return info.param; });

TEST(NssiRoleSettings, TheConfigurationMakesAnOperationTheOperators) {
  const auto secret = nessie::Credential::generate();
  auto options = options_for("inproc", true);
  options.endpoint.config.set("operator_credential", secret.to_hex());
  options.endpoint.config.set("nssi.op.test2.role", "operator");
  ServiceThread server(std::move(options));
  auto user = open_runtime(options_for("inproc", false));
  auto as_operator = options_for("inproc", false);
  as_operator.endpoint.config.set("operator_credential", secret.to_hex());
  auto op = open_runtime(std::move(as_operator));
  const auto of_user = *user->connect(server.runtime->url(), Deadline::in(seconds(20)));
  const auto of_op = *op->connect(server.runtime->url(), Deadline::in(seconds(20)));
  EXPECT_EQ(user->call(at(of_user), kNoop, {}).wait().code(), Code::kRefused);
  EXPECT_TRUE(op->call(at(of_op), kNoop, {}).wait().ok());
  auto bad = options_for("inproc", true);
  bad.endpoint.config.set("operator_credential", "secret");
  EXPECT_EQ(Runtime::open(std::move(bad)).code(), Code::kInvalidArgument);
}

/// Says that it is another process's session, and repeats what that has proved.
class Eavesdropper final : public nnti::EventSink {
 public:
  Eavesdropper(const std::string &url, const nessie::Credential &operators) {
    endpoint_ = *nnti::Endpoint::open(options_for("inproc", false).endpoint, *this);
    first_ = *endpoint_->connect(url, Deadline::in(seconds(20)));
    second_ = *endpoint_->connect(url, Deadline::in(seconds(20)));
    for (auto peer : {first_, second_}) (void)endpoint_->send(peer, xdr::encode(wire::Hello{}));
    EXPECT_TRUE(eventually([&] { return endpoint_->progress(), challenges_.size() == 2; }));
    const wire::RoleProof proof{
        {wire::Kind::kProof, 0},
        url,
        operators.prove(wire::role_of_operator(url), wire::SessionId{}, challenges_[first_.value])};
    for (auto peer : {first_, second_}) (void)endpoint_->send(peer, xdr::encode(proof));
  }
  /// What a request for operators only is answered with.
  std::optional<Code> ask(PeerId peer) {
    answer_.reset();
    wire::Request request;
    request.prefix.id = ++uses_ << 32;
    request.interface = kInterface;
    request.op = kNoop;
    (void)endpoint_->send(peer, xdr::encode(request));
    (void)eventually([&] { return endpoint_->progress(), answer_.has_value(); });
    return answer_;
  }
  PeerId first() const { return first_; }
  PeerId second() const { return second_; }

 private:
  void on_message(PeerId from, std::span<const std::byte> message) override {
    if (const auto welcome = xdr::decode<wire::Welcome>(message); welcome.ok())
      challenges_[from.value] = welcome->challenge;
    wire::Result result;
    if (wire::decode_result(message, result).ok())
      answer_ = result.failure ? static_cast<Code>(result.failure->code) : Code::kOk;
  }
  void on_peer_lost(PeerId, const Error &) override {}

  std::unique_ptr<nnti::Endpoint> endpoint_;
  PeerId first_, second_;
  std::map<std::uint64_t, nessie::Nonce> challenges_;
  std::optional<Code> answer_;
  std::uint64_t uses_ = 0;
};

TEST(NssiRoleProof, HoldsForTheConnectionThatItWasMadeFor) {
  const auto secret = nessie::Credential::generate();
  auto options = with(secret, true, "inproc");
  options.endpoint.config.set("nssi.op.test2.role", "operator");
  ServiceThread server(std::move(options));
  Eavesdropper eavesdropper(server.runtime->url(), secret);
  EXPECT_EQ(eavesdropper.ask(eavesdropper.first()), Code::kOk);
  EXPECT_EQ(eavesdropper.ask(eavesdropper.second()), Code::kRefused);
}

/// A service that lies: all that its callers say it passes on to another one, and the answers back.
class Relay final : public nnti::EventSink {
 public:
  explicit Relay(const std::string &service_url) {
    endpoint_ = *nnti::Endpoint::open(options_for("inproc", true).endpoint, *this);
    service_ = *endpoint_->connect(service_url, Deadline::in(seconds(20)));
    thread_ = std::thread([this] {
      while (!stop_.load()) endpoint_->progress();
    });
  }
  ~Relay() override {
    stop_ = true;
    thread_.join();
  }
  const std::string &url() const { return endpoint_->url(); }

 private:
  void on_message(PeerId from, std::span<const std::byte> message) override {
    if (from != service_) caller_ = from;
    (void)endpoint_->send(from == service_ ? caller_ : service_, message);
  }
  void on_peer_lost(PeerId, const Error &) override {}

  std::unique_ptr<nnti::Endpoint> endpoint_;
  PeerId service_, caller_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(NssiRoleProof, HoldsForTheServiceThatTheOperatorConnectedTo) {
  const auto secret = nessie::Credential::generate();
  auto options = with(secret, true, "inproc");
  options.endpoint.config.set("nssi.op.test2.role", "operator");
  ServiceThread server(std::move(options));
  Relay relay(server.runtime->url());
  auto op = open_runtime(with(secret, false, "inproc"));
  const auto real = *op->connect(server.runtime->url(), Deadline::in(seconds(20)));
  const auto lies = *op->connect(relay.url(), Deadline::in(seconds(20)));
  EXPECT_TRUE(op->call(at(real), kNoop, {}).wait().ok());
  EXPECT_TRUE(op->call(at(lies), kEcho, {}).wait().ok()) << "what is for users is passed on";
  EXPECT_EQ(op->call(at(lies), kNoop, {}).wait().code(), Code::kRefused);
}

TEST(NssiRoleProof, HoldsOnlyIfAllThatTheOperatorConnectedToIsTheService) {
  const auto secret = nessie::Credential::generate();
  auto options = with(secret, true, "inproc");
  options.endpoint.config.set("nssi.op.test2.role", "operator");
  ServiceThread server(std::move(options));
  auto op = open_runtime(with(secret, false, "inproc"));
  const auto either = op->connect(server.runtime->url() + ";inproc://elsewhere", Deadline::in(seconds(20)));
  ASSERT_TRUE(either.ok()) << either.error().to_string();
  EXPECT_EQ(op->call(at(*either), kNoop, {}).wait().code(), Code::kRefused);
}

}  // namespace
}  // namespace nssi::testing
