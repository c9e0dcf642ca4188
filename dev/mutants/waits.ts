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
    '          leave()\n          break\n        }\n        waitedMs',
    '          break\n        }\n        waitedMs',
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
    'laws',
  ),
  wait(
    'a request that passes wakes no other',
    'outcome.decision.allowed && Date.now() < planned',
    'false',
    'laws',
  ),
  room(
    'units that come back wake the last one',
    'one.number < first.number',
    'one.number > first.number',
    'laws',
  ),
  wait('a repeated call waits again', '!reply.replayed && !(await', '!(await', 'edges'),
  wait(
    'without room a request waits',
    'guest.isFull\n          ? undefined\n          : turnOf(',
    'turnOf(',
    'turns',
  ),
  room(
    'a request that asks has no place in the room',
    'if (!full) guests.add(guest)',
    'if (full) guests.add(guest)',
    'turns',
  ),
  mutantsOf('src/core/decide/denial-cache.ts', 'test/unit/features/turns')(
    'a refusal is cached until its turn',
    'const untilPlaceMs = retryAfterMs - (policy.wait ?? 0)',
    'const untilPlaceMs = retryAfterMs',
    'turns',
  ),
]
