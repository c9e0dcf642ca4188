/** Checks fields of a policy against each other. Each takes the fields that are valid. */
import type { CalendarUnit } from '../../base/calendar.ts'
import { hasOwnKey } from '../../base/own-key.ts'
import { largestQuota } from '../../base/units.ts'
import type { Condition } from './condition.ts'
import type { KeyPart, OnMissingKey } from './key.ts'
import type { PlanSource } from './plan.ts'
import type { AddProblem } from './shapes.ts'
import { isUnit } from './window.ts'

export const buckets = ['token-bucket', 'gcra'] as const

/** The fields that the checks compare. */
type Valid = Partial<{
  algorithm: string
  window: CalendarUnit | number
  timeZone: string | undefined
  limit: number | { max: number }
  plan: PlanSource | undefined
  burst: number | undefined
  align: string | undefined
  key: KeyPart[]
  onMissingKey: OnMissingKey
  match: Condition
}>

export function checkQuota({ algorithm, window, limit, burst, align }: Valid, problem: AddProblem) {
  if (burst !== undefined && algorithm && !buckets.some((name) => name === algorithm)) {
    problem(['burst'], `no value (${algorithm} has no burst)`)
  }
  if (align !== undefined && algorithm && algorithm !== 'fixed-window') {
    problem(['align'], 'no value (only fixed-window has align)')
  }
  if (!algorithm || typeof window !== 'number') return // calendar windows are fixed windows
  const sizes: [string[], number | undefined][] = [
    typeof limit === 'object' ? [['limit', 'max'], limit.max] : [['limit'], limit],
    [['burst'], burst],
  ]
  for (const [path, size = 0] of sizes) {
    const expected = tooLarge(size, algorithm, window)
    if (expected) problem(path, expected)
  }
}

/** What a message expects instead of a limit or burst that its algorithm cannot count. */
export function tooLarge(size: number, algorithm: string, windowMs: number): string | undefined {
  const most = largestQuota(algorithm, windowMs)
  return size > most && !hasOwnKey(algorithm) // for those check-entries.ts has a message
    ? `at most ${most} with ${algorithm} and this window (for more write algorithm: 'fixed-window', or count larger units, such as cost: { usage: { 'usage.total_tokens': 0.01 } })`
    : undefined
}

export function checkCalendar({ algorithm, window, timeZone, align }: Valid, problem: AddProblem) {
  if (window === undefined) return
  if (!isUnit(window)) {
    if (timeZone !== undefined)
      problem(['timeZone'], 'no value (only the windows day, week and month have a time zone)')
    return
  }
  if (algorithm && algorithm !== 'fixed-window')
    problem(['window'], 'a duration (calendar windows require fixed-window)')
  if (align !== undefined)
    problem(['align'], 'no value (a calendar window opens when its period begins)')
}

/** Reports a key part `path:id` if no path of `match` has the parameter `:id`. */
export function checkParameters({ key, onMissingKey, plan, match }: Valid, problem: AddProblem) {
  if (!match) return
  const check = (part: KeyPart, ...at: (string | number)[]) => {
    if (part.source !== 'path-parameter') return
    const parameter = `:${part.name}`
    if (!match.path?.some((path) => path.split('/').includes(parameter))) {
      problem(at, `a match.path with the parameter ${parameter}`)
    }
  }
  key?.forEach((part, index) => void check(part, 'key', index))
  if (typeof onMissingKey === 'object') {
    onMissingKey.key.forEach((part, index) => void check(part, 'onMissingKey', 'key', index))
  }
  if (plan) check(plan.key, 'plan')
}
