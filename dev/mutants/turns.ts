import { type Mutant, mutantsOf } from './mutant.ts'

const lua = mutantsOf('lua/turns.lua', 'test/script')
const places = mutantsOf('lua/places.lua', 'test/script')
const twin = mutantsOf('src/features/outbound/turns.ts', 'test/script')
const call = mutantsOf('src/features/outbound/outbound.ts', 'test/unit/features/outbound')
const sending = mutantsOf('src/features/outbound/sending.ts', 'test/unit/features/outbound')
const stores = mutantsOf('src/features/outbound/stores.ts', 'test/unit/features/outbound')
const learner = mutantsOf('src/features/outbound/learner.ts', 'test/unit/features/outbound')
const options = mutantsOf('src/features/outbound/options.ts', 'test/unit/features/outbound')
const wait = mutantsOf('src/features/outbound/foreign-wait.ts', 'test/unit/features/outbound')
const reports = mutantsOf('src/features/outbound/reports.ts', 'test/unit/features/outbound')

/** Faults in the turns of outbound calls. */
export const turnsMutants: Mutant[] = [
  lua(
    'places are not after those that were given before',
    'local place = math.max(now, line_end)',
    'local place = now',
    'turns',
  ),
  places(
    'a bucket has room one ms too early',
    'at + math.ceil(over / limit) or at',
    'at + math.floor(over / limit) or at',
    'turns',
  ),
  lua(
    'a place beyond the wait is charged',
    'local is_refused = not place or place > now + wait',
    'local is_refused = not place',
    'turns',
  ),
  lua(
    'a call that waits for a slot is charged',
    "if mode == 'take' and not is_refused and ahead == 0 then",
    "if mode == 'take' and not is_refused then",
    'turns',
  ),
  lua('a report raises what is left', 'if is_known and less > 0 then', 'if is_known then', 'turns'),
  lua(
    'slots of one ms have the same score',
    '(newest or 0) + 1 - now',
    '(newest or 0) - now',
    'turns',
  ),
  places('a cost of 0 waits', 'if cost == 0 then', 'if false then', 'turns'),
  lua(
    'what is left is that of the limit before it was lowered',
    'for index = 4, #ARGV do',
    'for index = 4, 0 do',
    'turns',
  ),
  twin(
    'an object gives places before the line',
    'lineEnd: Math.max(now, state?.time ?? now)',
    'lineEnd: now',
    'turns',
  ),
  call(
    'a place that is void after a 429 is used',
    'if (cooldowns.of(subject) > Math.max(cooledUntil, Date.now())) {',
    'if (cooldowns.of(subject) < 0) {',
    'outbound',
  ),
  call(
    'a call is sent again after a 503',
    'coolMs > 0 && response.status !== 503',
    'coolMs > 0',
    'outbound',
  ),
  sending(
    'a Request of another class is taken for a URL',
    "typeof input === 'string' || input instanceof URL ? undefined : input",
    'input instanceof Request ? input : undefined',
    'outbound',
  ),
  stores(
    'a place that is given up is not refunded',
    'turn.ahead === 0 && algorithm',
    'turn.ahead < 0 && algorithm',
    'outbound',
  ),
  learner(
    'a lower limit of the other side is ignored',
    'if (less) report.lowered.push(less)',
    'if (less === null) report.lowered.push(less)',
    'outbound',
  ),
  reports(
    'a wait that cannot be read is no refusal',
    ': told) ?? SHORTEST_MS',
    ': told) ?? 0',
    'reports',
  ),
  wait('a wait is rounded down', 'Math.ceil(Number(', 'Math.floor(Number(', 'foreign-wait'),
  wait('a reset in ms is read as seconds', 'seconds >= 1e11', 'seconds >= 1e14', 'foreign-wait'),
  wait('a time that has passed is no wait', 'return SHORTEST_MS', 'return 0', 'foreign-wait'),
  wait('a wait of a year is believed', 'return DOUBTED_MS', 'return whole', 'foreign-wait'),
  wait(
    'a day that does not exist is read',
    'new Date(parsed).toUTCString() === normal',
    'parsed > 0',
    'foreign-wait',
  ),
  wait(
    'the reset of a limit with units left counts',
    'spent || others || undefined',
    'Math.max(spent, others) || undefined',
    'foreign-wait',
  ),
  options('the store has 300 ms to answer', 'Math.min(3_000,', 'Math.min(300,', 'options'),
]
