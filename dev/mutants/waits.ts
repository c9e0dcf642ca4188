import { type Mutant, mutantsOf } from './mutant.ts'

const lua = mutantsOf('lua/waits.lua', 'test/script')
const places = mutantsOf('lua/places.lua', 'test/script')
const twin = mutantsOf('src/features/turns/object.ts', 'test/script')
const calls = mutantsOf('src/features/turns/calls.ts', 'test/script')
const hold = mutantsOf('src/features/turns/hold.ts', 'test/unit/features/turns')
const objects = mutantsOf('src/features/turns/objects.ts', 'test/unit/features/turns')
const numbers = mutantsOf('src/features/turns/waits.ts', 'test/script')

/** Faults in the waits of requests. */
export const waitsMutants: Mutant[] = [
  lua(
    'a place is not after the last one that was given',
    'row.own = at and math.max(at, last or now)',
    'row.own = at',
    'wait',
  ),
  lua(
    'a place beyond the wait is charged',
    'place and place <= now + waits and place or false',
    'place or false',
    'wait',
  ),
  lua(
    'no line is kept',
    'if admitted and record and at > now then',
    'if admitted and record and at < now then',
    'wait',
  ),
  lua('a log expires too early', 'now, room = at, room + at - now', 'now, room = at, room', 'wait'),
  places(
    'a log has room before its newest entry',
    'now + math.max(retry_after, reset_after - window)',
    'now + retry_after',
    'wait',
  ),
  twin('an object moves no line', 'if (line && place! > now)', 'if (line && place! < now)', 'wait'),
  calls(
    'a full isolate asks for places',
    'const wait = isFull ? 0 : longestWait(request.limits)',
    'const wait = longestWait(request.limits)',
    'wait',
  ),
  numbers(
    'a limit refuses with the time of another charge',
    'retryAfterMs: Math.max(waitMs, bannedForMs)',
    'retryAfterMs: bannedForMs',
    'wait',
  ),
  hold(
    'a place that is given up is not refunded',
    'if (charge) requests.push(',
    'if (!charge) requests.push(',
    'turns',
  ),
  hold(
    'a place is refunded that a repeated call goes on with',
    'if (!options.idempotency) {',
    'if (options) {',
    'edges',
  ),
  hold('a repeated call waits again', 'reply.replayed ?', '!reply ?', 'edges'),
  objects('without room, a limit that has no wait gets one', 'waits(limit) ?', 'limit ?', 'edges'),
  hold(
    'each store holds for the wait of its own limits',
    'limits.length > 0 && waitMs >',
    'limits.length < 0 && waitMs >',
    'edges',
  ),
  hold(
    'a shadow policy tells when to come back',
    "limits.filter(({ mode }) => mode === 'enforce')",
    'limits.filter(({ mode }) => mode)',
    'edges',
  ),
  mutantsOf('src/core/decide/denial-cache.ts', 'test/unit/features/turns')(
    'a refusal is cached until its place',
    'const untilPlaceMs = retryAfterMs - (policy.wait ?? 0)',
    'const untilPlaceMs = retryAfterMs',
    'turns',
  ),
  mutantsOf('src/core/connection/store.ts', 'test/unit/features/turns')(
    'a place in a log is refunded before its time',
    "!(waitMs && terms.algorithm === 'sliding-log')",
    "!(waitMs && terms.algorithm === 'concurrency')",
    'edges',
  ),
  hold(
    'a client that has gone is served',
    'isStill ? { ...after(outcome, waitMs), mark: told(restMs) } : giveUp()',
    '{ ...after(outcome, waitMs), mark: told(restMs) }',
    'turns',
  ),
]
