! SPDX-License-Identifier: BSD-3-Clause
! The outer half of the ring of core.c. Its arrays are (radius, angle) here and [angle][radius] there: in memory, and so in
! the stream, that is the same.
program edge
  use, intrinsic :: iso_c_binding
  use mpi
  use nessie_streams
  implicit none
  integer, parameter :: steps = 5, angles = 24, radii = 16, time_ms = 60000
  real(c_double) :: u(radii, angles), beyond(angles), total, all
  type(stream_t) :: out, in
  integer :: rank, ranks, start, count, step, i, failed

  call MPI_Init(failed)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, failed)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, failed)
  start = angles * rank / ranks + 1
  count = angles * (rank + 1) / ranks - start + 1
  call demand(out%open_writer('edge', rank, ranks, await_readers=2, timeout_ms=time_ms))
  call demand(out%define('border', stream_double, [angles]))
  call demand(in%open_reader('core', rank, ranks, group=1_c_int64_t, timeout_ms=time_ms))

  u = 0
  do step = 1, steps
    call exchange()
    do i = 1, count
      call diffuse(u(:, i), beyond(i))
    end do
  end do
  call demand(out%close(time_ms))
  call demand(in%close(time_ms))

  total = sum(u)
  call MPI_Reduce(total, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, failed)
  if (rank == 0) print '(a, f0.3)', 'edge has ', all
  call MPI_Finalize(failed)

contains

  ! What lies beyond the border of this side, after both have said it.
  subroutine exchange()
    call begin(out)
    call demand(out%put('border', u(1, :count), start=[start]))   ! a row of u: its elements do not lie together
    call demand(out%end_step(time_ms))
    call begin(in)
    call demand(in%get('border', beyond(:count), start=[start], timeout_ms=time_ms))
    call demand(in%end_step())
  end subroutine

  subroutine diffuse(ring, inwards)
    real(c_double), intent(inout) :: ring(radii)
    real(c_double), intent(in) :: inwards
    ring = ring + 0.25d0 * ([inwards, ring(:radii - 1)] - 2 * ring + [ring(2:), ring(radii)])
  end subroutine

  subroutine begin(stream)
    type(stream_t), intent(in) :: stream
    integer(c_int32_t) :: state
    call demand(stream%begin_step(state, time_ms))
    if (state /= stream_step_ok) call demand(nessie_error(nessie_timed_out, 'the other side is not there'))
  end subroutine

  ! Ends the program unless all went well.
  subroutine demand(status)
    type(nessie_status), intent(in) :: status
    if (status%ok()) return
    print '(2a)', 'edge: ', status%message
    call MPI_Abort(MPI_COMM_WORLD, 1, failed)
  end subroutine
end program
