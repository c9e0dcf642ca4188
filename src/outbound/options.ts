/** The options of `outbound()`, checked. */
import * as v from 'valibot'
import type { ConfigOptions, PolicyOptions } from '../core/config/options.ts'
import { parsedOptions } from '../core/config/schema/checked.ts'
import { type Input, object, timeout, whole } from '../core/config/schema/shapes.ts'
import type { Limit } from '../core/connection/store.ts'
import { createLimiter } from '../core/create.ts'
import { operations } from '../core/decide/operate.ts'
import type { Feature } from '../core/feature.ts'
import { penalties } from '../features/bans/stages.ts'
import * as stages from '../features/compile.ts'
import { declaration as concurrency } from '../features/concurrency/declaration.ts'
import { coreParts } from '../features/core-parts.ts'
import { limitsOfOperators } from '../features/overrides/stages.ts'
import { declaration as plans } from '../features/plans/declaration.ts'
import { createRoom } from '../features/turns/room.ts'
import { lines } from '../features/turns/stages.ts'
import { createWaiting } from '../features/turns/wait.ts'
import { SlotQueues } from './slot-queue.ts'

const ownFields = () => ({
  /**
   * The longest time from a call to its turn, with all its attempts: a duration such as `'30s'`, less than 25 days. A call whose turn is later
   * fails at once with an {@link OutboundError}. Defaults to `'30s'`.
   */
  wait: v.optional(timeout, 30_000),
  /**
   * The most calls that wait in this process or isolate at a time, 1 to 100,000. Further calls fail at once. A call that waits takes about 16 KiB in Node,
   * besides its own body. Defaults to 1,000.
   */
  maxWaiting: v.optional(whole(1, 100_000), 1_000),
})

/** A field of a policy with this value, whatever is written. */
const fixed = <T>(value: T) =>
  v.pipe(
    v.unknown(),
    v.transform(() => value),
  )

/** The features that each limiter of calls has: its limits wait, and the other side may lower them. */
const featuresOf = (wait: number, maxWaiting: number, slots: SlotQueues): Feature[] => [
  ...coreParts(),
  { ...concurrency, compile: stages.concurrency },
  { ...plans, compile: stages.plans },
  { name: 'slidingLog', compile: stages.slidingLog },
  {
    name: 'turns',
    fields: ({ algorithm }) => ({
      wait: fixed(algorithm === 'concurrency' ? undefined : wait),
    }),
    check: checkKeys,
    compile() {
      const waiting = createWaiting(createRoom(maxWaiting))
      const wake = (limits: readonly Limit[]) => {
        waiting.wake(limits)
        for (const limit of limits) slots.wake(limit)
      }
      return { lua: [lines, penalties, operations], waiting: { ...waiting, wake } }
    },
  },
  {
    name: 'overrides',
    fields: () => ({ overrides: fixed(true) }),
    compile: () => ({ lua: [limitsOfOperators] }),
  },
]

/** The fields of a policy that decide about a request of a client, and not about one that goes out. */
const foreign = ['distinct', 'lease', 'mode', 'overrides', 'penalty', 'refusal', 'wait'] as const
/** The features that calls have by themselves, or have no use for. */
const unused = ['bans', 'leases', 'observe', 'overrides', 'refusals', 'turns']
/** The fields of a configuration that `outbound()` has too. */
const shared = [
  'allow',
  'caseSensitivePaths',
  'clock',
  'deadline',
  'namespace',
  'policies',
  'store',
  'tables',
  'use',
] as const

/** A limit of the other side. `key` defaults to `'global'`, and is the same for all policies. */
export type OutboundPolicy = Omit<PolicyOptions<Request>, (typeof foreign)[number] | 'accept'>

type Shared = Omit<ConfigOptions<Request>, 'policies'>

export interface OutboundOptions
  extends Pick<Shared, Extract<(typeof shared)[number], keyof Shared>>,
    Input<ReturnType<typeof ownFields>> {
  /** The limits of the other side, which each call takes its turn in together: 1 to 128. Required. */
  policies: OutboundPolicy[]
  /**
   * The time limit for the answer of the store: a duration, less than 25 days. After it `onStoreError` answers: by default each process counts
   * alone. Defaults to `'3s'`, or to `wait` if it is shorter, and at least to `'300ms'`.
   */
  deadline?: Shared['deadline']
  /** Variables and secrets, such as `UPSTASH_REDIS_REST_URL`, and bindings: on Workers `env` of `cloudflare:workers`. Defaults to the variables of the process. */
  env?: object
  /** Keeps a Worker alive until units are refunded and slots are released: on Workers `waitUntil` of `cloudflare:workers`. Defaults to nothing. */
  waitUntil?: (promise: Promise<unknown>) => void
}

const anything = v.optional(v.unknown())
const outboundOptions = object(
  () => ({
    ...(Object.fromEntries(shared.map((name) => [name, anything])) as Record<
      (typeof shared)[number],
      typeof anything
    >),
    ...ownFields(),
    ...{ env: anything, waitUntil: anything },
  }),
  // Fields that would have no effect.
  ({ policies, use }, problem) => {
    entriesOf(policies).forEach((policy, index) => {
      for (const name of foreign) {
        if (policy[name] === undefined) continue
        problem(['policies', index, name], 'no value (outbound has no clients to refuse)')
      }
    })
    entriesOf(use).forEach(({ name }, index) => {
      if (unused.includes(name as string)) problem(['use', index], `no ${name}() with outbound`)
    })
  },
)

const entriesOf = (list: unknown): Record<string, unknown>[] =>
  Array.isArray(list) ? list.map(Object) : []

/** @throws {ConfigError} lists every problem */
export function parseOptions(given: OutboundOptions) {
  const options = parsedOptions(outboundOptions, given, 'outbound')
  const { wait, maxWaiting, env: _, waitUntil: __, policies: written, ...rest } = options
  const policies = Array.isArray(written)
    ? written.map((policy) => ({ key: 'global', ...policy }))
    : written
  // A call that may wait has time for a slow start of the process or of the connection.
  const deadline = rest.deadline ?? Math.min(3_000, Math.max(300, wait))
  const slots = new SlotQueues()
  const byDefault = featuresOf(wait, maxWaiting, slots)
  const limiter = createLimiter({ ...rest, policies, deadline }, { byDefault })
  return { limiter, waitMs: wait, maxWaiting, slots }
}

/** Each call stands in one line, so all policies have one key. */
const checkKeys: NonNullable<Feature['check']> = ({ policies }, problem) => {
  if (policies.length === 0) problem(['policies'], 'at least one policy')
  policies.forEach((policy, index) => {
    const { key, onMissingKey } = policy!
    if (JSON.stringify(key) !== JSON.stringify(policies[0]!.key))
      problem(
        ['policies', index, 'key'],
        'the key of policies[0], because a call stands in one line. For another key write outbound(outbound(fetch, …), …)',
      )
    if (onMissingKey !== 'share') problem(['policies', index, 'onMissingKey'], '"share"')
  })
}
