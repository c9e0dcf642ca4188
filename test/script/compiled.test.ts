/** Compiled scripts decide as the general script does. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { script } from '../../cli/replay/decide/script-parts.ts'
import type { StoreRequest } from '../../src/core/connection/store.ts'
import { compiledCalls } from '../../src/core/connection/upstash/sets.ts'
import { encode } from '../support/coding.ts'
import { type Ran, runnerOf } from '../support/compare-scripts.ts'
import { drawCases } from '../support/compiled-cases.ts'
import { lawRuns, property } from '../support/law.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()

/** Sets of limits, and the calls for each of them. One fault of a prototype showed up once in 1,500 calls. */
const SETS = Math.max(100, lawRuns)
const CALLS = 16
const seen = { declined: 0, failed: 0, charged: 0, refused: 0 }

/** Without the number of its commands, which the reply of a compiled script does not have. */
const uncounted = ({ reply, commands }: Ran): Ran => ({
  reply: reply.replace(`:${commands.length + 1} `, ' '),
  commands,
})

/** Counts what a run is an example of. */
function note(ran: Ran) {
  if (ran.reply === 'declined') seen.declined += 1
  else if (ran.reply === 'failed') seen.failed += 1
  else if (ran.reply.includes('-')) seen.refused += 1
  else seen.charged += 1
}

property(
  'A compiled script gives the reply of the general script and calls the same commands, or it declines a foreign record and writes nothing.',
  fc.nat(),
  async (seed) => {
    const callOf = compiledCalls()
    const general = await runnerOf(server, script)
    for (const one of drawCases(seed, CALLS)) {
      const { requests, now, isForeign } = one
      const call = callOf(requests, now)!
      const compiled = await runnerOf(server, call.script.text)
      const expected = await general(one, encode(requests, now))
      const ran = await compiled(one, call)
      const about = JSON.stringify(one)
      note(ran)
      if (ran.reply === 'declined' || ran.reply === 'failed') {
        expect(isForeign, about).toBe(true)
        expect(ran.commands.join('\n'), about).not.toMatch(/SET|DEL/)
      }
      if (ran.reply !== 'declined') expect(ran, about).toEqual(uncounted(expected))
    }
  },
  SETS,
)

test('The law has compared charges, refusals, errors and declined calls.', () => {
  const { charged, refused, failed, declined } = seen
  expect(Math.min(charged, refused) > 20 * SETS ** 0.5, JSON.stringify(seen)).toBe(true)
  expect(Math.min(failed, declined), JSON.stringify(seen)).toBeGreaterThan(0)
})

test('Isolates with and without compiled scripts that share a database admit the whole limit and no unit more.', async () => {
  const terms = (['fixed-window', 'sliding-window', 'token-bucket'] as const).map((algorithm) => ({
    ...{ tag: `t-${algorithm}`, algorithm, limit: 40, burst: 40, windowMs: 86_400_000 },
    ...{ align: 'first-request' as const, localShare: 1 },
  }))
  const subjects = [newSubject(), newSubject(), newSubject()]
  const connections = await Promise.all(Array.from({ length: 4 }, () => server.connect()))
  const callOf = compiledCalls()
  const general = script.replace(/^#!.*\n/, '')
  const admitted = new Map<string, number>()
  const calls = Array.from({ length: 400 }, async (_, index) => {
    // A third of the calls have two keys, and a third leave out the first limit.
    const chosen = subjects.slice(index % 3, (index % 3) + 1 + Number(index % 5 > 3))
    const requests = chosen.map((subject): StoreRequest => {
      const limits = terms.map((one) => ({ subject, terms: one, cost: 1 }))
      return { mode: 'take', limits: index % 7 < 2 ? limits.slice(1) : limits }
    })
    const compiled = index % 2 === 0 && callOf(requests)
    const text = compiled ? compiled.script.text.replace(/^#!.*\n/, '') : general
    const { keys, args } = compiled || encode(requests)
    const command = ['EVAL', text, `${keys.length}`, ...keys, ...args]
    const [, ...replies] = String(await connections[index % 4]!.sendCommand(command)).split(' ')
    for (const [at, reply] of replies.entries()) {
      if (reply.includes('-')) continue
      const subject = chosen[at]!
      admitted.set(subject, (admitted.get(subject) ?? 0) + 1)
    }
  })
  await Promise.all(calls)
  expect(subjects.map((subject) => admitted.get(subject))).toEqual([40, 40, 40])
})
