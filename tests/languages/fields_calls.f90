! SPDX-License-Identifier: BSD-3-Clause
! What a client in Fortran can do with a service of fields.x, whatever language that is in.
module fields_calls
  use, intrinsic :: iso_c_binding
  use nessie_xdr
  use nssi
  use fields_xdr
  use fields_rpc
  implicit none
  private
  public :: check_all

  integer :: faults = 0

contains

  subroutine expect(is_so, what)
    logical, intent(in) :: is_so
    character(len=*), intent(in) :: what
    if (is_so) return
    faults = faults + 1
    print '(2a)', 'not so: ', what
  end subroutine
  subroutine expect_ok(status, what)
    type(nessie_status), intent(in) :: status
    character(len=*), intent(in) :: what
    if (status%ok()) return
    faults = faults + 1
    print '(4a)', 'failed: ', what, ': ', status%message
  end subroutine

  ! Returns how many things were not as they should be.
  function check_all(runtime, peer) result(failed)
    type(nssi_runtime), intent(inout) :: runtime
    integer(c_int64_t), intent(in) :: peer
    integer :: failed
    type(FIELDS_ONE_client) :: fields
    fields = FIELDS_ONE_client(runtime, peer)
    call check_numbers(fields)
    call check_texts(fields)
    call check_structs(fields)
    call check_lists(fields)
    call check_bulk(runtime, fields)
    call check_bulk_that_is_not_lent(runtime, fields)
    call check_errors(fields)
    call check_deadlines(fields)
    call check_any(fields)
    call check_many(fields)
    call check_one_way(fields)
    call check_versions(runtime, peer)
    failed = faults
  end function

  ! It has no result, whatever the interface says.
  subroutine check_one_way(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    integer(c_int64_t) :: sum
    sum = 7
    call expect_ok(fields%add(1_c_int32_t, 2_c_int64_t, sum, one_way=.true., fail_when_busy=.true.), 'one way')
    call expect(sum == 7, 'no result')
  end subroutine

  subroutine check_numbers(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    integer(c_int64_t) :: sum
    real(c_double) :: blended(4)
    integer(c_int32_t), allocatable :: whole, part
    call expect_ok(fields%nothing(), 'nothing')
    call expect_ok(fields%add(-3_c_int32_t, 5000000000_c_int64_t, sum), 'add')
    call expect(sum == 4999999997_c_int64_t, 'a sum')
    call expect_ok(fields%blend([1d0, 2d0, 3d0, 4d0], 0.5, blended), 'blend')
    call expect(all(blended == [0.5d0, 1d0, 1.5d0, 2d0]), 'four weights')
    call expect_ok(fields%half(whole, part), 'half of nothing')
    call expect(.not. allocated(part), 'nothing')
    whole = 42
    call expect_ok(fields%half(whole, part), 'half')
    call expect(part == 21, 'half of 42')
  end subroutine

  subroutine check_texts(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    character(len=:), allocatable :: text
    integer(c_int8_t), allocatable :: bytes(:), same(:)
    type(title), allocatable :: picked(:)
    integer :: i
    call expect_ok(fields%greet('world', 'flame 7', text), 'greet')
    call expect(text == 'hello world, flame 7', 'a greeting')
    call expect_ok(fields%greet('', '', text), 'greet nobody')
    call expect(text == 'hello , ', 'an empty greeting')
    bytes = [(int(mod(i, 100), c_int8_t), i = 1, 300001)]  ! more than a message holds
    call expect_ok(fields%echo(bytes, same), 'echo')
    call expect(size(same) == size(bytes) .and. all(same == bytes), 'many bytes')
    call expect_ok(fields%pick([title('x'), title('yy'), title('zzz')], [ALONG_Z, ALONG_Z, ALONG_X], picked), 'pick')
    call expect(size(picked) == 3, 'three titles')
    call expect(picked(1)%value == 'zzz' .and. picked(3)%value == 'x', 'their texts')
  end subroutine

  subroutine check_structs(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    type(stamp) :: mark
    type(found) :: answer
    type(moments), allocatable :: shifted(:)
    integer :: i
    mark = stamp(name='s', step=7, is_final=.true., along=ALONG_Y)
    call expect_ok(fields%find(mark, .true., answer), 'find')
    call expect(answer%is_here .and. allocated(answer%what), 'an arm')
    call expect(answer%what%name == 's' .and. answer%what%step == 7 .and. answer%what%is_final, 'what it holds')
    call expect_ok(fields%find(mark, .false., answer), 'do not find')
    call expect(.not. answer%is_here .and. .not. allocated(answer%what), 'no arm')
    call expect_ok(fields%shift([(moments(i, -i, i), i = 1, 1000)], 0.5d0, shifted), 'shift')
    call expect(size(shifted) == 1000, 'as many structs')
    call expect(all(shifted%least == [(0.5d0 - i, i = 1, 1000)]), 'their numbers')
  end subroutine

  subroutine check_lists(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    type(stop), allocatable :: route(:), back(:)
    type(tree) :: root, turned
    route = [stop('here'), stop('there'), stop('home')]
    call expect_ok(fields%reverse(route, back), 'reverse')
    call expect(size(back) == 3, 'three stops')
    call expect(back(1)%place == 'home' .and. back(3)%place == 'here', 'the other way round')
    deallocate (route)
    allocate (route(0))
    call expect_ok(fields%reverse(route, back), 'reverse nothing')
    call expect(size(back) == 0, 'no stops')
    allocate (root%children(2))
    root%children%value = [1, 2]
    allocate (root%children(2)%children(1))
    root%children(2)%children(1)%value = 3
    call expect_ok(fields%mirror(root, turned), 'mirror')
    call expect(all(turned%children%value == [2, 1]), 'children')
    call expect(turned%children(1)%children(1)%value == 3, 'a grandchild')
    call xdr_free(root)
    call xdr_free(turned)
  end subroutine

  ! Arrays of any rank, and a section of one, where they are.
  subroutine check_bulk(runtime, fields)
    type(nssi_runtime), intent(in) :: runtime
    type(FIELDS_ONE_client), intent(in) :: fields
    real(c_double), allocatable, target :: field(:, :, :)
    real(c_double), pointer :: plane(:, :)
    type(nssi_buffer) :: buffer
    type(moments) :: measured
    integer :: i
    allocate (field(40, 30, 20))
    field = reshape([(real(i, c_double), i = 1, size(field))], shape(field))
    call expect_ok(runtime%register_memory(field, nssi_read_write, buffer), 'register')
    call expect(buffer%size_bytes() == 8 * size(field), 'its size')
    call expect_ok(fields%measure(buffer, measured), 'measure')
    call expect(measured%sum == sum(field) .and. measured%greatest == size(field), 'moments')
    call expect_ok(fields%scale(2d0, buffer), 'scale')
    call expect(field(1, 1, 1) == 2 .and. field(40, 30, 20) == 48000, 'twice as much')
    call expect_ok(buffer%free(), 'free')
    plane => field(:, :, 3)
    call expect_ok(runtime%register_memory(plane, nssi_write, buffer), 'register a plane')
    call expect_ok(fields%ramp(ALONG_Z, buffer), 'ramp')
    call expect(plane(1, 1) == 3 .and. plane(40, 30) == 3600, 'a ramp')
    call expect(field(40, 30, 2) == 2 * 2400 .and. field(1, 1, 4) == 2 * 3601, 'its neighbours are left alone')
    call expect_ok(buffer%free(), 'free')
    call expect_ok(runtime%allocate_memory(80_c_int64_t, nssi_write, buffer), 'allocate')
    call c_f_pointer(buffer%memory(), plane, [5, 2])
    call expect_ok(fields%ramp(ALONG_X, buffer), 'ramp in memory of the runtime')
    call expect(all(plane == reshape([(real(i, c_double), i = 1, 10)], [5, 2])), 'ten numbers')
    call expect_ok(buffer%free(), 'free')
  end subroutine

  subroutine check_bulk_that_is_not_lent(runtime, fields)
    type(nssi_runtime), intent(in) :: runtime
    type(FIELDS_ONE_client), intent(in) :: fields
    real(c_double), target :: field(4, 4)
    type(nssi_buffer) :: buffer
    type(moments) :: measured
    type(nessie_status) :: status
    field = 1
    status = runtime%register_memory(field(2, :), nssi_read, buffer)
    call expect(status%code == nessie_invalid_argument, 'a row is refused: its elements are apart')
    status = fields%measure(buffer, measured)
    call expect(status%code == nessie_invalid_argument, 'a buffer that is not registered is refused')
    call expect_ok(runtime%register_memory(field(:, 2), nssi_write, buffer), 'register a column')
    status = fields%measure(buffer, measured)
    call expect(status%code == nessie_invalid_argument, 'a buffer without the right is refused')
    call expect_ok(buffer%free(), 'free')
    status = buffer%free()
    call expect(status%code == nessie_invalid_argument, 'it is free already')
  end subroutine

  subroutine check_errors(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    type(nessie_status) :: status
    character(len=:), allocatable :: text
    type(title), allocatable :: picked(:)
    integer(c_int32_t) :: number
    type(nssi_call) :: call
    integer(c_int8_t), pointer, contiguous :: bytes(:)
    integer(c_int8_t) :: nonsense(5)
    status = fields%refuse(28, number)
    call expect(status%code == nessie_io .and. status%cause == 28, 'the code and the cause of an error')
    call expect(status%scope == nessie_scope_service, 'its scope')
    call expect(status%message == 'No space left on device: free some', 'its sentence')
    status = fields%repeat('four', 6, text)
    call expect(status%code == nessie_internal, 'a result beyond its bound')
    call expect_ok(fields%repeat('four', 5, text), 'a result within it')
    status = fields%repeat('more than twenty characters', 1, text)
    call expect(status%code == nessie_invalid_argument, 'an argument beyond its bound')
    status = fields%pick([title('x')], [7], picked)
    call expect(status%code == nessie_invalid_argument, 'an enum without a name')
    nonsense = 1
    call expect_ok(fields%runtime%start(fields%service, FIELDS_ONE_ADD, nonsense, call), 'start')
    status = call%take(bytes)
    call expect(status%code == nessie_bad_message, 'arguments that are none')
    call expect(.not. call%is_open(), 'a call that is over')
  end subroutine

  subroutine check_deadlines(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    type(nessie_status) :: status
    type(nssi_call) :: call
    integer(c_int32_t) :: rested
    status = fields%rest(60000, rested, timeout_ms=20)
    call expect(status%code == nessie_timed_out, 'a deadline')
    call expect_ok(fields%rest_async(50, call), 'start to rest')
    call expect_ok(fields%rest_result(call, rested), 'rest')
    call expect(rested == 50 .and. .not. call%is_open(), 'a call that has rested')
    call expect_ok(fields%rest_async(60000, call), 'start to rest long')
    status = fields%rest_result(call, rested, timeout_ms=0)
    call expect(status%code == nessie_timed_out .and. call%is_open(), 'a call that goes on')
    call expect_ok(call%cancel(), 'cancel')
    status = fields%rest_result(call, rested)
    call expect(status%code == nessie_cancelled, 'a call that was cancelled')
  end subroutine

  subroutine check_any(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    type(nssi_call) :: calls(3)
    type(nessie_status) :: status
    integer(c_int64_t) :: sum
    integer(c_int32_t) :: rested
    integer :: which
    logical :: is_over
    call expect_ok(fields%rest_async(60000, calls(1)), 'start a long one')
    call expect_ok(fields%add_async(1_c_int32_t, 2_c_int64_t, calls(2)), 'start a short one')
    which = 0
    call expect_ok(nssi_wait_any(calls, which, 20000), 'wait for any')
    call expect(which == 2, 'the short one is the first')
    call expect_ok(fields%add_result(calls(2), sum), 'its result')
    call expect(sum == 3, 'which is 3')
    status = nssi_wait_any(calls, which, 10)
    call expect(status%code == nessie_timed_out .and. which == 2, 'none of the others')
    is_over = .true.
    call expect_ok(calls(1)%test(is_over), 'test')
    call expect(.not. is_over, 'the long one goes on')
    call calls(1)%free()
    call expect_ok(fields%rest_async(1, calls(1)), 'start one')
    call expect_ok(fields%rest_async(2, calls(3)), 'start another one')
    call expect_ok(nssi_wait_all(calls, 20000), 'wait for all')
    call expect_ok(fields%rest_result(calls(3), rested), 'the result of one')
    call expect_ok(fields%rest_result(calls(1), rested), 'the result of the other')
    status = nssi_wait_any(calls, which)
    call expect(status%code == nessie_not_found, 'there is none to wait for')
  end subroutine

  subroutine check_many(fields)
    type(FIELDS_ONE_client), intent(in) :: fields
    type(nssi_call) :: sums(50), rests(50)
    integer(c_int64_t) :: sum
    integer(c_int32_t) :: rested
    integer :: i
    do i = 1, 50
      call expect_ok(fields%rest_async(mod(i, 7), rests(i)), 'start one of many rests')
      call expect_ok(fields%add_async(i, 1_c_int64_t, sums(i)), 'start one of many sums')
    end do
    do i = 1, 50
      call expect_ok(fields%add_result(sums(i), sum), 'the result of one of many')
      call expect_ok(fields%rest_result(rests(i), rested), 'the rest of one of many')
      call expect(sum == i + 1 .and. rested == mod(i, 7), 'which is its own')
    end do
  end subroutine

  subroutine check_versions(runtime, peer)
    type(nssi_runtime), intent(in) :: runtime
    integer(c_int64_t), intent(in) :: peer
    type(FIELDS_TWO_client) :: second
    type(nssi_call) :: call
    type(nessie_status) :: status
    integer(c_int8_t) :: none(0)
    integer(c_int32_t) :: sum
    second = FIELDS_TWO_client(runtime, peer, 5)
    call expect_ok(second%add(1, 2, 3, sum), 'add three')
    call expect(sum == 6, 'a sum of three')
    second%service%provider = 0
    status = second%add(1, 2, 3, sum)
    call expect(status%code == nessie_not_found, 'another provider')
    second%service%version = 9
    status = second%add(1, 2, 3, sum)
    call expect(status%code == nessie_unsupported, 'another version')
    second%service%version = FIELDS_ONE_version
    call expect_ok(runtime%start(second%service, 999, none, call), 'start')
    status = call%wait()
    call expect(status%code == nessie_not_found, 'another operation')
    call call%free()
  end subroutine
end module
