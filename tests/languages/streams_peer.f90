! SPDX-License-Identifier: BSD-3-Clause
! What every language writes to a stream, and reads of it, in Fortran. README.md.
module streams_peer_parts
  use, intrinsic :: iso_c_binding
  use nessie_streams
  implicit none

  integer, parameter :: steps = 3
  integer :: faults = 0

contains

  subroutine expect(is_so, what, step)
    logical, intent(in) :: is_so
    character(len=*), intent(in) :: what
    integer, intent(in) :: step
    if (is_so) return
    print '(a, i0, 2a)', 'step ', step, ': not so: ', what
    faults = faults + 1
  end subroutine

  subroutine demand(status, what)
    type(nessie_status), intent(in) :: status
    character(len=*), intent(in) :: what
    if (status%ok()) return
    print '(4a)', 'error: ', what, ': ', status%message
    stop 1
  end subroutine

  ! Element (j, i) of t_TYPE, from 0 on.
  pure function table(type, step) result(made)
    integer, intent(in) :: type, step
    integer :: made(4, 3), i
    made = reshape([(20 * step + i + type, i = 0, 11)], [4, 3])
  end function

  pure function grid(step) result(made)
    integer, intent(in) :: step
    real(c_double) :: made(6, 5, 4)
    integer :: i, j, k
    do concurrent (i = 0:3, j = 0:4, k = 0:5)
      made(k + 1, j + 1, i + 1) = 1000 * step + 100 * i + 10 * j + k
    end do
  end function

  ! --- writing --------------------------------------------------------------------------------------------------------

  subroutine describe(out)
    type(stream_t), intent(in) :: out
    integer :: i
    character(len=6), parameter :: names(10) = [character(len=6) :: 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', &
      'uint32', 'uint64', 'float', 'double']
    integer(c_int32_t), parameter :: types(10) = [stream_int8, stream_int16, stream_int32, stream_int64, stream_uint8, &
      stream_uint16, stream_uint32, stream_uint64, stream_float, stream_double]
    do i = 1, size(types)
      call demand(out%define('t_' // names(i), types(i), [4, 3]), names(i))
    end do
    call demand(out%define('grid', stream_double, [6, 5, 4]), 'grid')
    call demand(out%define('time', stream_double, [integer ::]), 'time')
    call demand(out%define('names', stream_char, [6, 2]), 'names')
    call demand(out%define('mask', stream_int32, [4], constant=.true.), 'mask')
    call demand(out%define('partial', stream_float, [6_c_int64_t], fill=-1.0), 'partial')
    call demand(out%set_attribute('title', 'of every language'), 'title')
    call demand(out%set_attribute('number', 42), 'number')
    call demand(out%set_attribute('units', 'K', variable='grid'), 'units')
    call demand(out%set_attribute('range', [0d0, 3999d0], variable='grid'), 'range')
  end subroutine

  subroutine put_tables(out, step)
    type(stream_t), intent(in) :: out
    integer, intent(in) :: step
    call demand(out%put('t_int8', int(table(stream_int8, step), c_int8_t)), 'int8')
    call demand(out%put('t_int16', int(table(stream_int16, step), c_int16_t)), 'int16')
    call demand(out%put('t_int32', table(stream_int32, step)), 'int32')
    call demand(out%put('t_int64', int(table(stream_int64, step), c_int64_t)), 'int64')
    call demand(out%put('t_uint8', int(table(stream_uint8, step), c_int8_t)), 'uint8')
    call demand(out%put('t_uint16', int(table(stream_uint16, step), c_int16_t)), 'uint16')
    call demand(out%put('t_uint32', table(stream_uint32, step)), 'uint32')
    call demand(out%put('t_uint64', int(table(stream_uint64, step), c_int64_t)), 'uint64')
    call demand(out%put('t_float', real(table(stream_float, step), c_float)), 'float')
    call demand(out%put('t_double', real(table(stream_double, step), c_double)), 'double')
  end subroutine

  ! A quarter of it is computed where it goes, one is a section, half is lent.
  subroutine put_grid(out, values)
    type(stream_t), intent(in) :: out
    real(c_double), intent(in), target :: values(:, :, :)
    real(c_double), pointer :: memory(:, :, :)
    call demand(out%span('grid', memory, start=[1, 1, 1], count=[6, 5, 1]), 'span')
    memory = values(:, :, 1:1)
    call demand(out%put('grid', values(1:3, :, 2), start=[1, 1, 2]), 'a section')
    call demand(out%put('grid', values(4:, :, 2), start=[4, 1, 2]), 'another section')
    call demand(out%put_lent('grid', values(:, :, 3:4), start=[1_c_int64_t, 1_c_int64_t, 3_c_int64_t]), 'lend')
  end subroutine

  subroutine write_step(out, step)
    type(stream_t), intent(in) :: out
    integer, intent(in) :: step
    integer(c_int32_t) :: state
    integer(c_int64_t) :: i
    real(c_double), target :: values(6, 5, 4)
    character(len=6), parameter :: names(2) = ['first ', 'second']
    values = grid(step)
    call demand(out%begin_step(state), 'begin a step')
    call expect(state == stream_step_ok .and. out%step() == step, 'the number of the step', step)
    call demand(out%define('growing', stream_int64, [step + 1]), 'growing')
    call put_tables(out, step)
    call put_grid(out, values)
    call demand(out%put('time', 0.5d0 * step), 'time')
    call demand(out%put('names', names), 'names')
    if (step == 0) call demand(out%put('mask', [1, 2, 3, 4]), 'mask')
    call demand(out%put('partial', [7.0, 8.0], start=[3]), 'partial')
    call demand(out%put('growing', [(i, i = 0, step)]), 'growing')
    call demand(out%end_step(), 'end a step')
  end subroutine

  subroutine write_stream(name)
    character(len=*), intent(in) :: name
    type(stream_t) :: out
    integer :: step
    call demand(out%open_writer(name), 'open for writing')
    call describe(out)
    do step = 0, steps - 1
      call write_step(out, step)
    end do
    call demand(out%close(), 'close')
    call expect(.not. out%is_open(), 'closed', steps)
  end subroutine

  ! --- reading --------------------------------------------------------------------------------------------------------

  subroutine check_description(in, step)
    type(stream_t), intent(in) :: in
    integer, intent(in) :: step
    type(stream_variable_t) :: it
    type(stream_variable_t), allocatable :: all(:)
    type(stream_attribute_t), allocatable :: attributes(:)
    type(nessie_status) :: status
    character(len=:), allocatable :: text
    integer(c_int32_t) :: number
    real(c_double) :: range(2), one
    call demand(in%variables(all), 'variables')
    call expect(size(all) == 16, 'the number of variables', step)
    call demand(in%find('grid', it), 'find grid')
    call expect(it%type == stream_double .and. all(1)%name /= '' .and. .not. it%has_fill, 'the description', step)
    call expect(size(it%shape) == 3 .and. it%shape(1) == 6 .and. it%shape(3) == 4, 'the shape of grid', step)
    call demand(in%find('growing', it), 'find growing')
    call expect(it%shape(1) == step + 1, 'the shape that grows', step)
    status = in%find('nothing', it)
    call expect(status%code == nessie_not_found, 'a variable that is not there', step)
    call demand(in%attributes(attributes), 'attributes')
    call expect(size(attributes) == 4, 'the number of attributes', step)
    call demand(in%get_attribute('title', text), 'title')
    call expect(text == 'of every language', 'the title', step)
    call demand(in%get_attribute('number', number), 'number')
    call expect(number == 42, 'the number', step)
    call demand(in%get_attribute('units', text, variable='grid'), 'units')
    call expect(text == 'K', 'the units', step)
    call demand(in%get_attribute('range', range, variable='grid'), 'range')
    call expect(all_equal(range, [0d0, 3999d0]), 'the range', step)
    status = in%get_attribute('range', one, variable='grid')
    call expect(status%code == nessie_out_of_range, 'too few elements', step)
    status = in%get_attribute('units', number, variable='grid')
    call expect(status%code == nessie_invalid_argument, 'a text as a number', step)
  end subroutine

  pure logical function all_equal(these, those)
    real(c_double), intent(in) :: these(:), those(:)
    all_equal = all(abs(these - those) < 1d-12)
  end function

  subroutine check_tables(in, step)
    type(stream_t), intent(in) :: in
    integer, intent(in) :: step
    integer(c_int8_t) :: i1(4, 3)
    integer(c_int16_t) :: i2(4, 3)
    integer(c_int32_t) :: i4(4, 3)
    integer(c_int64_t) :: i8(4, 3)
    real(c_float) :: r4(4, 3)
    real(c_double) :: r8(4, 3)
    call demand(in%get('t_int8', i1), 'int8')
    call expect(all(i1 == table(stream_int8, step)), 'int8', step)
    call demand(in%get('t_uint8', i1), 'uint8')
    call expect(all(i1 == table(stream_uint8, step)), 'uint8', step)
    call demand(in%get('t_int16', i2), 'int16')
    call expect(all(i2 == table(stream_int16, step)), 'int16', step)
    call demand(in%get('t_uint16', i2), 'uint16')
    call expect(all(i2 == table(stream_uint16, step)), 'uint16', step)
    call demand(in%get('t_int32', i4), 'int32')
    call expect(all(i4 == table(stream_int32, step)), 'int32', step)
    call demand(in%get('t_uint32', i4), 'uint32')
    call expect(all(i4 == table(stream_uint32, step)), 'uint32', step)
    call demand(in%get('t_int64', i8), 'int64')
    call expect(all(i8 == table(stream_int64, step)), 'int64', step)
    call demand(in%get('t_uint64', i8), 'uint64')
    call expect(all(i8 == table(stream_uint64, step)), 'uint64', step)
    call demand(in%get('t_float', r4), 'float')
    call expect(all(nint(r4) == table(stream_float, step)), 'float', step)
    call demand(in%get('t_double', r8), 'double')
    call expect(all(nint(r8) == table(stream_double, step)), 'double', step)
  end subroutine

  subroutine check_grid(in, step)
    type(stream_t), intent(in) :: in
    integer, intent(in) :: step
    real(c_double) :: wanted(6, 5, 4), got(6, 5, 4), box(2, 2, 2), spread_out(12, 5), plane(6, 5)
    real(c_float) :: other(6, 5, 4)
    type(stream_figures_t) :: figures
    type(nessie_status) :: status
    wanted = grid(step)
    call demand(in%get('grid', got), 'grid')
    call expect(all_equal([got], [wanted]), 'grid', step)
    call demand(in%get('grid', box, start=[4, 3, 2]), 'a box')
    call expect(all_equal([box], [wanted(4:5, 3:4, 2:3)]), 'a box of grid', step)
    spread_out = 0
    call demand(in%get('grid', spread_out(::2, :), start=[1, 1, 2]), 'a plane, spread out')
    plane = spread_out(::2, :)
    call expect(all_equal([plane], [wanted(:, :, 2)]), 'a plane', step)
    plane = spread_out(2::2, :)
    call expect(all_equal([plane], [0 * plane]), 'what is beside it', step)
    call demand(in%figures('grid', figures), 'figures')
    call expect(all_equal([figures%minimum, figures%maximum], [minval(wanted), maxval(wanted)]), 'figures', step)
    call demand(in%figures('grid', figures, start=[2, 1, 1], count=[1, 1, 1]), 'figures of one')
    call expect(figures%elements == 1 .and. all_equal([figures%mean], [wanted(2, 1, 1)]), 'its figures', step)
    status = in%get('grid', box, start=[6, 3, 2])
    call expect(status%code == nessie_out_of_range, 'a box outside', step)
    status = in%get('grid', other)
    call expect(status%code == nessie_invalid_argument, 'another type', step)
    status = in%get('grid', got, count=[6, 5, 3])
    call expect(status%code == nessie_invalid_argument, 'another number of elements', step)
  end subroutine

  subroutine check_others(in, step)
    type(stream_t), intent(in) :: in
    integer, intent(in) :: step
    character(len=6) :: names(2)
    integer(c_int32_t) :: mask(4)
    integer(c_int64_t) :: growing(step + 1)
    real(c_float) :: partial(6)
    real(c_double) :: time
    call demand(in%get('time', time), 'time')
    call expect(all_equal([time], [0.5d0 * step]), 'time', step)
    call demand(in%get('names', names), 'names')
    call expect(names(1) == 'first' .and. names(2) == 'second', 'names', step)
    call demand(in%get('mask', mask), 'mask')
    call expect(all(mask == [1, 2, 3, 4]), 'mask', step)
    call demand(in%get('partial', partial), 'partial')
    call expect(all(nint(partial) == [-1, -1, 7, 8, -1, -1]), 'partial', step)
    call demand(in%get('growing', growing), 'growing')
    call expect(growing(step + 1) == step, 'growing', step)
  end subroutine

  subroutine read_stream(name)
    character(len=*), intent(in) :: name
    type(stream_t) :: in
    integer(c_int32_t) :: state
    integer :: step
    call demand(in%open_reader(name), 'open for reading')
    step = 0
    do
      call demand(in%begin_step(state), 'begin a step')
      if (state /= stream_step_ok) exit
      call expect(in%step() == step .and. in%missed() == 0, 'the number of the step', step)
      call check_description(in, step)
      call check_tables(in, step)
      call check_grid(in, step)
      call check_others(in, step)
      call demand(in%end_step(), 'end a step')
      step = step + 1
    end do
    call expect(state == stream_end .and. step == steps, 'the end of the stream', step)
    call demand(in%close(), 'close')
  end subroutine
end module

program streams_peer
  use streams_peer_parts
  implicit none
  character(len=256) :: what, name
  if (command_argument_count() < 2) stop 'usage: streams_peer_fortran write|read|both NAME'
  call get_command_argument(1, what)
  call get_command_argument(2, name)
  if (what /= 'read') call write_stream(trim(name))
  if (what /= 'write') call read_stream(trim(name))
  print '(i0, a)', faults, ' faults'
  if (faults /= 0) stop 1
end program
