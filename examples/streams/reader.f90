! SPDX-License-Identifier: BSD-3-Clause
! Reads all steps of a stream: of each a box, and what the servers compute of it all.
!
!   $ nessie-streams > streams.url &
!   $ build/streams_writer_f90 &
!   $ build/streams_reader_f90
!   step 0: the mean of the box is 11.215 K, the maximum of all 47.63 K
!   step 1: the mean of the box is 111.215 K, the maximum of all 147.63 K
!   step 2: the mean of the box is 211.215 K, the maximum of all 247.63 K
!   $ kill %1; wait
program reader
  use, intrinsic :: iso_c_binding
  use nessie_streams
  implicit none
  real(c_double) :: box(4, 3)   ! box(x, y)
  type(stream_t) :: in
  type(stream_figures_t) :: figures
  character(len=:), allocatable :: units
  integer(c_int32_t) :: state

  call demand(in%open_reader('flow'))
  do
    call demand(in%begin_step(state))
    if (state /= stream_step_ok) exit
    call demand(in%get_attribute('units', units, variable='T'))
    call demand(in%get('T', box, start=[21, 11]))
    call demand(in%figures('T', figures))
    print '(a, i0, a, f0.3, 4a, f0.2, 2a)', 'step ', in%step(), ': the mean of the box is ', sum(box) / size(box), ' ', &
      units, ', ', 'the maximum of all ', figures%maximum, ' ', units
    call demand(in%end_step())
  end do
  if (state == stream_not_yet) stop 'no further step has come'
  call demand(in%close())

contains

  ! Ends the program unless all went well.
  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(a)', status%message
    stop 1
  end subroutine
end program
