/** Limits with a key of their own. Only the features with such an algorithm import this file. */
import type { ScriptPart } from './part.ts'
import { apart as text } from './script-text.ts'

/** The mark, and the numbers of a limit: remaining (below 0 if more is used), retry_after, reset_after, next_after. */
const NUMBERS = /^([+-])(-?\d{1,16}),(-1|\d{1,16}),(\d{1,16}),(\d{1,16})$/

export const apart: ScriptPart = {
  text,
  apart(part, { floor = 0 }) {
    const [, mark, ...numbers] = NUMBERS.exec(part) ?? []
    if (!mark) return undefined
    const [left, retryAfter, resetAfterMs, nextAfterMs] = numbers.map(Number) as FourNumbers
    if ((mark === '+') !== (retryAfter === 0)) return undefined
    const retryAfterMs = retryAfter < 0 ? null : retryAfter
    const remaining = Math.max(0, left)
    const answer = { allowed: mark === '+', remaining, retryAfterMs, resetAfterMs, nextAfterMs }
    return floor ? { ...answer, reserved: Math.max(0, Math.min(floor, left + floor)) } : answer
  },
}

type FourNumbers = [number, number, number, number]
