import * as v from 'valibot'
import { findingCodes } from '../finding.ts'
import { condition } from './condition.ts'
import { cost } from './cost.ts'
import { key, onMissingKey } from './key.ts'
import { duration, list, object, oneOf, type Problem, pattern, whole } from './shapes.ts'

/** Of units and window: sums of three such products are exact in a double, so the Lua never rounds. A million a month fits. */
const MAX_PRODUCT = Math.floor(2 ** 53 / 3)

const windows = ['fixed-window', 'sliding-window', 'sliding-log'] as const
const buckets = ['token-bucket', 'gcra', 'leaky-bucket'] as const

const share = v.custom<number>(
  (input) => typeof input === 'number' && input > 0 && input <= 1,
  'a number above 0 and at most 1',
)

const fields = {
  name: pattern('up to 64 letters, digits, "_", "." or "-"', /^[A-Za-z0-9][\w.-]{0,63}$/),
  algorithm: v.optional(oneOf(...windows, ...buckets), 'sliding-window'),
  limit: whole(1),
  window: duration,
  burst: v.optional(whole(1)),
  align: v.optional(oneOf('first-request', 'clock')),
  key: v.optional(key, 'ip'),
  onMissingKey: v.optional(onMissingKey, 'share'),
  match: v.optional(condition, {}),
  cost: v.optional(cost, 1),
  mode: v.optional(oneOf('enforce', 'shadow'), 'enforce'),
  deadline: v.optional(duration),
  onStoreError: v.optional(oneOf('allow', 'deny', 'local'), 'allow'),
  localShare: v.optional(share, 0.25),
  accept: v.optional(list(oneOf(...findingCodes), 0), []),
}

export const policy = object(fields, (input, problem) => {
  checkQuota(input, problem)
  checkParameters(input, problem)
})

function checkQuota(input: Record<string, unknown>, problem: Problem) {
  const { algorithm, limit, window, burst, align } = input
  if (burst !== undefined && windows.some((name) => name === algorithm)) {
    problem(['burst'], `nothing (${algorithm} has no burst)`)
  }
  // A log keeps an entry of 40 to 120 bytes for every unit.
  if (algorithm === 'sliding-log' && typeof limit === 'number' && limit > 10_000) {
    problem(['limit'], 'at most 10000 with sliding-log (sliding-window has no such bound)')
  }
  if (align !== undefined && algorithm !== 'fixed-window') {
    problem(['align'], 'nothing (only fixed-window has an align)')
  }
  for (const [name, size] of Object.entries({ limit, burst })) {
    if (typeof size === 'number' && typeof window === 'number' && size * window > MAX_PRODUCT) {
      problem([name], `at most ${Math.floor(MAX_PRODUCT / window)} with this window`)
    }
  }
}

/** `path:id` is a parameter of the policy's own pattern. */
function checkParameters({ key, onMissingKey, match }: Record<string, unknown>, problem: Problem) {
  const paths = (match as { path?: unknown } | undefined)?.path
  const has = (name: string) =>
    Array.isArray(paths) && paths.some((path) => String(path).split('/').includes(`:${name}`))
  const check = (parts: unknown, at: string[]) => {
    if (!Array.isArray(parts)) return
    parts.forEach((part, index) => {
      if (part?.source === 'path-parameter' && !has(part.name)) {
        problem([...at, index], `a match.path with the parameter :${part.name}`)
      }
    })
  }
  check(key, ['key'])
  check((onMissingKey as { key?: unknown } | undefined)?.key, ['onMissingKey', 'key'])
}
