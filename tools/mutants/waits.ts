import { type Mutant, mutantsOf } from './mutant.ts'

const lua = mutantsOf('lua/line.lua', 'test/script')
const twin = mutantsOf('src/stores/durable-objects/line.ts', 'test/script')
const wait = mutantsOf('src/features/turns/wait.ts', 'test/unit/features/turns')
const room = mutantsOf('src/features/turns/room.ts', 'test/unit/features/turns')

/** Faults in the lines of requests that wait. */
export const waitsMutants: Mutant[] = [
  lua(
    'a request does not leave the units of earlier ones free',
    "option = format('%d', option - row.ahead)",
    "option = format('%d', option)",
    'wait',
  ),
  lua(
    'a request whose turn is too late gets a ticket',
    'waits and row.turn and row.turn <= row.left',
    'waits and row.turn',
    'wait',
  ),
  lua(
    'a ticket ends with its turn',
    'now + row.turn + GRACE\n      local record = with_ticket',
    'now + row.turn\n      local record = with_ticket',
    'wait',
  ),
  lua(
    'a request that is refused elsewhere gets a ticket',
    'not admitted and not rows.ends',
    'not admitted',
    'wait',
  ),
  lua(
    'a request has a ticket in a line that has room',
    'waits and not full and row.turn > 0 and',
    'waits and not full and',
    'wait',
  ),
  lua(
    'a request that asks again comes last',
    'row.since = now - waited',
    'row.since = now',
    'wait',
  ),
  lua(
    'a request with a smaller floor stands behind the others',
    'if capacity + 0 >= row.capacity and since',
    'if since',
    'wait',
  ),
  mutantsOf('lua/operators.lua', 'test/script')(
    'a reset leaves the line',
    "elseif algorithm == 'line' then",
    "elseif algorithm == 'lines' then",
    'wait',
  ),
  mutantsOf('lua/decide.lua', 'test/script')(
    'a request that waits is counted towards a ban',
    'places .. reported, charges and not is_no_refusal',
    'places .. reported, charges',
    'wait',
  ),
  lua(
    'the turn of a sliding window leaves out what passes before it',
    'units - passed, 0, current + passed',
    'units - passed, 0, current',
    'wait',
  ),
  twin(
    'an object forgets who came first',
    'time < since || (time === since && !isBehind)',
    'time < since',
    'wait',
  ),
  wait(
    'a request waits for a limit that has no wait',
    'if (!waits(limit) || bannedForMs',
    'if (bannedForMs',
    'turns',
  ),
  wait(
    'a client that has gone keeps its place',
    'leave()\n          break\n        }\n        ticket.waitedMs',
    'break\n        }\n        ticket.waitedMs',
    'turns',
  ),
  mutantsOf('src/stores/durable-objects/line.ts', 'test/unit/features/turns')(
    'a request is told a turn at which it has no room',
    'previous = current + passed',
    'previous = current',
    'laws',
  ),
  wait('two requests have one ticket', 'ids += 1 //', '//', 'laws'),
  wait(
    'a repeated call ends by a turn as it once was',
    'if (replayed) return mostMs',
    'if (replayed) return ticket.leftMs',
    'room',
  ),
  wait(
    'a request that passes wakes no other',
    'if (Date.now() < latest) room.wake',
    'if (false) room.wake',
    'laws',
  ),
  room(
    'units that come back wake the last one',
    'lines.of(subject).find(',
    'lines.of(subject).findLast(',
    'room',
  ),
  wait('a repeated call waits again', 'if (!reply.replayed) {', '{', 'edges'),
  wait(
    'a refund wakes no request',
    'room.wake(subjectsOf(limits.filter',
    'void (subjectsOf(limits.filter',
    'room',
  ),
  room('a later request passes first', 'if (!first || now', 'if (true || now', 'laws'),
  room(
    'a request keeps the admission that an earlier one needs',
    'if (!isGone) exchange(waiter)',
    'if (false) exchange(waiter)',
    'laws',
  ),
  room(
    'a request waits for one that was cancelled',
    'Math.min(first.goneAt, holdsUntil)',
    'waiter.endsAt',
    'laws',
  ),
  mutantsOf('src/features/turns/lines.ts', 'test/unit/features/turns')(
    'a request that was cancelled stays in its line',
    'if (one.goneAt < now) this.leave(one)',
    'if (one.goneAt < 0) this.leave(one)',
    'laws',
  ),
  wait('without room a request waits', 'guest.isFull ? undefined : turnOf(', 'turnOf(', 'turns'),
  room(
    'a request that asks has no place in the room',
    'if (!isTooMuch) guests.add(waiter)',
    'if (isTooMuch) guests.add(waiter)',
    'turns',
  ),
  mutantsOf('src/core/decide/denial-cache.ts', 'test/unit/features/turns')(
    'a refusal is cached until its turn',
    'Math.min(retryAfterMs - (terms.wait ?? 0), resetAfterMs)',
    'Math.min(retryAfterMs, resetAfterMs)',
    'turns',
  ),
]
