/** The numbers of a report, on small logs that are counted by hand. */
import { describe, expect, test } from 'vitest'
import { createTally } from '../../../cli/replay/report/tally.ts'
import {
  ADMITTED,
  contextOf,
  decidedAs,
  lineAt,
  PER_IP,
  REFUSED,
  START,
  verdict,
} from '../../support/replay-report.ts'

const tallyOf = (...policies: { name: string; mode: 'enforce' | 'shadow' }[]) =>
  createTally({ policies: policies.length > 0 ? policies : [PER_IP] })

describe('the counts of a policy', () => {
  test('A log without a request has zeros, and no times.', () => {
    const report = tallyOf().result(contextOf())
    expect(report).toMatchObject({ version: 1, from: null, to: null, offenders: [] })
    expect(report.policies).toEqual([
      {
        name: 'per-ip',
        kind: 'policy',
        mode: 'enforce',
        requests: 0,
        refused: { low: 0, high: 0 },
        share: { low: 0, high: 0 },
        clients: { low: 0, high: 0 },
        firstRefusal: null,
        worstMinute: null,
        overTime: { requests: [], low: [], high: [] },
      },
    ])
  })

  test('A shadow policy refuses nothing, and its refusals count apart.', () => {
    const tally = tallyOf(PER_IP, { name: 'new', mode: 'shadow' })
    tally.add([
      decidedAs(lineAt(0), verdict(['per-ip', 'new'], [], ['new'])),
      decidedAs(lineAt(1), verdict(['per-ip', 'new'], ['per-ip'], ['new'])),
    ])
    const { total, wouldRefuse, policies, offenders } = tally.result(contextOf())
    expect(total.refused).toEqual({ low: 1, high: 1 })
    expect(wouldRefuse).toEqual({ low: 1, high: 1 })
    expect(policies.map(({ name, mode, refused }) => [name, mode, refused.high])).toEqual([
      ['per-ip', 'enforce', 1],
      ['new', 'shadow', 2],
    ])
    expect(offenders[0]).toMatchObject({
      refused: { low: 1, high: 1 },
      wouldRefuse: { low: 1, high: 1 },
      policies: [
        { name: 'new', refused: { low: 2, high: 2 } },
        { name: 'per-ip', refused: { low: 1, high: 1 } },
      ],
    })
  })

  test('Entries of deny and missing keys have rows of their own.', () => {
    const tally = tallyOf()
    const denied = { ...verdict([]), allowed: false }
    tally.add([
      decidedAs(lineAt(0), { ...denied, by: 'deny', deniedBy: 'scanners' }),
      decidedAs(lineAt(1), { ...denied, by: 'missing-key', deniedBy: 'per-ip' }),
    ])
    const { total, policies } = tally.result(contextOf())
    expect(total.refused).toEqual({ low: 2, high: 2 })
    expect(policies.map(({ name, kind, refused }) => [name, kind, refused.high])).toEqual([
      ['per-ip', 'policy', 0],
      ['scanners', 'deny', 1],
      ['per-ip', 'missing-key', 1],
    ])
  })

  test('A policy that is not replayed has no row.', () => {
    const tally = tallyOf(PER_IP, { name: 'per-user', mode: 'enforce' })
    tally.add([decidedAs(lineAt(0), ADMITTED)])
    const notReplayed = [{ policy: 'per-user', reason: 'the log has no claim' }]
    const report = tally.result(contextOf({ notReplayed }))
    expect(report.policies.map(({ name }) => name)).toEqual(['per-ip'])
    expect(report.notReplayed).toEqual(notReplayed)
  })

  test('Requests that the log answered with 429 or 403 count apart.', () => {
    const tally = tallyOf()
    tally.add([
      decidedAs(lineAt(0, { status: 429 }), ADMITTED),
      decidedAs(lineAt(1, { status: 429 }), ADMITTED, REFUSED),
      decidedAs(lineAt(2, { status: 403 }), REFUSED),
      decidedAs(lineAt(3), REFUSED),
    ])
    expect(tally.result(contextOf()).answered).toEqual({
      429: { requests: 2, refused: { low: 0, high: 1 } },
      403: { requests: 1, refused: { low: 1, high: 1 } },
    })
  })

  test('A line before the one before it counts at the time of that one.', () => {
    const tally = tallyOf()
    tally.add([decidedAs(lineAt(100), ADMITTED), decidedAs(lineAt(10), REFUSED)])
    const { from, to, total } = tally.result(contextOf())
    expect([from, to, total.firstRefusal]).toEqual([START + 100_000, START + 100_000, to])
  })
})

describe('the clients of a report', () => {
  test('An offender has its network, its user agent and what else it did.', () => {
    const tally = tallyOf()
    const more = { country: 'DE', asn: '64500', userAgent: 'curl/8' }
    tally.add([
      decidedAs(lineAt(0, { ...more, target: '/a?x=1' }), ADMITTED),
      decidedAs(lineAt(1, { ...more, target: '/a?x=2', status: 404 }), REFUSED),
      decidedAs(lineAt(61, { ...more, target: '/b', status: 503 }), REFUSED),
      decidedAs(lineAt(62, { target: '/a', userAgent: 'other' }), ADMITTED),
      decidedAs(lineAt(63, { target: '/a', status: undefined }), ADMITTED),
      decidedAs(lineAt(64, { ip: '198.51.100.1' }), ADMITTED),
    ])
    const one = { low: 1, high: 1 }
    expect(tally.result(contextOf()).offenders).toEqual([
      {
        client: '203.0.113.7',
        network: '203.0.113.0/24',
        country: 'DE',
        asn: '64500',
        requests: 5,
        refused: { low: 2, high: 2 },
        wouldRefuse: { low: 0, high: 0 },
        policies: [{ name: 'per-ip', refused: { low: 2, high: 2 } }],
        statuses: { none: 1, '2xx': 2, '4xx': 1, '5xx': 1 },
        from: START,
        to: START + 63_000,
        worstMinute: { time: START + 60_000, requests: 3 },
        userAgents: {
          requests: 4,
          different: { low: 2, high: 2 },
          top: [
            { text: 'curl/8', requests: { low: 3, high: 3 } },
            { text: 'other', requests: one },
          ],
        },
        paths: {
          requests: 5,
          different: { low: 2, high: 2 },
          top: [
            { text: '/a', requests: { low: 4, high: 4 } },
            { text: '/b', requests: one },
          ],
        },
      },
    ])
  })

  test('Of a busy client the paths of every eighth request are counted after the first 500.', () => {
    const tally = tallyOf()
    tally.add(Array.from({ length: 2000 }, (_, n) => decidedAs(lineAt(n / 10), REFUSED)))
    const [offender] = tally.result(contextOf()).offenders
    expect([offender!.requests, offender!.refused.high]).toEqual([2000, 2000])
    const looked = { low: 688, high: 688 } // 500, and the multiples of 8 above
    expect(offender!.paths.top).toEqual([{ text: '/', requests: looked }])
    expect(offender!.paths.requests).toBe(688)
  })

  test('The addresses of an IPv6 /64 are one client, and lines without an address another one.', () => {
    const tally = tallyOf()
    const ips = ['2001:db8:1:2::3', '2001:DB8:1:2:0:0:0:4', '::ffff:192.0.2.1', '192.0.2.1', '-']
    tally.add(ips.map((ip, n) => decidedAs(lineAt(n, { ip }), REFUSED)))
    tally.add([decidedAs(lineAt(9, { ip: undefined }), REFUSED)])
    const { offenders, clients, total } = tally.result(contextOf())
    expect(clients.count).toBe(3)
    expect(total.clients).toEqual({ low: 3, high: 3 })
    expect(offenders.map(({ client, network, requests }) => [client, network, requests])).toEqual([
      ['2001:db8:1:2::/64', '2001:db8:1::/48', 2],
      ['192.0.2.1', '192.0.2.0/24', 2],
      ['unknown', null, 2],
    ])
  })

  test('The report lists the 20 clients with the most refusals, most first.', () => {
    const tally = tallyOf()
    for (let n = 1; n <= 30; n += 1) {
      const line = lineAt(n, { ip: `192.0.2.${n}` })
      tally.add(Array.from({ length: n }, () => decidedAs(line, REFUSED)))
    }
    const { offenders } = tally.result(contextOf())
    expect(offenders.map(({ refused }) => refused.high)).toEqual(
      Array.from({ length: 20 }, (_, n) => 30 - n),
    )
  })
})

describe('the comparison of two configurations', () => {
  test('The requests that change are counted both ways, by policy and by client.', () => {
    const tally = tallyOf()
    const other = verdict(['old'], ['old'])
    const second = { ip: '198.51.100.1' }
    tally.add(
      [
        decidedAs(lineAt(0), REFUSED),
        decidedAs(lineAt(1), ADMITTED, REFUSED),
        decidedAs(lineAt(2), REFUSED),
        decidedAs(lineAt(3, second), ADMITTED),
        decidedAs(lineAt(4, second), ADMITTED),
      ],
      [
        decidedAs(lineAt(0), verdict(['old'])),
        decidedAs(lineAt(1), verdict(['old'])),
        decidedAs(lineAt(2), other),
        decidedAs(lineAt(3, second), other),
        decidedAs(lineAt(4, second), verdict(['old'])),
      ],
    )
    const against = { config: 'old.config.ts', engine: 'memory' as const, notReplayed: [] }
    const one = { low: 1, high: 1 }
    const oneOrTwo = { low: 1, high: 2 }
    expect(tally.result(contextOf({ against })).against).toEqual({
      ...against,
      both: one,
      added: {
        requests: oneOrTwo,
        clients: one,
        policies: [{ name: 'per-ip', requests: oneOrTwo }],
        top: [{ client: '203.0.113.7', requests: oneOrTwo }],
      },
      removed: {
        requests: one,
        clients: one,
        policies: [{ name: 'old', requests: one }],
        top: [{ client: '198.51.100.1', requests: one }],
      },
    })
  })

  test('Lists of different lengths are an error.', () => {
    expect(() => tallyOf().add([decidedAs(lineAt(0), REFUSED)], [])).toThrow(/different requests/)
  })
})
