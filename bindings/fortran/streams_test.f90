! SPDX-License-Identifier: BSD-3-Clause
! What is particular to streams in Fortran; what all languages share is in tests/languages. Needs nessie-streams.
module streams_test_parts
  use, intrinsic :: iso_c_binding
  use expectations
  use nessie_streams
  implicit none

contains

  subroutine expect_code(status, code, what)
    type(nessie_status), intent(in) :: status
    integer(c_int32_t), intent(in) :: code
    character(len=*), intent(in) :: what
    call expect(status%code == code .and. allocated(status%message), what)
  end subroutine

  subroutine begin(stream)
    type(stream_t), intent(in) :: stream
    integer(c_int32_t) :: state
    call expect_ok(stream%begin_step(state), 'begin a step')
    call expect(state == stream_step_ok, 'a step')
  end subroutine
end module

program streams_test
  use streams_test_parts
  implicit none
  type(stream_t) :: out, in

  call check_ranks()
  call check_texts()
  call check_refusals()
  call check_lent()
  call check_memory()
  call check_handles()
  call check_subscription()
  call check_space()
  print '(a)', 'all is so'

contains

  ! A scalar; all ranks up to 7; none of an array; planes of an array of more dimensions.
  subroutine check_ranks()
    integer(c_int16_t) :: scalar, seven(2, 1, 3, 1, 2, 1, 2), got(2, 1, 3, 1, 2, 1, 2), none(0, 3), plane(2, 3), box(2, 3, 4)
    integer :: i, j
    seven = reshape([(int(i, c_int16_t), i = 1, 24)], shape(seven))
    box = reshape([(int(i, c_int16_t), i = 1, 24)], shape(box))
    call expect_ok(out%open_writer('ranks'), 'open')
    call expect_ok(out%define('scalar', stream_int16, shape(scalar)), 'scalar')
    call expect_ok(out%define('seven', stream_int16, shape(seven)), 'seven')
    call expect_ok(out%define('none', stream_int16, shape(none)), 'none')
    call expect_ok(out%define('box', stream_int16, shape(box)), 'box')
    call begin(out)
    call expect_ok(out%put('scalar', 7_c_int16_t), 'put a scalar')
    call expect_ok(out%put('seven', seven), 'put seven dimensions')
    call expect_ok(out%put('none', none), 'put nothing')
    do i = 1, 4
      call expect_ok(out%put('box', box(:, 3:1:-1, i), start=[1, 1, i]), 'put a plane, from its end')
    end do
    call expect_ok(out%end_step(), 'end')
    call expect_ok(in%open_reader('ranks'), 'open')
    call begin(in)
    call expect_ok(in%get('scalar', scalar), 'get a scalar')
    call expect_ok(in%get('seven', got), 'get seven dimensions')
    call expect(scalar == 7 .and. all(got == seven), 'what was got')
    call expect_ok(in%get('none', none), 'get nothing')
    call expect_ok(in%get('box', plane, start=[1, 1, 3]), 'get a plane')
    call expect(all(plane == box(:, 3:1:-1, 3)), 'the plane')
    call expect_ok(in%get('box', plane, start=[1, 2, 1], count=[2, 1, 3]), 'get another plane')
    call expect(all(plane == reshape([(box(:, 2, j), j = 1, 3)], [2, 3])), 'the other plane')
    call close_both()
  end subroutine

  subroutine close_both()
    call expect_ok(in%close(), 'close')
    call expect_ok(out%close(), 'close')
  end subroutine

  subroutine check_texts()
    character(len=5), parameter :: words(3) = ['one  ', 'two  ', 'three']
    character(len=5) :: got(3), word
    character(len=1) :: letters(5)
    character(len=:), pointer :: memory(:)
    character(len=:), allocatable :: text
    type(stream_attribute_t), allocatable :: all_of_them(:)
    call expect_ok(out%open_writer('texts'), 'open')
    call expect_ok(out%define('words', stream_char, [5, 3]), 'words')
    call expect_ok(out%define('more', stream_char, [5, 3], fill='-'), 'more')
    call expect_ok(out%define('letters', stream_char, [5]), 'letters')
    call expect_ok(out%set_attribute('empty', ''), 'an empty text')
    call expect_ok(out%set_attribute('several', words, variable='words'), 'several texts')
    call begin(out)
    call expect_ok(out%span('words', memory), 'span')
    call expect(len(memory) == 5 .and. size(memory) == 3, 'the memory of texts')
    memory = words
    call expect_ok(out%put('more', 'three', start=[1, 3]), 'a literal')
    call expect_ok(out%put('letters', ['a', 'b', 'c', 'd', 'e']), 'letters')
    call expect_ok(out%end_step(), 'end')
    call expect_ok(in%open_reader('texts'), 'open')
    call begin(in)
    call expect_ok(in%get('words', got), 'get')
    call expect(all(got == words), 'the words')
    call expect_ok(in%get('more', got), 'get')
    call expect(got(2) == '-----' .and. got(3) == 'three', 'more words')
    call expect_ok(in%get('letters', word), 'letters as a word')
    call expect_ok(in%get('letters', letters), 'letters')
    call expect(word == 'abcde' .and. letters(5) == 'e', 'the letters')
    call expect_ok(in%get_attribute('empty', text), 'an empty text')
    call expect(text == '', 'empty')
    call expect_ok(in%get_attribute('several', text, variable='words'), 'several texts')
    call expect(text == 'one  two  three', 'the texts')
    call expect_ok(in%attributes(all_of_them), 'attributes')
    call expect(size(all_of_them) == 2 .and. sum(all_of_them%count) == 15, 'the attributes')
    call close_both()
  end subroutine

  subroutine check_refusals()
    real(c_double) :: u(4, 3)
    real(c_double), pointer :: memory(:, :), line(:)
    u = 1
    call expect_ok(out%open_writer('refusals'), 'open')
    call expect_code(out%define('U', stream_double, [2], fill=0.0), nessie_invalid_argument, 'a fill value of another type')
    call expect_code(out%define('U', stream_double, [2.5]), nessie_invalid_argument, 'a shape of reals')
    call expect_ok(out%define('T', stream_double, [4, 3]), 'define')
    call expect_code(out%put('T', u), nessie_invalid_argument, 'no step')
    call begin(out)
    call expect_code(out%put('T', real(u)), nessie_invalid_argument, 'another type')
    call expect_code(out%put('V', u), nessie_not_found, 'no such variable')
    call expect_code(out%put('T', u, count=[4, 2]), nessie_invalid_argument, 'another number of elements')
    call expect_code(out%put('T', u, start=[1]), nessie_invalid_argument, 'too few dimensions')
    call expect_code(out%put('T', u, start=[2, 1]), nessie_out_of_range, 'outside')
    call expect_code(out%put('T', u, start=[0, 1]), nessie_out_of_range, 'positions count from 1')
    call expect_code(out%span('T', line), nessie_invalid_argument, 'a pointer of another rank')
    call expect_ok(out%span('T', memory, start=[1, 3]), 'the last column')
    call expect(all(shape(memory) == [4, 1]), 'its shape')
    memory = 3
    call expect_ok(out%put('T', u(:, :2)), 'the others')
    call expect_ok(out%end_step(), 'end')
    call expect_ok(out%close(), 'close')
  end subroutine

  subroutine check_lent()
    real(c_float), target :: u(4, 3), got(4, 3)
    integer :: i
    u = reshape([(real(i), i = 1, 12)], [4, 3])
    call expect_ok(out%open_writer('lent'), 'open')
    call expect_ok(out%define('T', stream_float, [4, 3]), 'define')
    call begin(out)
    call expect_code(out%put_lent('T', u(:3, :)), nessie_invalid_argument, 'what is not contiguous is not lent')
    call expect_ok(out%put_lent('T', u), 'lend')
    call expect_ok(out%end_step(), 'end')
    call expect_ok(in%open_reader('lent'), 'open')
    call begin(in)
    call expect_ok(in%get('T', got), 'get')
    call expect(all(nint(got) == nint(u)), 'what was lent')
    call close_both()
  end subroutine

  subroutine check_memory()
    type(c_ptr) :: memory
    real(c_double), pointer :: array(:)
    call expect_ok(stream_allocate(800_c_int64_t, memory), 'allocate')
    call c_f_pointer(memory, array, [100])
    call expect(all(abs(array) <= 0), 'zeros')
    call expect_ok(stream_free(memory), 'free')
    call expect(.not. c_associated(memory), 'freed')
  end subroutine

  subroutine check_handles()
    type(stream_t) :: none
    type(space_t) :: nowhere
    integer(c_int32_t) :: state
    integer(c_int64_t) :: version
    call expect_code(none%begin_step(state), nessie_invalid_argument, 'a stream that is not open')
    call expect_code(none%close(), nessie_invalid_argument, 'close it')
    call expect(none%step() == 0, 'its step')
    call expect(none%missed() == 0, 'what it missed')
    call expect(.not. none%is_open(), 'it is not open')
    call none%drop()
    call expect_code(nowhere%newest('x', version), nessie_invalid_argument, 'a space that is not open')
    call expect_code(none%open_reader('never', timeout_ms=20), nessie_timed_out, 'no such stream')
    call expect_code(none%open_writer('never', rank=1, size=1), nessie_invalid_argument, 'a rank outside')
  end subroutine

  subroutine check_subscription()
    type(stream_info_t), allocatable :: list(:)
    integer :: i, found
    call expect_ok(out%open_writer('archived', durability=stream_memory), 'open')
    call expect_ok(out%define('T', stream_int32, [3]), 'define')
    call expect_ok(in%open_reader('archived', subscription='archive'), 'open')
    do i = 1, 2
      call begin(out)
      call expect_ok(out%put('T', [i, i, i]), 'put')
      call expect_ok(out%end_step(), 'end')
    end do
    call begin(in)
    call expect_ok(in%end_step(), 'end')
    call expect_ok(in%close(), 'close')
    call expect_ok(in%open_reader('archived', subscription='archive'), 'open again')
    call begin(in)
    call expect(in%step() == 1, 'it resumes')
    call expect_ok(stream_list(list), 'list')
    found = findloc([(list(i)%name == 'archived', i = 1, size(list))], .true., dim=1)
    call expect(found > 0, 'the stream is among them')
    call expect(list(found)%steps == 2 .and. list(found)%status == stream_open .and. list(found)%writers == 1, 'its state')
    call expect(list(found)%variables(1)%name == 'T' .and. list(found)%variables(1)%shape(1) == 3, 'its variable')
    call expect(list(found)%readers(1)%subscription == 'archive' .and. list(found)%readers(1)%connected == 1, 'its reader')
    call expect_ok(in%unsubscribe(), 'unsubscribe')
    call expect_ok(stream_list(list), 'list')
    call expect(size(list(found)%readers) == 0, 'it is gone')
    call expect_ok(out%close(), 'close')
    call expect_ok(out%open_writer('archived', append=.true.), 'append')
    call expect(out%step() == 2, 'it goes on')
    call expect_ok(out%close(), 'close')
  end subroutine

  subroutine check_space()
    type(space_t) :: space
    integer(c_int64_t) :: version
    integer(c_int32_t) :: edges(2, 3), part(2), back(3, 2)
    edges = reshape([1, 2, 3, 4, 5, 6], [2, 3])
    call expect_ok(space%open(), 'open')
    call expect_code(space%newest('edges', version), nessie_not_found, 'none yet')
    call expect_ok(space%put('edges', 3_c_int64_t, edges, start=[11, 1]), 'put')
    call expect_code(space%put('edges', 3_c_int64_t, edges, start=[11, 1]), nessie_exists, 'put again')
    call expect_ok(space%newest('edges', version), 'newest')
    call expect(version == 3, 'the version')
    call expect_ok(space%get('edges', 3_c_int64_t, part, start=[11, 2]), 'get')
    call expect(all(part == [3, 4]), 'a column')
    back = 0
    call expect_ok(space%get('edges', 3_c_int64_t, back(2, :), start=[11, 3], count=[2, 1]), 'get into a row')
    call expect(all(back(2, :) == [5, 6]) .and. all(back(1, :) == 0), 'a row')
    call expect_code(space%get('edges', 4_c_int64_t, part, start=[11, 1], timeout_ms=20), nessie_timed_out, 'not there yet')
    call expect_ok(space%put('scalar', 0_c_int64_t, 2.5d0), 'a scalar')
    call expect_ok(space%close(), 'close')
  end subroutine
end program
