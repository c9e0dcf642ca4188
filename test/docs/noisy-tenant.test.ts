/** The figures of docs/guides/noisy-tenant.md, by a simulation with the deployed code. */
import { expect, test } from 'vitest'
import { simulate } from '../../site/playground/engine/simulate.ts'
import { type Arrival, START } from '../../site/playground/engine/traffic.ts'
import { configOf, examples } from '../support/examples.ts'
import { pageAt } from '../support/pages.ts'

const noisy = 'tenant-0.example.com'

/** The requests of a tenant, evenly spaced. */
const sends = (host: string, aMinute: number, fromMs: number, toMs: number): Arrival[] =>
  Array.from({ length: (aMinute * (toMs - fromMs)) / 60_000 }, (_, n) => ({
    at: START + fromMs + Math.round(((n + 0.5) * 60_000) / aMinute),
    ip: '203.0.113.7',
    method: 'GET',
    url: `https://${host}/`,
    status: 200,
    durationMs: 0,
  }))

const arrivals = [
  ...Array.from({ length: 10 }, (_, n) => sends(`tenant-${n}.example.com`, 40, 0, 300_000)).flat(),
  ...sends(noisy, 1960, 120_000, 300_000),
].sort((one, other) => one.at - other.at)

test('The table has what a simulation gives: without a limit by tenant the others are refused, with it none is.', async () => {
  const example = examples.find(({ name }) => name === 'noisy-tenant')!
  const options = configOf(example.code)
  const row = async (name: string, policies: typeof options.policies) => {
    const { served } = await simulate({ ...options, policies }, arrivals)
    const of = (isNoisy: boolean) =>
      served.filter(({ arrival }) => arrival.url.includes(`/${noisy}/`) === isNoisy)
    const admitted = (list: typeof served) => list.filter(({ decision }) => decision.allowed).length
    const others = of(false)
    return `| ${name} | ${of(true).length}, ${admitted(of(true))} | ${others.length}, ${others.length - admitted(others)} |`
  }
  const [tenant, service] = options.policies
  const rows = [
    await row('only `service`', [service!]),
    await row('`per-tenant` and `service`', [tenant!, service!]),
  ]
  const [, shown] = pageAt('docs/guides/noisy-tenant.md').text.split(/<!-- \/?noisy-tenant -->/)
  expect(shown!.trim().split('\n').slice(2)).toEqual(rows)
  expect(rows[1]).toMatch(/, 0 \|$/)
})
