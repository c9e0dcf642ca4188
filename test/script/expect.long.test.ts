/** The law of expectations, decided by the script in Redis. */
import { expect, test } from 'vitest'
import { canonical } from '../../src/core/base/part.ts'
import type { Match } from '../../src/core/program/match.ts'
import { expectedCase, keepsExpectation } from '../support/expected.ts'
import { property } from '../support/law.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const reached: number[] = []

/** A limiter in Redis for the limits of requests. */
function createLimiter() {
  const prefix = newSubject()
  return async (matches: Match[], now: number) => {
    const limits = matches.map(({ terms, partitionKey, cost }) => ({
      ...{ terms, cost },
      subject: `${prefix}${canonical(partitionKey)}`,
    }))
    const { states } = await server.decide([{ mode: 'take', limits }], now)
    return states[0]!.every((state) => state!.allowed)
  }
}

property(
  'No schedule of requests exceeds an expectation that the linter accepts.',
  expectedCase,
  async (one) => {
    const used = await keepsExpectation(one, createLimiter())
    if (used !== undefined) reached.push(used)
  },
  400,
)

test('Some of these schedules use up an expectation.', () => {
  expect(reached.length).toBeGreaterThan(20)
  expect(reached).toContain(1)
})
