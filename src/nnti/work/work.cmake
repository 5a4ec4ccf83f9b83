# SPDX-License-Identifier: BSD-3-Clause
# The engine: buffers, work requests, completion queues, threads.
target_sources(nessie_nnti PRIVATE
  work/access.cpp work/arrivals.cpp work/buffers.cpp work/completions.cpp work/context.cpp work/crew.cpp
  work/context_impl.cpp work/operations.cpp work/peers.cpp work/queue.cpp work/large_messages.cpp
  work/rendezvous.cpp work/measuring.cpp)
set_source_files_properties(work/context_impl.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)   # together with others GCC 12 warns of what is not so

nessie_test(nnti_engine_test
  SOURCES work/operations_test.cpp work/waiting_test.cpp conformance/conformance.cpp
  LIBS nessie_nnti
  TIMEOUT 300
  LABELS nnti)

nessie_test(nnti_rendezvous_test
  SOURCES work/rendezvous_test.cpp conformance/conformance.cpp
  LIBS nessie_nnti
  TIMEOUT 300
  LABELS nnti)

nessie_test(nnti_killed_test
  SOURCES work/killed_test.cpp conformance/conformance.cpp
  LIBS nessie_nnti
  TIMEOUT 300
  LABELS nnti)

nessie_fuzz(nnti_hear_peer_fuzz SOURCES work/hear_peer_fuzz.cpp LIBS nessie_nnti MUTANTS 4000 LABELS nnti)
