# SPDX-License-Identifier: BSD-3-Clause
# The engine: buffers, work requests, completion queues, threads.
target_sources(nessie_nnti PRIVATE
  engine/access.cpp engine/arrivals.cpp engine/buffers.cpp engine/completions.cpp engine/context.cpp engine/crew.cpp
  engine/engine.cpp engine/operations.cpp engine/peers.cpp engine/queue.cpp engine/rendezvous.cpp
  engine/rendezvous_settings.cpp engine/measuring.cpp)
set_source_files_properties(engine/engine.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)   # together with others GCC 12 warns of what is not so

nessie_test(nnti_engine_test
  SOURCES engine/operations_test.cpp engine/waiting_test.cpp conformance/conformance.cpp
  LIBS nessie_nnti
  TIMEOUT 300
  LABELS nnti)

nessie_test(nnti_rendezvous_test
  SOURCES engine/rendezvous_test.cpp conformance/conformance.cpp
  LIBS nessie_nnti
  TIMEOUT 300
  LABELS nnti)

nessie_test(nnti_killed_test
  SOURCES engine/killed_test.cpp conformance/conformance.cpp
  LIBS nessie_nnti
  TIMEOUT 300
  LABELS nnti)

nessie_test(nnti_engine_fuzz_test SOURCES engine/fuzz/fuzz_test.cpp engine/fuzz/hear_peer.cpp LIBS nessie_nnti LABELS nnti)
nessie_fuzz(nnti_hear_peer_fuzz SOURCES engine/fuzz/hear_peer_fuzz.cpp engine/fuzz/hear_peer.cpp LIBS nessie_nnti)
