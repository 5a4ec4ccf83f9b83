! SPDX-License-Identifier: BSD-3-Clause
! Counts with the service of job.toml: counter.cpp, beside Nessie's own staging.
!
!   $ nessied --config job.toml > nessied.url &
!   $ build/counter_client_f90
!   42
!   nobody has counted pears
!   $ kill %1; wait
program client
  use, intrinsic :: iso_c_binding
  use nssi
  use counter_rpc
  implicit none
  type(nssi_runtime) :: runtime
  type(COUNTER_ONE_client) :: counters
  type(nessie_status) :: status
  integer(c_int64_t) :: peer, value

  call demand(runtime%open(nssi_options(connects_only=.true.)))
  call demand(runtime%connect_to('file:job.contact', peer, timeout_ms=10000))
  counters = COUNTER_ONE_client(runtime, peer)

  call demand(counters%add('apples', 2_c_int64_t, value))
  print '(i0)', value
  status = counters%value('pears', value)
  if (status%code == nessie_not_found) print '(a)', status%message
  call demand(runtime%close())

contains

  ! Ends the program unless all went well.
  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(a)', status%message
    stop 1
  end subroutine
end program
