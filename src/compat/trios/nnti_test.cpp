// SPDX-License-Identifier: BSD-3-Clause
// Trios' interface from C++: handles as bytes, misuse, printing; and its logger, timer, threads and traces.

#include <Trios_nnti.h>
#include <Trios_nnti_fprint_types.h>
#include <Trios_signal.h>
#include <Trios_timer.h>
#include <Trios_trace.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

class Trios : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(NNTI_init(NNTI_TRANSPORT_INPROC, nullptr, &transport), NNTI_OK); }
  void TearDown() override { NNTI_fini(&transport); }

  std::vector<char> pack(void *handle) {
    uint64_t size = 0;
    EXPECT_EQ(NNTI_dt_sizeof(&transport, handle, &size), NNTI_OK) << nnti_last_error();
    std::vector<char> bytes(size);
    EXPECT_EQ(NNTI_dt_pack(&transport, handle, bytes.data(), size), NNTI_OK) << nnti_last_error();
    return bytes;
  }
  NNTI_buffer_t allocate(NNTI_buf_ops_t ops, uint64_t size = 64, uint64_t count = 1) {
    NNTI_buffer_t buffer{};
    EXPECT_EQ(NNTI_alloc(&transport, size, count, ops, &buffer), NNTI_OK) << nnti_last_error();
    return buffer;
  }

  NNTI_transport_t transport{};
};

TEST_F(Trios, NumbersAreThoseOfTrios) {
  EXPECT_EQ(NNTI_TRANSPORT_MPI, 6);
  EXPECT_EQ(NNTI_TRANSPORT_LOCAL, 7);
  EXPECT_EQ(NNTI_EENCODE, 1018);
  EXPECT_EQ(NNTI_SEND_SRC, 17);
  EXPECT_EQ(NNTI_RECV_DST, 24);
  EXPECT_EQ(NNTI_RECV_QUEUE, 64);
  EXPECT_STREQ(nnti_err_str(NNTI_EINTR), "NNTI_EINTR");
  EXPECT_STREQ(nnti_err_str(7), "unknown NNTI result");
}

TEST_F(Trios, InitialisingTwiceIsOnce) {
  NNTI_transport_t again{};
  ASSERT_EQ(NNTI_init(NNTI_TRANSPORT_INPROC, nullptr, &again), NNTI_OK);
  EXPECT_EQ(again.me.peer.instance, transport.me.peer.instance);
  ASSERT_EQ(NNTI_fini(&again), NNTI_OK);
  EXPECT_EQ(NNTI_fini(&transport), NNTI_ENOTINIT);
}

TEST_F(Trios, TransportsThatDoNotExistAreRefused_WithTheListOfThoseThatDo) {
  NNTI_transport_t other{};
  EXPECT_EQ(NNTI_init(NNTI_TRANSPORT_IB, nullptr, &other), NNTI_ENOTSUP);
  EXPECT_NE(std::string(nnti_last_error()).find("inproc, shm"), std::string::npos) << nnti_last_error();
  EXPECT_EQ(NNTI_init(NNTI_TRANSPORT_NULL, nullptr, &other), NNTI_EINVAL);
  EXPECT_EQ(NNTI_init(static_cast<NNTI_transport_id_t>(99), nullptr, &other), NNTI_EINVAL);
  EXPECT_EQ(NNTI_init(NNTI_TRANSPORT_SHM, "no url", &other), NNTI_EINVAL);
  EXPECT_EQ(NNTI_init(NNTI_TRANSPORT_SHM, "carrier-pigeon://roof", &other), NNTI_ENOTSUP);
  EXPECT_EQ(other.datatype, 0);
  ASSERT_EQ(NNTI_init(NNTI_TRANSPORT_SHM, "ptl://-1,128", &other), NNTI_OK) << nnti_last_error();
  EXPECT_EQ(NNTI_fini(&other), NNTI_OK);
}

TEST_F(Trios, HandlesSurvivePacking) {
  char memory[100];
  char *pieces[] = {memory + 50, memory};
  const uint64_t lengths[] = {20, 30};
  NNTI_buffer_t buffer{}, copy{};
  ASSERT_EQ(NNTI_register_segments(&transport, pieces, lengths, 2, NNTI_GET_SRC, &buffer), NNTI_OK);
  auto bytes = pack(&buffer);
  ASSERT_EQ(NNTI_dt_unpack(&transport, &copy, bytes.data(), bytes.size()), NNTI_OK) << nnti_last_error();
  EXPECT_STREQ(copy.buffer_owner.url, transport.me.url);
  EXPECT_EQ(copy.payload_size, 50u);
  EXPECT_EQ(copy.ops, NNTI_GET_SRC);
  EXPECT_EQ(copy.transport_private, buffer.transport_private);
  ASSERT_EQ(copy.buffer_segments.NNTI_remote_addr_array_t_len, 2u);
  EXPECT_EQ(copy.buffer_segments.NNTI_remote_addr_array_t_val[1].size, 30u);
  EXPECT_NE(copy.buffer_segments.NNTI_remote_addr_array_t_val, buffer.buffer_segments.NNTI_remote_addr_array_t_val);
  EXPECT_EQ(NNTI_dt_free(&transport, &copy), NNTI_OK);
  EXPECT_EQ(NNTI_dt_free(&transport, &buffer), NNTI_OK);  // still registered: nothing is freed
  EXPECT_EQ(buffer.buffer_segments.NNTI_remote_addr_array_t_val[0].size, 20u);
  const NNTI_buffer_t stale = buffer;
  EXPECT_EQ(NNTI_unregister_memory(&buffer), NNTI_OK);
  uint64_t size = 7;
  NNTI_buffer_t dead = stale;
  EXPECT_EQ(NNTI_dt_sizeof(&transport, &dead, &size), NNTI_ENOENT);
  EXPECT_EQ(size, 7u);
}

TEST_F(Trios, UnpackingTakesNoOtherKindThanTheOneThatIsSet_AndNoTruncation) {
  auto bytes = pack(&transport.me);
  NNTI_peer_t peer{};
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(NNTI_dt_unpack(&transport, &peer, bytes.data(), size), NNTI_EDECODE) << size;
  EXPECT_EQ(peer.datatype, 0);
  ASSERT_EQ(NNTI_dt_unpack(&transport, &peer, bytes.data(), bytes.size()), NNTI_OK);
  EXPECT_STREQ(peer.url, transport.me.url);
  NNTI_status_t status{};
  status.datatype = NNTI_dt_status;
  EXPECT_EQ(NNTI_dt_unpack(&transport, &status, bytes.data(), bytes.size()), NNTI_EDECODE);
  EXPECT_EQ(NNTI_dt_pack(&transport, &peer, bytes.data(), bytes.size() - 1), NNTI_EMSGSIZE);
  NNTI_peer_t unset{};
  uint64_t size = 0;
  EXPECT_EQ(NNTI_dt_sizeof(&transport, &unset, &size), NNTI_EINVAL);
}

TEST_F(Trios, XdrProceduresAreOnesThatRpcgensOutputCanCall) {
  auto buffer = allocate(NNTI_PUT_DST);
  const xdrproc_t procedure = reinterpret_cast<xdrproc_t>(xdr_NNTI_buffer_t);
  std::vector<char> bytes(xdr_sizeof(procedure, &buffer));
  XDR xdr;
  xdrmem_create(&xdr, bytes.data(), static_cast<u_int>(bytes.size()), XDR_ENCODE);
  ASSERT_TRUE(xdr_NNTI_buffer_t(&xdr, &buffer));
  NNTI_buffer_t copy{};
  xdrmem_create(&xdr, bytes.data(), static_cast<u_int>(bytes.size()), XDR_DECODE);
  ASSERT_TRUE(xdr_NNTI_buffer_t(&xdr, &copy));
  EXPECT_EQ(copy.transport_private, buffer.transport_private);
  xdr_free(procedure, &copy);
  EXPECT_EQ(copy.buffer_segments.NNTI_remote_addr_array_t_val, nullptr);
}

TEST_F(Trios, SegmentsHaveTheFieldsOfEachOldTransport_And0InThem) {
  const auto buffer = allocate(NNTI_PUT_DST);
  const auto &addr = buffer.buffer_segments.NNTI_remote_addr_array_t_val[0].NNTI_remote_addr_t_u;
  EXPECT_EQ(addr.ib.ack_buf + addr.ib.ack_key + addr.ib.ack_size, 0u);
  EXPECT_EQ(addr.gni.mem_hdl.qword1 + addr.gni.wc_addr + addr.gni.wc_mem_hdl.qword2, 0u);
  EXPECT_EQ(addr.gni.type, NNTI_GNI_RDMA_INITIATOR);
  EXPECT_EQ(addr.bgpdcmf.mem_hdl.word0 + addr.bgpdcmf.wc_mem_hdl.word3, 0u);
  EXPECT_EQ(addr.bgqpami.type, NNTI_PAMI_REQUEST_BUFFER);
  EXPECT_EQ(addr.mpi.cmd_tag + addr.mpi.get_data_tag + addr.mpi.put_data_tag, 0u);
}

TEST_F(Trios, MisuseHasACode_AndChangesNothing) {
  auto source = allocate(NNTI_PUT_SRC), target = allocate(NNTI_PUT_DST), queue = allocate(NNTI_RECV_QUEUE, 8, 2);
  NNTI_work_request_t wr{}, made{};
  NNTI_status_t status{};
  std::uint32_t which = 77;
  char byte = 0;
  NNTI_buffer_t none{};
  EXPECT_EQ(NNTI_register_memory(&transport, &byte, 1, 1, NNTI_RECV_QUEUE, &none), NNTI_EINVAL);
  EXPECT_EQ(NNTI_register_memory(&transport, nullptr, 1, 1, NNTI_PUT_SRC, &none), NNTI_EINVAL);
  EXPECT_EQ(NNTI_put(&source, 0, 65, &target, 0, &wr), NNTI_EINVAL);
  EXPECT_EQ(NNTI_put(&target, 0, 1, &target, 0, &wr), NNTI_EPERM);
  EXPECT_EQ(NNTI_put(&source, 0, 1, &target, 0, nullptr), NNTI_EINVAL);
  EXPECT_EQ(NNTI_get(&target, 0, 1, &source, 0, &wr), NNTI_EPERM);
  EXPECT_EQ(NNTI_send(&transport.me, &source, &queue, &wr), NNTI_EPEERLOST);  // nobody is connected to himself
  EXPECT_EQ(NNTI_wait(&wr, 0, &status), NNTI_EINVAL);
  EXPECT_EQ(wr.datatype, 0);
  ASSERT_EQ(NNTI_create_work_request(&queue, &made), NNTI_OK);
  EXPECT_EQ(NNTI_wait(&made, -2, &status), NNTI_EINVAL);
  EXPECT_EQ(NNTI_wait(&made, 0, nullptr), NNTI_EINVAL);
  NNTI_work_request_t *twice[] = {&made, &made};
  EXPECT_EQ(NNTI_waitany(twice, 2, 0, &which, &status), NNTI_EINVAL);
  EXPECT_EQ(which, 77u);
  EXPECT_EQ(NNTI_destroy_work_request(&made), NNTI_OK);
  NNTI_buffer_t dead = source;
  ASSERT_EQ(NNTI_free(&source), NNTI_OK);
  EXPECT_EQ(NNTI_free(&dead), NNTI_ENOENT);
  EXPECT_EQ(NNTI_create_work_request(&dead, &made), NNTI_ENOENT);
  NNTI_peer_t peer{};
  EXPECT_EQ(NNTI_connect(&transport, "no url", 100, &peer), NNTI_EINVAL);
  EXPECT_EQ(NNTI_connect(&transport, "carrier-pigeon://roof", 100, &peer), NNTI_ENOTSUP);
  EXPECT_EQ(NNTI_connect(&transport, "inproc://nobody-at-all", 100, &peer), NNTI_ENOTSUP) << nnti_last_error();
  EXPECT_EQ(NNTI_connect(&transport, "inproc://nobody-at-all", -3, &peer), NNTI_EINVAL);
  EXPECT_EQ(NNTI_disconnect(&transport, &peer), NNTI_ENOENT);
}

TEST_F(Trios, FunctionsHaveAddressesOfTheirOwn) {
  NNTI_result_t (*interrupt)(const NNTI_transport_t *) = NNTI_interrupt;
  EXPECT_EQ(interrupt(&transport), NNTI_OK);
  auto queue = allocate(NNTI_RECV_QUEUE, 8, 2);
  NNTI_work_request_t wr{};
  NNTI_status_t status{};
  ASSERT_EQ(NNTI_create_work_request(&queue, &wr), NNTI_OK);
  EXPECT_EQ(NNTI_wait(&wr, -1, &status), NNTI_EINTR);
}

TEST_F(Trios, AProcessSendsToItself_AndWaitsWithACopyOfItsWorkRequest) {
  NNTI_peer_t self{};
  ASSERT_EQ(NNTI_connect(&transport, transport.me.url, 20'000, &self), NNTI_OK) << nnti_last_error();
  EXPECT_EQ(self.peer.instance, transport.me.peer.instance);
  auto queue = allocate(NNTI_RECV_QUEUE, 64, 2), message = allocate(NNTI_SEND_SRC, 64);
  std::strcpy(NNTI_BUFFER_C_POINTER(&message), "to whom it concerns");
  NNTI_work_request_t made{}, copy{}, sent{};
  NNTI_status_t status{};
  ASSERT_EQ(NNTI_create_work_request(&queue, &made), NNTI_OK);
  auto bytes = pack(&made);
  ASSERT_EQ(NNTI_dt_unpack(&transport, &copy, bytes.data(), bytes.size()), NNTI_OK);
  ASSERT_EQ(NNTI_send(&self, &message, nullptr, &sent), NNTI_OK) << nnti_last_error();
  EXPECT_EQ(NNTI_wait(&sent, 20'000, &status), NNTI_OK);
  ASSERT_EQ(NNTI_wait(&copy, 20'000, &status), NNTI_OK) << nnti_last_error();
  ASSERT_EQ(status.start, queue.payload);
  EXPECT_STREQ(reinterpret_cast<const char *>(status.start + status.offset), "to whom it concerns");
  EXPECT_STREQ(status.src.url, transport.me.url);
  EXPECT_EQ(NNTI_destroy_work_request(&made), NNTI_OK);
  EXPECT_EQ(NNTI_disconnect(&transport, &self), NNTI_OK);
}

TEST_F(Trios, HandlesArePrinted) {
  auto buffer = allocate(NNTI_PUT_DST, 123);
  std::ostringstream out;
  fprint_NNTI_buffer(out, "my_buffer", "LINE", &buffer);
  EXPECT_NE(out.str().find("LINE my_buffer = NNTI_buffer_t {"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("payload_size = 123"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find(transport.me.url), std::string::npos) << out.str();
  char *text = nullptr;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  fprint_NNTI_peer(file, "me", "", &transport.me);
  fprint_NNTI_status(file, "none", nullptr, nullptr);
  fprint_NNTI_remote_addr(file, "first", "", buffer.buffer_segments.NNTI_remote_addr_array_t_val);
  std::fclose(file);
  EXPECT_NE(std::string(text).find("none = NULL"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("size = 123"), std::string::npos) << text;
  std::free(text);
}

// --- support ----------------------------------------------------------------------------------------------------------

std::string contents(const std::string &path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct TemporaryFile {
  TemporaryFile() { close(mkstemp(path.data())); }
  ~TemporaryFile() { unlink(path.c_str()); }
  std::string path = testing::TempDir() + "trios_XXXXXX";
};

TEST(TriosSupport, LoggerWritesWhatItsLevelAllows) {
  TemporaryFile file;
  ASSERT_EQ(logger_init(LOG_INFO, file.path.c_str()), 0);
  log_info(LOG_UNDEFINED, "seen %d", 1);
  log_debug(LOG_UNDEFINED, "not seen");
  log_debug(LOG_ALL, "seen 2");
  log_error(LOG_OFF, "not seen");
  logger_fini();
  logger_set_default_level(LOG_WARN);
  const auto text = contents(file.path);
  EXPECT_NE(text.find("INFO ["), std::string::npos) << text;
  EXPECT_NE(text.find("]:  seen 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("seen 2"), std::string::npos) << text;
  EXPECT_EQ(text.find("not seen"), std::string::npos) << text;
  EXPECT_NE(logger_init(LOG_INFO, "/no/such/directory/file"), 0);
}

TEST(TriosSupport, CountersCountInManyThreads) {
  nthread_counter_t counter = NTHREAD_COUNTER_INITIALIZER;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) nthread_counter_increment(&counter);
    });
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(nthread_counter_read(&counter), 4000);
  EXPECT_EQ(nthread_counter_decrement(&counter), 3999);
  EXPECT_EQ(nthread_counter_set(&counter, 5), 3999);
}

TEST(TriosSupport, WhoWaitsIsWokenByEitherName) {
  nthread_lock_t lock = NTHREAD_LOCK_INITIALIZER;
  nthread_cond_t cond = NTHREAD_COND_INITIALIZER;
  for (auto *wake : {nthread_signal, nthread_broadcast, nthread_cond_signal, nthread_cond_broadcast}) {
    bool is_ready = false;
    std::thread waiter([&] {
      nthread_lock(&lock);
      while (!is_ready) nthread_wait(&cond, &lock);
      nthread_unlock(&lock);
    });
    nthread_lock(&lock);
    is_ready = true;
    EXPECT_EQ(wake(&cond), 0);
    nthread_unlock(&lock);
    waiter.join();
  }
}

TEST(TriosSupport, TimedWaitEndsWhenNobodySignals) {
  nthread_lock_t lock = NTHREAD_LOCK_INITIALIZER;
  nthread_cond_t cond = NTHREAD_COND_INITIALIZER;
  nthread_lock(&lock);
  EXPECT_EQ(nthread_timedwait(&cond, &lock, 5), ETIMEDOUT);
  nthread_unlock(&lock);
}

TEST(TriosSupport, TimersOfDelaysMayBeWrittenEverywhere) {
  double delay = -1;
  trios_start_delay_timer(delay);
  trios_stop_delay_timer(delay);
  trios_log_delay_timer("delay", delay);
#ifdef TRIOS_USE_TIMERS
  EXPECT_GE(delay, 0);
#else
  EXPECT_EQ(delay, -1);
#endif
}

TEST(TriosSupport, TimesAreWritten) {
  EXPECT_EQ(trios_timer_test(), 0);
  EXPECT_GT(::Trios::GetTimeNS(), 0);
  std::ostringstream out;
  ASSERT_EQ(::Trios::WriteTimings(out, "my header", {"open", "write"}, {1.5, 2.25}), 0);
  EXPECT_EQ(out.str(), "% my header\n% 1 open\n% 2 write\n1.5 2.25\n");
}

TEST(TriosSupport, TracesOfEnabledGroupsAreWritten) {
  TemporaryFile file;
  int group = -1, child = -1;
  EXPECT_EQ(trace_set_buffer_size(1 << 20), 0);
  ASSERT_EQ(trace_init(file.path.c_str(), TRACE_DEFAULT_FTYPE), 0);
  ASSERT_EQ(trace_register_group("rpc", &group), 0);
  ASSERT_EQ(trace_register_subgroup("send", group, &child), 0);
  EXPECT_EQ(trace_register_subgroup("lost", 99, &child), -1);
  trace_event(group, 1, 0, "before");
  ASSERT_EQ(trace_enable("rpc"), 0);
  EXPECT_TRUE(tracing_enabled(child));
  trace_event(child, 7, 3, "hello");
  trace_start_interval(group, 3);
  EXPECT_TRUE(trace_end_interval(group, 8, 3, "done"));
  EXPECT_FALSE(trace_end_interval(group, 8, 3, "never begun"));
  trace_inc_count(group, 2, 0, "");
  EXPECT_EQ(trace_get_count(group, 2), 1);
  trace_fini();
  const auto text = contents(file.path);
  EXPECT_EQ(text.find("before"), std::string::npos) << text;
  EXPECT_NE(text.find("send\tevent\t7\t3\t0\thello"), std::string::npos) << text;
  EXPECT_NE(text.find("rpc\tinterval\t8\t3"), std::string::npos) << text;
}

TEST(TriosSupport, ATraceBegunAnewInTheSameFileHasNothingOfTheOldOne) {
  TemporaryFile file;
  int group = -1;
  ASSERT_EQ(trace_register_group("anew", &group), 0);
  ASSERT_EQ(trace_init(file.path.c_str(), TRACE_DEFAULT_FTYPE), 0);
  ASSERT_EQ(trace_enable("anew"), 0);
  trace_event(group, 1, 0, "a line that is longer than the next");
  ASSERT_EQ(trace_reset(file.path.c_str(), TRACE_DEFAULT_FTYPE, "anew"), 0);
  trace_event(group, 2, 0, "short");
  trace_fini();
  const auto text = contents(file.path);
  EXPECT_NE(text.find("anew\tevent\t2\t0\t0\tshort\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("next"), std::string::npos) << text;
}

TEST(TriosSignal, EndsWaits) {
  EXPECT_EXIT(
      {
        NNTI_transport_t transport{};
        NNTI_buffer_t queue{};
        NNTI_work_request_t wr{};
        NNTI_status_t status{};
        trios_install_sighandler();
        NNTI_init(NNTI_TRANSPORT_INPROC, nullptr, &transport);
        NNTI_alloc(&transport, 8, 1, NNTI_RECV_QUEUE, &queue);
        NNTI_create_work_request(&queue, &wr);
        std::thread killer([] { raise(SIGTERM); });
        const auto result = NNTI_wait(&wr, -1, &status);
        killer.join();
        std::_Exit(result == NNTI_ECANCELED && trios_exit_now() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
