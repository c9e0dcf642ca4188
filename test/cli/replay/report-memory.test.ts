/** The parts of a tally that keep its memory constant. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { Frequent, Texts } from '../../../cli/replay/report/frequent.ts'
import { Slots } from '../../../cli/replay/report/slots.ts'
import { createTally, type TallyOptions } from '../../../cli/replay/report/tally.ts'
import {
  ADMITTED,
  contextOf,
  decidedAs,
  lineAt,
  PER_IP,
  REFUSED,
  START,
} from '../../support/replay-report.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function usedMemory() {
  collect()
  return process.memoryUsage().heapUsed
}

describe('the clients that are remembered', () => {
  const tallyOf = (options: Partial<TallyOptions>) =>
    createTally({ policies: [PER_IP], ...options })

  test('A refused client is remembered, however many others follow.', () => {
    const tally = tallyOf({ maxClients: 10 })
    tally.add([decidedAs(lineAt(0, { ip: '192.0.2.1' }), REFUSED)])
    for (let n = 0; n < 500; n += 1) {
      tally.add([decidedAs(lineAt(n, { ip: `198.51.${n >> 8}.${n & 255}` }), ADMITTED)])
    }
    tally.add([decidedAs(lineAt(600, { ip: '192.0.2.1' }), REFUSED)])
    const { clients, offenders, total } = tally.result(contextOf())
    expect(clients).toEqual({ count: 501, exact: false })
    expect(total.clients).toEqual({ low: 1, high: 1 })
    expect(offenders).toMatchObject([{ client: '192.0.2.1', requests: 2 }])
  })

  test('A client without refusals that comes back after it was forgotten counts twice.', () => {
    const tally = tallyOf({ maxClients: 2 })
    const ips = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.1']
    tally.add(ips.map((ip, n) => decidedAs(lineAt(n, { ip }), ADMITTED)))
    expect(tally.result(contextOf()).clients).toEqual({ count: 5, exact: false })
  })

  test('Among refused clients those with the most refusals are remembered.', () => {
    const tally = tallyOf({ maxClients: 10 })
    for (let n = 1; n <= 40; n += 1) {
      const one = decidedAs(lineAt(n, { ip: `192.0.2.${n}` }), REFUSED)
      tally.add(Array.from({ length: n === 7 ? 50 : 1 }, () => one))
    }
    const { offenders } = tally.result(contextOf())
    expect(offenders[0]).toMatchObject({ client: '192.0.2.7', refused: { low: 50, high: 50 } })
    expect(offenders.length).toBeLessThanOrEqual(10)
  })

  test('Many addresses of one IPv6 network are one client.', () => {
    const tally = tallyOf({ maxClients: 4 })
    for (let n = 0; n < 100; n += 1) {
      tally.add([decidedAs(lineAt(n, { ip: `2001:db8::${n.toString(16)}` }), REFUSED)])
    }
    const { clients, offenders } = tally.result(contextOf())
    expect(clients).toEqual({ count: 1, exact: true })
    expect(offenders).toMatchObject([{ requests: 100 }])
  })

  test('A client without details gets some when it is refused.', () => {
    const tally = tallyOf({ maxDetails: 2 })
    const ips = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.3']
    const verdicts = [ADMITTED, ADMITTED, ADMITTED, REFUSED]
    tally.add(ips.map((ip, n) => decidedAs(lineAt(n, { ip }), verdicts[n]!)))
    const [{ requests, paths }] = tally.result(contextOf()).offenders as [never]
    expect([requests, paths]).toMatchObject([2, { requests: 1 }])
  })

  test('400,000 clients and texts need less than 150 MB.', { timeout: 60_000 }, () => {
    const before = usedMemory()
    const tally = tallyOf({})
    for (let n = 0; n < 400_000; n += 1) {
      const ip = `${10 + (n >> 18)}.${(n >> 12) & 63}.${(n >> 6) & 63}.${n & 63}`
      const more = { ip, target: `/pages/number/${n}`, userAgent: `agent of a client ${n}` }
      tally.add([decidedAs(lineAt(n / 1000, more), n % 10 === 0 ? REFUSED : ADMITTED)])
    }
    expect(tally.result(contextOf()).clients.count).toBe(400_000)
    expect(usedMemory() - before).toBeLessThan(150e6)
  })
})

describe('the slots of a report', () => {
  test.each<[seconds: number, slotMs: number]>([
    [499, 1000],
    [500, 2000],
    [999, 2000],
    [1000, 10_000],
    [86_400, 300_000],
    [30 * 86_400, 7_200_000],
    [365 * 86_400, 86_400_000],
    [80 * 365 * 86_400, 64 * 86_400_000],
  ])('A log of %d s has slots of %d ms, and no count is lost.', (seconds, slotMs) => {
    const slots = new Slots()
    const series = slots.series()
    const times = Array.from({ length: 1000 }, (_, n) => START + (n / 999) * seconds * 1000)
    for (const time of times) series[slots.at(time)]! += 1
    expect(slots.length).toBe(slotMs)
    expect(slots.used).toBeLessThanOrEqual(500)
    expect(slots.from % slotMs).toBe(0)
    const counts = Array.from({ length: slots.used }, (_, slot) => {
      const from = slots.from + slot * slotMs
      return times.filter((time) => time >= from && time < from + slotMs).length
    })
    expect([...series.subarray(0, slots.used)]).toEqual(counts)
  })
})

describe('the most frequent texts', () => {
  test('Up to 32 texts are counted exactly.', () => {
    const frequent = new Frequent()
    const texts = new Texts()
    for (let n = 0; n < 100; n += 1) frequent.add(`/${n % 32 < 3 ? 'a' : n % 32}`, texts)
    expect(frequent.report(1)).toEqual({
      requests: 100,
      different: { low: 30, high: 30 },
      top: [{ text: '/a', requests: { low: 12, high: 12 } }],
    })
  })

  test('Among many rare texts a frequent one is found, and its bounds hold its number.', () => {
    const frequent = new Frequent()
    const texts = new Texts()
    for (let n = 0; n < 10_000; n += 1) frequent.add(n % 5 === 0 ? '/login' : `/rare/${n}`, texts)
    const { different, top } = frequent.report(2)
    expect(top[0]!.text).toBe('/login')
    expect(top[0]!.requests.low).toBeLessThanOrEqual(2000)
    expect(top[0]!.requests.high).toBeGreaterThanOrEqual(2000)
    expect(different).toEqual({ low: 33, high: expect.any(Number) })
    expect(different.high).toBeGreaterThanOrEqual(8001)
  })

  test('A long text is cut.', () => {
    const frequent = new Frequent()
    frequent.add('x'.repeat(5000), new Texts())
    expect(frequent.report(1).top[0]!.text).toHaveLength(200)
  })
})
