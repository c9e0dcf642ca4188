import { type Mutant, mutantsOf } from './mutant.ts'

const call = mutantsOf('src/outbound/outbound.ts', 'test/unit/outbound')
const cooldowns = mutantsOf('src/outbound/cooldowns.ts', 'test/unit/outbound')
const turn = mutantsOf('src/outbound/turns.ts', 'test/unit/outbound')
const queue = mutantsOf('src/outbound/slot-queue.ts', 'test/unit/outbound')
const sending = mutantsOf('src/outbound/sending.ts', 'test/unit/outbound')
const learner = mutantsOf('src/outbound/learner.ts', 'test/unit/outbound')
const options = mutantsOf('src/outbound/options.ts', 'test/unit/outbound')
const wait = mutantsOf('src/core/base/foreign-wait.ts', 'test/unit/core/base')
const reports = mutantsOf('src/outbound/reports.ts', 'test/unit/outbound')

/** Faults in the turns of outbound calls. */
export const turnsMutants: Mutant[] = [
  call(
    'a call does not know of a cooldown',
    'first.penalty = cooldown',
    'void cooldown',
    'outbound',
  ),
  learner(
    'reports at once are each charged',
    'sentAt === undefined || learning.has(subject!)',
    'sentAt === undefined',
    'outbound',
  ),
  cooldowns(
    'a shorter cooldown replaces a longer one',
    'before <= banMs',
    'before >= 0',
    'outbound',
  ),
  cooldowns(
    'without a store a process forgets a cooldown',
    'note(limit, Date.now() + coolMs)',
    'note(limit)',
    'fallback',
  ),
  turn(
    'an attempt waits as long as the first one',
    '{ matched, waitMs: restMs() }',
    '{ matched, waitMs }',
    'strict',
  ),
  queue(
    'a release wakes no call',
    'this.#queues.of(nameOf(limit))[0]?.wake()',
    'this.#queues.of(nameOf(limit))[0]',
    'slot-queue',
  ),
  queue(
    'a call waits for one that was cancelled',
    '(isFirst() || Date.now() >= untilMs ? resolve() : look(LOOK_MS))',
    '(Date.now() >= untilMs ? resolve() : look(LOOK_MS))',
    'slot-queue',
  ),
  call(
    'a call without a response is settled as one with the status 500',
    'settled?.now() //',
    'settled?.now({ status: 500, headers: new Headers() }) //',
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
  learner(
    'a lower limit of the other side is ignored',
    'if (units !== undefined) lowered.push',
    'if (units === null) lowered.push',
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
