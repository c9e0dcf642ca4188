import { assert, constantFrom, integer, oneof, property, string, stringMatching } from 'fast-check'
import { expect, test } from 'vitest'
import { resetOf, retryAfterOf } from '../../../../src/core/base/foreign-wait.ts'
import { reportsOf } from '../../../../src/outbound/reports.ts'

const NOW = Date.UTC(2026, 10, 24, 12, 0, 0, 250)
const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000]

type Fields = Record<string, string>
const after = (fields: Fields, now = NOW) => retryAfterOf(new Headers(fields), now)
const reset = (fields: Fields, now = NOW) => {
  const headers = new Headers(fields)
  return resetOf(headers, now, reportsOf(headers))
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

function rfc850(date: Date) {
  const [day, month, year, time] = date.toUTCString().slice(5, -4).split(' ')
  return `${WEEKDAYS[date.getUTCDay()]}, ${day}-${month}-${year!.slice(2)} ${time} GMT`
}

function asctime(date: Date) {
  const day = `${date.getUTCDate()}`.padStart(2)
  const head = `${WEEKDAYS[date.getUTCDay()]!.slice(0, 3)} ${MONTHS[date.getUTCMonth()]} ${day}`
  return `${head} ${date.toISOString().slice(11, 19)} ${date.getUTCFullYear()}`
}

function inZone(date: Date, minutes: number) {
  const local = new Date(date.getTime() + minutes * MINUTE).toISOString().slice(0, -1)
  const clock = new Date(Math.abs(minutes) * MINUTE).toISOString().slice(11, 16)
  return `${local}${minutes < 0 ? '-' : '+'}${clock}`
}

function goDuration(ms: number) {
  const [hours, minutes] = [Math.floor(ms / HOUR), Math.floor(ms / MINUTE) % 60]
  const seconds = (ms % MINUTE) / SECOND
  return ms < SECOND ? `${ms}ms` : `${hours ? `${hours}h` : ''}${minutes}m${seconds}s`
}

/** How other sides write a wait of some ms, and the unit that they round up to, ms. */
interface Format {
  write: (waitMs: number, now: number) => string
  unitMs: number
}

const epoch = (unitMs: number, suffix = '') => ({
  unitMs,
  write: (waitMs: number, now: number) => `${Math.ceil((now + waitMs) / unitMs)}${suffix}`,
})
const dateTime = (unitMs: number, write: (date: Date) => string) => ({
  unitMs,
  write: (waitMs: number, now: number) =>
    write(new Date(Math.ceil((now + waitMs) / unitMs) * unitMs)),
})

const milliseconds: Format = { unitMs: 1, write: (waitMs) => `${waitMs}` }
const times: Record<string, Format> = {
  seconds: { unitMs: SECOND, write: (waitMs) => `${Math.ceil(waitMs / SECOND)}` },
  'seconds with one decimal': {
    unitMs: 100,
    write: (waitMs) => (Math.ceil(waitMs / 100) / 10).toFixed(1),
  },
  'seconds with three decimals': { unitMs: 1, write: (waitMs) => (waitMs / SECOND).toFixed(3) },
  'epoch seconds': epoch(SECOND),
  'epoch seconds with decimals': {
    unitMs: 1,
    write: (waitMs, now) => ((now + waitMs) / SECOND).toFixed(3),
  },
  'epoch milliseconds': epoch(1),
  'epoch microseconds': epoch(1, '000'),
  'epoch nanoseconds': epoch(1, '000000'),
  'today’s form of a date': dateTime(SECOND, (date) => date.toUTCString()),
  'the date of RFC 850': dateTime(SECOND, rfc850),
  'the date of asctime': dateTime(SECOND, asctime),
  'RFC 3339': dateTime(1, (date) => date.toISOString()),
  'RFC 3339 without fraction': dateTime(SECOND, (date) => date.toISOString().replace('.000', '')),
  'RFC 3339 with a blank': dateTime(1, (date) => date.toISOString().replace('T', ' ')),
  'RFC 3339 in India': dateTime(1, (date) => inZone(date, 330)),
  'RFC 3339 in Newfoundland': dateTime(1, (date) => inZone(date, -150)),
  'ISO 8601 without seconds': dateTime(MINUTE, (date) => `${date.toISOString().slice(0, 16)}Z`),
  'ISO 8601 with a basic offset': dateTime(1, (date) => inZone(date, -90).replace(/:(..)$/, '$1')),
}
const durations: Record<string, Format> = {
  'a duration of Go': { unitMs: 1, write: goDuration },
  'a duration in milliseconds': { unitMs: 1, write: (waitMs) => `${waitMs}ms` },
}

/** The fields with one value, and the formats that their senders use. */
const AFTER: Record<string, Record<string, Format>> = {
  'Retry-After': times,
  'Retry-After-Ms': { milliseconds, 'epoch milliseconds': epoch(1) },
  'X-Ms-Retry-After-Ms': { milliseconds, 'epoch milliseconds': epoch(1) },
}
const RESETS = [
  'RateLimit-Reset', // draft 6, GitLab, Twitch
  'X-RateLimit-Reset', // GitHub, Discord, Reddit, OpenRouter, Jira
  'X-Rate-Limit-Reset', // X, Okta
  'X-RateLimit-Reset-After', // Discord
  'X-RateLimit-Reset-Requests', // OpenAI, Groq
  'X-RateLimit-Reset-Tokens',
  'X-RateLimit-Reset-Requests-Day', // Cerebras
  'Anthropic-RateLimit-Requests-Reset',
  'Anthropic-RateLimit-Input-Tokens-Reset',
  'X-RateLimit-Requests-Reset', // Linear
  'X-RateLimit-Perhour-Reset', // Tumblr
  'X-RateLimit-UserReset', // Imgur
  'X-App-Limit-24Hour-Reset', // X
]

const waits = oneof(integer({ min: 1, max: DAY }), integer({ min: 1, max: 5_000 }))
const clocks = integer({ min: Date.UTC(2020, 0), max: Date.UTC(2099, 0) })

/** For every wait and time, what is read is not before what was written, and less than a unit after it. */
function readsAll({ write, unitMs }: Format, read: (text: string, now: number) => unknown) {
  assert(
    property(waits, clocks, (waitMs, now) => {
      const text = write(waitMs, now)
      const told = read(text, now) as number
      expect(Number.isInteger(told), text).toBe(true)
      expect(told, text).toBeGreaterThanOrEqual(waitMs)
      expect(told, text).toBeLessThan(waitMs + unitMs)
    }),
  )
}

for (const [name, formats] of Object.entries(AFTER)) {
  test(`${name} is read in each format, rounded up to whole ms.`, () => {
    for (const format of Object.values(formats)) {
      readsAll(format, (text, now) => after({ [name]: text }, now))
    }
  })
}

test('The fields of a reset are read in each format, rounded up to whole ms.', () => {
  for (const format of Object.values({ ...times, ...durations })) {
    readsAll(format, (text, now) => reset({ 'X-RateLimit-Reset': text }, now))
  }
  for (const name of RESETS) expect([name, reset({ [name]: '7' })]).toEqual([name, 7_000])
  expect(reset({ 'X-RateLimit-Reset-Ms': '250' })).toBe(250)
})

test('RateLimit of drafts 7 to 11 has the wait in seconds.', () => {
  readsAll(times.seconds!, (text, now) => reset({ RateLimit: `"name";r=0;t=${text}` }, now))
  readsAll(times.seconds!, (text, now) =>
    reset({ RateLimit: `limit=10, remaining=0, reset=${text}` }, now),
  )
})

test('The reported cases are read as they are meant.', () => {
  expect(after({ 'Retry-After': '0.493' })).toBe(493)
  expect(after({ 'Retry-After': '1.9' })).toBe(1_900)
  expect(after({ 'Retry-After': '2.0' })).toBe(2_000)
  expect(after({ 'Retry-After': '0.0001' })).toBe(1)
  expect(after({ 'Retry-After-Ms': '900.9' })).toBe(901)
  expect(after({ 'Retry-After': `${(NOW + 3_750) / 1000}` })).toBe(3_750)
  expect(reset({ 'X-RateLimit-Reset': `${NOW + 10_000}` })).toBe(10_000)
  expect(reset({ 'X-RateLimit-Reset-Tokens': '6m0s' })).toBe(360_000)
  expect(reset({ 'X-RateLimit-Reset-Requests': '2m59.56s' })).toBe(179_560)
  expect(reset({ 'X-RateLimit-Reset-Requests': '120ms' })).toBe(120)
  expect(reset({ 'X-RateLimit-Reset-Requests': '1d0h30m' })).toBe(DAY + HOUR / 2)
})

test('The first field that can be read counts, the one in ms first.', () => {
  expect(after({ 'Retry-After-Ms': '250', 'Retry-After': '1' })).toBe(250)
  expect(after({ 'Retry-After-Ms': 'soon', 'Retry-After': '1' })).toBe(1_000)
  expect(after({ 'X-Ms-Retry-After-Ms': '-1', 'Retry-After': '5' })).toBe(5_000)
})

test('A field that proxies have repeated is read once, and not if they disagree.', () => {
  const date = 'Tue, 24 Nov 2026 12:00:30 GMT'
  expect(after({ 'Retry-After': '2, 2' })).toBe(2_000)
  expect(after({ 'Retry-After': '2,2,2' })).toBe(2_000)
  expect(after({ 'Retry-After': `${date}, ${date}` })).toBe(29_750)
  expect(after({ 'Retry-After': '2, 3' })).toBeUndefined()
  expect(after({ 'Retry-After': `${date}, 2` })).toBeUndefined()
  expect(after({ 'Retry-After': '2, ' })).toBeUndefined()
})

test('Of several limits, the longest wait of those with nothing left counts, or of all if none says so.', () => {
  const openai = { 'X-RateLimit-Reset-Requests': '1s', 'X-RateLimit-Reset-Tokens': '6m0s' }
  expect(reset(openai)).toBe(360_000)
  expect(reset({ ...openai, 'X-RateLimit-Remaining-Requests': '0' })).toBe(1_000)
  expect(reset({ ...openai, 'X-RateLimit-Remaining-Tokens': '20' })).toBe(360_000)
  expect(reset({ RateLimit: '"burst";r=0;t=2, "daily";r=900;t=40000' })).toBe(2_000)
  expect(reset({ RateLimit: 'burst;r=0;t=2, daily;r=900;t=40000' })).toBe(2_000)
  expect(reset({ RateLimit: '"burst";r=0;t=2, "daily";r=0;t=40000' })).toBe(40_000_000)
  const windows = { 'X-RateLimit-Perhour-Reset': '60', 'X-RateLimit-Perday-Reset': '3600' }
  expect(reset({ ...windows, 'X-RateLimit-Perhour-Remaining': '0' })).toBe(60_000)
  const discord = { 'X-RateLimit-Reset-After': '1.5', 'X-RateLimit-Remaining': '0' }
  expect(reset({ ...discord, 'RateLimit-Reset': '60' })).toBe(1_500)
})

test('A wait of 0 and a time that has passed are the shortest wait.', () => {
  for (const text of [
    '0',
    '0.0',
    `${NOW - 1}`,
    `${Math.floor(NOW / 1000)}`,
    '1000000000',
    'Tue, 24 Nov 2026 11:59:59 GMT',
    'Sunday, 22-Nov-26 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
    '2026-11-24T12:00:00Z',
  ]) {
    expect([text, after({ 'Retry-After': text })]).toEqual([text, 1_000])
    expect([text, reset({ 'X-RateLimit-Reset': text })]).toEqual([text, 1_000])
  }
  expect(reset({ 'X-RateLimit-Reset-Requests': '0s' })).toBe(1_000)
})

test('A wait of more than 25 h is not believed: the other side is asked again after 1 h.', () => {
  expect(after({ 'Retry-After': '90000' })).toBe(25 * HOUR)
  for (const text of ['90001', '3600000', '999999999', `${NOW + 2 * DAY}`]) {
    expect([text, after({ 'Retry-After': text })]).toEqual([text, HOUR])
  }
  expect(after({ 'Retry-After': 'Wed, 24 Nov 2027 12:00:00 GMT' })).toBe(HOUR)
  expect(reset({ 'X-RateLimit-Reset': '2027-11-24T12:00:00Z' })).toBe(HOUR)
})

const GARBAGE = [
  ...['', '-1', '+1', '-0', '.5', '5.', '1e3', '0x10', '1_000', 'NaN', 'Infinity', 'null'],
  ...[
    '1.2.3',
    '1 2',
    '1;2',
    '2 seconds',
    '5 s',
    '5min',
    'h',
    's',
    '-5s',
    '1s 2ms',
    '1.5.2s',
    '1constructor',
    '5µs',
    '5y',
    'P1D',
  ],
  ...['2026-11-24', '24 Nov 2026', 'Nov 24, 2026', '11/24/2026', '2026-11-24T12:00:30'],
  ...['2026-02-30T12:00:00Z', '2026-11-24T25:00:00Z', '2026-11-24T12:00:30+25:00'],
  'Tue, 24 Nov 2026 12:00:30 UTC',
  'Tue, 24 Nov 2026 12:00:30 +0100',
  'Tue, 24 Nov 2026 12:00:30',
  'tue, 24 nov 2026 12:00:30 gmt',
  'Mon, 24 Nov 2026 12:00:30 GMT', // it is a Tuesday
  'Tue, 31 Nov 2026 12:00:30 GMT',
  'Tue, 24 Nov 26 12:00:30 GMT',
  'Sun, 24-Nov-26 12:00:30 GMT',
  'Sunday, 06-Nov-94 08:49:37 GMT', // of 1994
  'Sun, 1 Nov 2026 12:00:30 GMT',
  'Tue Nov 24 2026 13:00:30 GMT+0100 (Central European Standard Time)',
]

test('What has no clear meaning is absent.', () => {
  expect(after({ 'Retry-After': '9'.repeat(400) })).toBeUndefined()
  for (const text of GARBAGE) {
    expect([text, after({ 'Retry-After': text })]).toEqual([text, undefined])
    expect([text, reset({ 'X-RateLimit-Reset': text })]).toEqual([text, undefined])
    expect([text, reset({ RateLimit: text })]).toEqual([text, undefined])
  }
  expect(after({ 'Retry-After': '2s' })).toBeUndefined() // no field of HTTP has a duration of Go
  expect(reset({ RateLimit: '"a";r=0' })).toBeUndefined()
  expect(reset({ RateLimit: '"a";r=0;t=-5' })).toBeUndefined()
  expect(after({})).toBeUndefined()
  expect(reset({})).toBeUndefined()
})

test('Any text is absent or a wait from 1 ms to 25 h.', () => {
  const pieces = constantFrom(...GARBAGE, '0', '7', '1.5', '24 Nov', 'GMT', '6m', '120ms', ', ')
  const texts = oneof(
    stringMatching(/^[\x21-\x7e ]{0,40}$/),
    stringMatching(/^[-+]?[0-9.]{1,30}(e[0-9]|s|ms|m|h)?$/),
    string({ unit: pieces, maxLength: 6 }),
  )
  assert(
    property(texts, clocks, (text, now) => {
      const value = text.trim()
      for (const told of [
        after({ 'Retry-After': value }, now),
        after({ 'Retry-After-Ms': value }, now),
        reset({ 'X-RateLimit-Reset': value }, now),
        reset({ RateLimit: value }, now),
        reset({ RateLimit: `"a";r=0;t=${value}` }, now),
      ]) {
        if (told === undefined) continue
        expect(Number.isInteger(told)).toBe(true)
        expect(told).toBeGreaterThanOrEqual(1)
        expect(told).toBeLessThanOrEqual(25 * HOUR)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('A long text takes no long time.', () => {
  const begun = performance.now()
  for (const piece of ['1', '1.', ',', '2, ', ' ', '1h', '1m1s', '0:', 'Tue, ', '-', 'limit']) {
    const text = piece.repeat(Math.ceil(100_000 / piece.length))
    after({ 'Retry-After': `${text}!` })
    reset({ 'X-RateLimit-Reset': `${text}!`, RateLimit: `${text}!` })
    reset({ [`${piece.replace(/[^a-z0-9-]/gi, '')}x`.repeat(10_000)]: '1' })
  }
  expect(performance.now() - begun).toBeLessThan(3_000)
})
