/** Values as text, for the terminal and for the page. */
import { numberText } from '../../dashboard/page/text.ts'
import type { Bounds } from './types.ts'

const percents = new Intl.NumberFormat('en', {
  style: 'percent',
  maximumFractionDigits: 1,
  maximumSignificantDigits: 2,
  roundingPriority: 'morePrecision',
})

/** A share with at least two significant digits: `12.3%`, `0.0023%`. */
export const percentText = (share: number): string => percents.format(share)

/** Bounds in a table: `212 to 240`, or one number if both are equal. */
export function rangeText(range: Bounds | number, text = numberText): string {
  const { low, high } = typeof range === 'number' ? { low: range, high: range } : range
  const [first, last] = [text(low), text(high)]
  return first === last ? first : `${first} to ${last}`
}

/** Bounds in a sentence: `between 212 and 240`. */
export const betweenText = ({ low, high }: Bounds): string =>
  low === high ? numberText(low) : `between ${numberText(low)} and ${numberText(high)}`

/** The bounds of a frequency: `at least 212` if the high one is only an estimate. */
export const atLeastText = ({ low, high }: Bounds): string =>
  low === high ? numberText(low) : `at least ${numberText(low)}`

/** A time in UTC: `2026-11-23 10:05:03`. */
export const timeText = (ms: number): string => isoText(ms).slice(0, 19)
/** A time without seconds. */
export const minuteText = (ms: number): string => isoText(ms).slice(0, 16)

const isoText = (ms: number) => new Date(ms).toISOString().replace('T', ' ')

/** `1 request`, `2 requests`. */
export const countText = (count: number, noun: string): string =>
  `${numberText(count)} ${noun}${count === 1 ? '' : 's'}`

/** The longest path or user agent in a report, in characters. */
const LONGEST = 200

/** The beginning of a long text from a log, as `plainText` writes it. */
export const shortText = (text: string): string =>
  text.length > LONGEST ? `${plainText(text.slice(0, LONGEST))}…` : plainText(text)

/**
 * A text from a log in one line. Control characters could command a terminal, and invisible ones could change the order of the
 * text around them, so that both are written as `\u{1b}`.
 */
export const plainText = (text: string): string =>
  text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  )
