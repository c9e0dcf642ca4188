import type { CalendarUnit } from '../../base/calendar.ts'
import { duration, either, oneOf } from './shapes.ts'

const units = ['day', 'week', 'month'] as const

export const isUnit = (input: unknown): input is CalendarUnit =>
  units.some((unit) => unit === input)

/** The longest calendar periods, including the extra hour of a daylight-saving change. */
export const LONGEST_MS = { day: 25 * 3_600_000, week: 169 * 3_600_000, month: 745 * 3_600_000 }

/** A duration, or a period of the calendar. */
export const window = either(isUnit, duration, oneOf(...units))
