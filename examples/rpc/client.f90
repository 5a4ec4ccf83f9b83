! SPDX-License-Identifier: BSD-3-Clause
! Calls roots.x: one result, one error that the service tells, one deadline that passes.
!
!   $ build/rpc_server_f90 &
!   $ build/rpc_client_f90
!   the root of 2 is 1.414
!   refused: no root of a negative number: take its absolute
!   the root of 1 is 1.000
!   no answer within 100 ms
!   $ kill %1; rm rpc.contact
program client
  use, intrinsic :: iso_c_binding
  use nssi
  use roots_rpc
  implicit none
  type(nssi_runtime) :: runtime
  type(ROOTS_ONE_client) :: service
  type(nessie_status) :: status
  real(c_double) :: late
  integer(c_int64_t) :: peer

  call demand(runtime%open(nssi_options(connects_only=.true.)))
  call demand(runtime%connect_to('file:rpc.contact', peer, timeout_ms=10000))
  service = ROOTS_ONE_client(runtime, peer)

  call print_root(2d0)
  call print_root(-1d0)
  status = service%root(3d0, 10000, late, timeout_ms=100) ! 30 s if none is given
  if (status%code /= nessie_timed_out) error stop 1
  print '(a)', 'no answer within 100 ms'
  call demand(runtime%close())

contains

  ! Prints the root of a number, or of its absolute if the service refuses it.
  recursive subroutine print_root(number)
    real(c_double), intent(in) :: number
    type(nessie_status) :: status
    real(c_double) :: root
    status = service%root(number, 0, root)
    if (status%code == nessie_invalid_argument) then
      print '(2a)', 'refused: ', status%message
      call print_root(abs(number))
    else
      call demand(status)
      print '(a, i0, a, f5.3)', 'the root of ', nint(number), ' is ', root
    end if
  end subroutine

  ! Ends the program unless all went well.
  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(a)', status%message
    stop 1
  end subroutine
end program
