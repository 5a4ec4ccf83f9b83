! SPDX-License-Identifier: BSD-3-Clause
! Lends the service of arrays.x an array, which it pulls and pushes as it likes until the call is over.
!
!   $ build/bulk_server_f90 &
!   $ build/bulk_client_f90
!   1000000 elements, their sum 250000250000.0
!   the first is 0.5, the last 500000.0
!   $ kill %1; rm bulk.contact
program client
  use, intrinsic :: iso_c_binding
  use nssi
  use arrays_rpc
  implicit none
  real(c_double), allocatable, target :: array(:)
  type(nssi_runtime) :: runtime
  type(nssi_buffer) :: lent
  type(ARRAYS_ONE_client) :: service
  real(c_double) :: total
  integer(c_int64_t) :: peer
  integer :: i

  call demand(runtime%open(nssi_options(connects_only=.true.)))
  call demand(runtime%connect_to('file:bulk.contact', peer, timeout_ms=10000))
  service = ARRAYS_ONE_client(runtime, peer)

  array = [(real(i, c_double), i = 1, 1000000)]
  ! Nobody reaches it without the description in the request, nor beyond its bounds, nor against its rights.
  call demand(runtime%register_memory(array, nssi_read_write, lent))
  call demand(service%scale(0.5d0, lent, total))
  print '(i0, a, f0.1)', size(array), ' elements, their sum ', total
  print '(a, f3.1, a, f0.1)', 'the first is ', array(1), ', the last ', array(size(array))
  call demand(lent%free())
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
