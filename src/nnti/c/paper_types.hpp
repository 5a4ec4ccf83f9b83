// SPDX-License-Identifier: BSD-3-Clause
// The types of the paper's C interface (nnti.h, nssi.h) under names of our own, for all C++ that implements it: to be
// included before those headers. Trios 12 has other types of the same names, and its interface may be in the same
// program: instances of one template for both, such as std::vector<nssi_request>, would be taken for one.
#pragma once

#define NNTI_buf_ops_t nessie_paper_buf_ops_t
#define NNTI_buffer_t nessie_paper_buffer_t
#define NNTI_datatype_t nessie_paper_datatype_t
#define NNTI_peer_t nessie_paper_peer_t
#define NNTI_remote_addr_t nessie_paper_remote_addr_t
#define NNTI_remote_process_t nessie_paper_remote_process_t
#define NNTI_result_t nessie_paper_result_t
#define NNTI_status_t nessie_paper_status_t
#define NNTI_transport_id_t nessie_paper_transport_id_t
#define NNTI_transport_t nessie_paper_transport_t
#define nssi_request nessie_paper_request
#define nssi_request_status nessie_paper_request_status
#define nssi_return_codes nessie_paper_return_codes
#define nssi_rpc_transport nessie_paper_rpc_transport
#define nssi_service nessie_paper_service
#define nssi_svc_op nessie_paper_svc_op
