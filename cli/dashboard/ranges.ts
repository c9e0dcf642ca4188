/** The spans of time that the page can show. Types and constants, for the page and its server. */
import type { Stats } from '../../src/features/observe/report.ts'

export const ranges = {
  minutes: { label: '10 min', slotMs: 10_000, slots: 60 },
  hour: { label: '1 h', slotMs: 60_000, slots: 60 },
  day: { label: '24 h', slotMs: 1_200_000, slots: 72 },
  /** Only a sink keeps as much. */
  week: { label: '7 d', slotMs: 10_800_000, slots: 56 },
} as const

export type Range = keyof typeof ranges

/** The answer of `GET /history`. */
export interface History {
  slots: Stats['slots']
  /** When the first of the counts began, ms since the epoch. */
  since: number
  /** How many isolates have been seen. Absent for the counts of all. */
  isolates?: number
}
