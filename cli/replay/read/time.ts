import { Rejection } from './rejection.ts'
import { flat } from './text.ts'

/** Creates a reader of the stamps of one log, most of which are in the minute of the stamp before. */
export function createStampReader(): (text: string, from: number, end: number) => number {
  let [minute, zone, start] = ['', '', Number.NaN]
  return (text, from, end) => {
    if (minute !== '' && text.startsWith(minute, from) && text.startsWith(zone, end - ZONE)) {
      const time = start + secondOf(text, from + SECOND, end - ZONE)
      if (!Number.isNaN(time)) return time
    }
    const stamp = text.slice(from, end)
    const time = readTime(stamp)
    const into = secondOf(stamp, SECOND, stamp.length - ZONE)
    if (stamp.charCodeAt(2) === SLASH && !Number.isNaN(time - into)) {
      minute = flat(stamp.slice(0, SECOND))
      zone = stamp.slice(-ZONE)
      start = time - into
    }
    return time
  }
}

/** The place of the second in a stamp, and the length of the zone after it. */
const [SECOND, ZONE] = [18, 6]

/** Reads `05` or `05.123` as ms. Returns `NaN` for anything else, also for a leap second. */
function secondOf(text: string, from: number, end: number): number {
  const second = digits(text, from, from + 2)
  if (!(second < 60)) return Number.NaN
  if (end === from + 2) return second * 1000
  const isFraction = end === from + 6 && text.charCodeAt(from + 2) === DOT
  return isFraction ? second * 1000 + digits(text, from + 3, end) : Number.NaN
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const EARLIEST = Date.UTC(2000, 0)
const LATEST = Date.UTC(2100, 0)

/** The reason against a time, or `undefined`. A counter that begins at zero and a clock that is not set are typical mistakes. */
export function timeProblem(time: number): Rejection | undefined {
  if (time >= EARLIEST && time < LATEST) return undefined
  if (Number.isNaN(time)) return new Rejection('the time cannot be read', 'time')
  const year = new Date(time).getUTCFullYear()
  return new Rejection(
    Number.isNaN(year)
      ? 'the time is out of range'
      : `the time is in the year ${year}; times from 2000 to 2099 are accepted`,
    'time',
  )
}

/** Reads a time of any format: `17/May/2015:10:05:03 +0000`, ISO 8601, perhaps as `2015/05/17 10:05:03`, or a number in s, ms, µs or ns. Returns `NaN` if it is none. */
export function readTime(value: unknown): number {
  if (typeof value === 'number') return fromNumber(value)
  if (typeof value !== 'string') return Number.NaN
  const text = value.startsWith('[') ? value.slice(1, -1) : value
  if (text.charCodeAt(2) === SLASH) return clfTime(text)
  if (text.charCodeAt(4) === DASH || text.charCodeAt(4) === SLASH) return isoTime(text)
  return /^\d+(\.\d+)?$/.test(text) ? fromNumber(Number(text)) : Number.NaN
}

/** The unit follows from the size: all times between 1973 and 5138 are told apart. */
function fromNumber(value: number): number {
  if (value < 1e11) return Math.round(value * 1000)
  if (value < 1e14) return Math.floor(value)
  // The number may be off by some hundred ns, because it has only 53 bits.
  return Math.floor(value < 1e17 ? value / 1e3 : value / 1e6 + 0.0005)
}

const SLASH = 47
const DASH = 45

/** Parses `17/May/2015:10:05:03 +0000`, perhaps with a fraction of the second. A time without an offset is UTC. */
export function clfTime(text: string): number {
  const [rest, milliseconds] = fraction(text, 20)
  const month = MONTHS.indexOf(rest.slice(3, 6))
  const hasZone = rest.length !== 20
  const hasLength = !hasZone || rest.length === 26
  if (!hasLength || month < 0 || !/[: ]/.test(rest[11]!)) return Number.NaN
  const date = dateOf(digits(rest, 7, 11), month, digits(rest, 0, 2))
  return date + timeOfDay(rest, 12) + milliseconds - (hasZone ? offset(rest, 20) : 0)
}

const DOT = 46

/** Parses ISO 8601. A time without an offset is UTC. */
export function isoTime(text: string): number {
  const [rest, milliseconds] = fraction(text, 19)
  const date = dateOf(digits(rest, 0, 4), digits(rest, 5, 7) - 1, digits(rest, 8, 10))
  const zone = rest.length === 19 ? 0 : offset(rest, 19)
  return date + timeOfDay(rest, 11) + milliseconds - zone
}

/** Removes a fraction of a second at a position. Returns the rest and the fraction in whole ms. */
function fraction(text: string, at: number): [rest: string, milliseconds: number] {
  const separator = text[at - 1] === ' ' ? at - 1 : at
  if (text[separator] !== '.' && text[separator] !== ',') return [text, 0]
  let end = separator + 1
  while (isDigit(text.charCodeAt(end))) end += 1
  const milliseconds = Math.floor(Number(`0.${text.slice(separator + 1, end)}`) * 1000 + 1e-6)
  return [text.slice(0, separator) + text.slice(end), milliseconds]
}

function dateOf(year: number, month: number, day: number): number {
  const date = Date.UTC(year, month, day)
  return new Date(date).getUTCDate() === day ? date : Number.NaN
}

/** Parses `10:05:03`. The second 60 is a leap second. */
function timeOfDay(text: string, at: number): number {
  const [hour, minute, second] = [
    digits(text, at, at + 2),
    digits(text, at + 3, at + 5),
    digits(text, at + 6, at + 8),
  ]
  const isValid = hour < 24 && minute < 60 && second <= 60
  return isValid ? ((hour * 60 + minute) * 60 + second) * 1000 : Number.NaN
}

/** Parses `Z`, `UTC`, `+02:00`, `+0200`, ` +0200`, `+02`, or `+0000 UTC` as Go writes it. */
function offset(text: string, at: number): number {
  const zone = text.slice(at).trimStart()
  if (/^(?:Z|UTC|GMT)$/i.test(zone)) return 0
  const [, sign, hours, minutes = 0] = /^([+-])(\d\d):?(\d\d)?(?: [A-Z]{3,4})?$/.exec(zone) ?? []
  if (!sign) return Number.NaN
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
}

/** The number that consists of these digits, or `NaN`. */
function digits(text: string, from: number, to: number): number {
  let value = 0
  for (let index = from; index < to; index += 1) {
    const code = text.charCodeAt(index)
    if (!isDigit(code)) return Number.NaN
    value = value * 10 + code - ZERO
  }
  return value
}

const ZERO = 48
const isDigit = (code: number) => code >= ZERO && code <= 57
