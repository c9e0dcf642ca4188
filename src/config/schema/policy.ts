import * as v from 'valibot'
import { isTimeZone } from '../../base/calendar.ts'
import { findingCodes } from '../findings.ts'
import { countOnly, limits, penalty, plan } from './act.ts'
import { condition } from './condition.ts'
import { cost } from './cost.ts'
import { key, onMissingKey } from './key.ts'
import { lease } from './lease.ts'
import { duration, list, name, object, oneOf, type Problem, timeout, whole } from './shapes.ts'

/** Of units and window: sums of three such products are exact in a double, so the Lua never rounds. A million a month fits. */
const MAX_PRODUCT = Math.floor(2 ** 53 / 3)

const windows = ['fixed-window', 'sliding-window', 'sliding-log', 'concurrency'] as const
const buckets = ['token-bucket', 'gcra', 'leaky-bucket'] as const

const units = ['day', 'week', 'month'] as const
const isUnit = (input: unknown) => units.some((unit) => unit === input)
/** Of a calendar's periods, with an hour to spare for a change of the clock. */
export const LONGEST_MS = { day: 25 * 3_600_000, week: 169 * 3_600_000, month: 745 * 3_600_000 }

const share = v.custom<number>(
  (input) => typeof input === 'number' && input > 0 && input <= 1,
  'a number above 0 and at most 1',
)

const fields = {
  name,
  algorithm: v.optional(oneOf(...windows, ...buckets), 'sliding-window'),
  limit: whole(1),
  window: v.lazy((input) => (isUnit(input) ? oneOf(...units) : duration)),
  timeZone: v.optional(v.custom<string>(isTimeZone, 'a time zone like "Europe/Berlin"')),
  limits: v.optional(limits, {}),
  plan: v.optional(plan),
  countOnly: v.optional(countOnly),
  penalty: v.optional(penalty),
  lease: v.optional(lease),
  burst: v.optional(whole(1)),
  align: v.optional(oneOf('first-request', 'clock')),
  key: v.optional(key, 'ip'),
  onMissingKey: v.optional(onMissingKey, 'share'),
  match: v.optional(condition, {}),
  cost: v.optional(cost, 1),
  mode: v.optional(oneOf('enforce', 'shadow'), 'enforce'),
  check: v.optional(oneOf('before', 'parallel'), 'before'),
  deadline: v.optional(timeout),
  onStoreError: v.optional(oneOf('allow', 'deny', 'local')),
  localShare: v.optional(share, 1),
  accept: v.optional(list(oneOf(...findingCodes), 0), []),
}

export const policy = object(fields, (input, problem) => {
  checkQuota(input, problem)
  checkCalendar(input, problem)
  checkPlan(input, problem)
  checkConcurrency(input, problem)
  checkLease(input, problem)
  checkParameters(input, problem)
})

const { algorithm, limit, burst } = fields

/** How often callers of the decision API may call it: a policy on each of them. */
export const callers = v.pipe(
  object({ algorithm, limit, window: duration, burst }, checkQuota),
  v.check(({ algorithm }) => algorithm !== 'concurrency', 'an algorithm of calls in a window'),
  v.transform((quota) => v.parse(policy, { ...quota, name: 'api-callers', key: 'global' })),
)

function checkQuota(input: Record<string, unknown>, problem: Problem) {
  const { algorithm, limit, burst, align, limits } = input
  const window = LONGEST_MS[input.window as 'day'] ?? input.window
  if (burst !== undefined && windows.some((name) => name === algorithm)) {
    problem(['burst'], `nothing (${algorithm} has no burst)`)
  }
  if (align !== undefined && algorithm !== 'fixed-window') {
    problem(['align'], 'nothing (only fixed-window has an align)')
  }
  const sizes: [(string | number)[], unknown][] = [
    [['limit'], limit],
    [['burst'], burst],
    ...Object.entries(limits ?? {}).map(([name, size]): [string[], unknown] => [
      ['limits', name],
      size,
    ]),
  ]
  for (const [path, size] of sizes) {
    if (typeof size !== 'number') continue
    // A log keeps an entry of 40 to 120 bytes for every unit, and so do slots.
    if (algorithm === 'sliding-log' && size > 10_000) {
      problem(path, 'at most 10000 with sliding-log (sliding-window has no such bound)')
    }
    if (algorithm === 'concurrency' && size > 10_000)
      problem(path, 'at most 10000 with concurrency')
    if (typeof window === 'number' && size * window > MAX_PRODUCT) {
      problem(path, `at most ${Math.floor(MAX_PRODUCT / window)} with this window`)
    }
  }
}

function checkCalendar(
  { algorithm, window, timeZone, align }: Record<string, unknown>,
  problem: Problem,
) {
  if (!isUnit(window)) {
    if (timeZone !== undefined)
      problem(['timeZone'], 'nothing (only a window of a day, week or month has one)')
    return
  }
  if (algorithm !== 'fixed-window')
    problem(['window'], 'a duration (only fixed-window has calendar windows)')
  if (align !== undefined) problem(['align'], 'nothing (the calendar says when a window opens)')
}

function checkPlan({ limits, plan }: Record<string, unknown>, problem: Problem) {
  if (typeof limits !== 'object' || limits === null) return
  const some = Object.keys(limits).length > 0
  if (plan !== undefined && !some) problem(['limits'], 'a limit for each plan')
  if (plan === undefined && some) {
    problem(['plan'], 'what tells the plan of a request, like "header:x-plan"')
  }
}

function checkConcurrency(input: Record<string, unknown>, problem: Problem) {
  if (input.algorithm !== 'concurrency') return
  if (input.countOnly !== undefined)
    problem(['countOnly'], 'nothing (a slot ends with its request)')
  if ((input.cost as { response?: string } | undefined)?.response !== undefined) {
    problem(['cost', 'response'], 'nothing (a slot ends with its request)')
  }
  if (input.check === 'parallel') {
    problem(['check'], 'before (the origin is asked once there is a slot)')
  }
  if (input.onStoreError === 'local') {
    problem(['onStoreError'], 'allow or deny (an isolate cannot count what is in flight elsewhere)')
  }
}

/** What is spent without a call cannot keep every promise. */
function checkLease(input: Record<string, unknown>, problem: Problem) {
  const { lease, algorithm, countOnly, penalty, cost } = input
  if (lease === undefined) return
  const why =
    algorithm === 'sliding-log'
      ? 'sliding-log promises that no window has more than the limit'
      : algorithm === 'concurrency'
        ? 'each slot is held by a request'
        : countOnly !== undefined || (cost as { response?: string } | undefined)?.response
          ? 'what it costs is known after the answer'
          : penalty !== undefined
            ? 'a ban would not be seen'
            : undefined
  if (why) problem(['lease'], `nothing (${why})`)
}

/** `path:id` is a parameter of the policy's own pattern. */
function checkParameters(input: Record<string, unknown>, problem: Problem) {
  const { key, onMissingKey, plan, match } = input as Record<string, { key?: unknown } | undefined>
  const paths = (match as { path?: unknown } | undefined)?.path
  const has = (name: string) =>
    Array.isArray(paths) && paths.some((path) => String(path).split('/').includes(`:${name}`))
  const check = (part: unknown, ...at: (string | number)[]) => {
    const { source, name } = (part ?? {}) as { source?: string; name?: string }
    if (source === 'path-parameter' && !has(name!)) {
      problem(at, `a match.path with the parameter :${name}`)
    }
  }
  const checkAll = (parts: unknown, ...at: string[]) => {
    if (Array.isArray(parts)) parts.forEach((part, index) => void check(part, ...at, index))
  }
  checkAll(key, 'key')
  checkAll(onMissingKey?.key, 'onMissingKey', 'key')
  check(plan?.key, 'plan')
}
