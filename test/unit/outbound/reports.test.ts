import { expect, test } from 'vitest'
import { coolingOf, reportsOf } from '../../../src/outbound/reports.ts'

const now = Date.UTC(2026, 10, 24, 12)
const reports = (fields: Record<string, string>) => reportsOf(new Headers(fields))
const cooling = (status: number, fields: Record<string, string> = {}) =>
  coolingOf(new Response(null, { status, headers: fields }), now)

test('RateLimit of drafts 8 to 11 has the limit and the window of its policy.', () => {
  const fields = {
    'RateLimit-Policy': '"burst";q=100;w=60,"tokens-daily";q=1000;w=86400',
    RateLimit: '"burst";r=50;t=30, "tokens-daily";r=7',
  }
  expect(reports(fields)).toEqual([
    { kind: 'requests', limit: 100, windowMs: 60_000, left: 50, reset: 30 },
    { kind: 'tokens', limit: 1000, windowMs: 86_400_000, left: 7 },
  ])
})

test('RateLimit of draft 7 is a dictionary.', () => {
  const fields = { 'RateLimit-Policy': '100;w=60', RateLimit: 'limit=100, remaining=50, reset=5' }
  expect(reports(fields)).toEqual([
    { kind: 'requests', limit: 100, windowMs: 60_000, left: 50, reset: 5 },
  ])
})

test('The fields of GitHub, OpenAI and Anthropic are understood.', () => {
  expect(
    reports({
      'X-RateLimit-Limit': '5000',
      'X-RateLimit-Remaining': '4999',
      'X-RateLimit-Reset': '1',
    }),
  ).toEqual([{ kind: 'requests', limit: 5000, left: 4999 }])
  expect(
    reports({
      'x-ratelimit-limit-requests': '500',
      'x-ratelimit-remaining-requests': '499',
      'x-ratelimit-limit-tokens': '30000',
      'x-ratelimit-remaining-tokens': '29000',
      'x-ratelimit-reset-tokens': '6m0s',
    }),
  ).toEqual([
    { kind: 'requests', limit: 500, left: 499 },
    { kind: 'tokens', limit: 30_000, left: 29_000 },
  ])
  expect(
    reports({
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-tokens-remaining': '1000',
    }),
  ).toEqual([
    { kind: 'requests', limit: 50, left: 0 },
    { kind: 'tokens', left: 1000 },
  ])
})

test('A field that two proxies have written is read once, and not if they disagree.', () => {
  expect(reports({ 'X-RateLimit-Remaining': '3, 3' })).toEqual([{ kind: 'requests', left: 3 }])
  expect(reports({ 'X-RateLimit-Remaining': '3, 4' })).toEqual([])
})

test('What is not a report is left out.', () => {
  for (const fields of [
    {},
    { RateLimit: '"' },
    { RateLimit: 'limit=100' },
    { RateLimit: '"a";r=-1' },
    { 'X-RateLimit-Remaining': 'many' },
    { 'X-RateLimit-Remaining': '' },
    { 'X-RateLimit-Remaining': 'Infinity' },
    { 'X-RateLimit-Remaining': '0x10' },
    { 'X-RateLimit-Remaining': '1e3' },
    { RateLimit: '"a";r=?1' },
  ] as Record<string, string>[]) {
    expect(reports(fields)).toEqual([])
  }
})

test('A cooldown is as long as the other side says.', () => {
  expect(cooling(429, { 'Retry-After': '7' })).toBe(7_000)
  expect(cooling(429, { 'X-RateLimit-Reset': '3' })).toBe(3_000)
  expect(cooling(429, { 'Retry-After': '7', 'X-RateLimit-Reset': '3' })).toBe(7_000)
  expect(cooling(503, { 'Retry-After': '2' })).toBe(2_000)
  expect(cooling(403, { 'Retry-After': '60' })).toBe(60_000)
  expect(cooling(403, { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '9' })).toBe(9_000)
})

test('A refusal that tells no time, none that can be read, or one that has passed, has a cooldown of 1 s.', () => {
  expect(cooling(429)).toBe(1_000)
  expect(cooling(403, { 'X-RateLimit-Remaining': '0' })).toBe(1_000)
  const passed = ['0', '0.0', '-1', '2, 3', 'soon', '2s', 'Tue, 24 Nov 2026 11:59:30 GMT']
  for (const value of passed) {
    expect(cooling(429, { 'Retry-After': value })).toBe(1_000)
    expect(cooling(503, { 'Retry-After': value })).toBe(1_000)
  }
})

test('Other responses begin no cooldown.', () => {
  expect(cooling(200, { 'Retry-After': '7' })).toBe(0)
  expect(cooling(200, { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '9' })).toBe(0)
  expect(cooling(503)).toBe(0)
  expect(cooling(503, { 'X-RateLimit-Reset': '9' })).toBe(0)
  expect(cooling(403, { 'Retry-After': '0' })).toBe(0)
  expect(cooling(403, { 'X-RateLimit-Remaining': '10', 'X-RateLimit-Reset': '9' })).toBe(0)
})
