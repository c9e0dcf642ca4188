import { randomUUID } from 'node:crypto'
import { script } from '../../../cli/replay/decide/script-parts.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import type { StoreState } from '../../../src/core/connection/store.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import type { BenchServer } from '../../../tools/bench/server.ts'
import { decode, encode } from '../../support/coding.ts'
import type { Line, Story } from './stories.ts'

/** Runs an example on the real script. Returns the table that docs/explanation/algorithms.md contains. */
export async function replay(server: BenchServer, { policy, lines }: Story): Promise<string> {
  const subject = randomUUID()
  let options = policy
  const limits: string[] = []
  for (const line of lines) {
    options = { ...options, ...line.change }
    const parsed = parseConfig({ policies: [options] }, defaultFields).policies[0]!
    const requests = [
      { mode: 'take' as const, limits: [{ subject, terms: parsed, cost: line.cost ?? 1 }] },
    ]
    const answers: StoreState[] = []
    for (let time = 0; time < (line.times ?? 1); time++) {
      const reply = await server.call({ script, ...encode(requests, timeOf(line.at)) })
      answers.push(decode(reply, requests)!.states[0]![0]!)
    }
    limits.push(rowOf(line, answers))
  }
  return [
    '| at | asks for | | `remaining` | `retryAfter` | `resetAfter` | `nextAfter` | |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...limits,
  ].join('\n')
}

const timeOf = (clock: string) =>
  Date.parse(`2026-01-05T${clock.includes('.') ? clock : `${clock}.0`}00Z`)

function rowOf({ at, times = 1, cost = 1, remark }: Line, answers: StoreState[]): string {
  const last = answers.at(-1)!
  const passed = answers.filter(({ allowed }) => allowed).length
  const request = `${times > 1 ? `${times} × ` : ''}${cost}`
  const verdict =
    passed === times ? 'admitted' : passed === 0 ? '**refused**' : `${passed} admitted`
  const cells = [
    at,
    request,
    verdict,
    last.remaining,
    last.retryAfterMs === null ? 'never' : seconds(last.retryAfterMs),
    seconds(last.resetAfterMs),
    seconds(last.nextAfterMs),
    remark,
  ]
  return `| ${cells.join(' | ')} |`
}

const seconds = (ms: number) => (ms === 0 ? '0' : `${ms / 1000} s`)
