! SPDX-License-Identifier: BSD-3-Clause
! Writes a stream: in each step an array, of which its readers, in any language, take what they want. See reader.f90.
program writer
  use, intrinsic :: iso_c_binding
  use nessie_streams
  implicit none
  integer, parameter :: nx = 64, ny = 48
  real(c_double) :: field(nx, ny)   ! field(x, y) is T[y][x] in C
  type(stream_t) :: out
  integer(c_int32_t) :: state
  integer :: step, x, y

  call demand(out%open_writer('flow'))
  call demand(out%define('T', stream_double, shape(field)))
  call demand(out%set_attribute('units', 'K', variable='T'))
  do step = 0, 2
    call demand(out%begin_step(state, timeout_ms=60000))   ! waits until the servers have room
    do concurrent (x = 1:nx, y = 1:ny)
      field(x, y) = 100 * step + (y - 1) + 0.01d0 * (x - 1)
    end do
    call demand(out%put('T', field(:, :20)))                ! of several ranks, each puts its boxes
    call demand(out%put('T', field(:, 21:), start=[1, 21]))
    call demand(out%end_step(timeout_ms=60000))
  end do
  call demand(out%close())

contains

  ! Ends the program unless all went well.
  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(a)', status%message
    stop 1
  end subroutine
end program
