/** A replay counts by the address that the deployed limiter would count by, whatever clients write into the log. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ReplayOptions, replay } from '../../../cli/replay/run.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { clfStamp, wrappings, writable, writers } from '../../support/log-lines.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-clients-'))
})
afterAll(() => rm(folder, { recursive: true }))

const LIMIT = 5
const START = Date.UTC(2026, 10, 20, 10)
const CLIENT = '198.51.100.7'

/** A request as a server sees it: who is connected, and the addresses that it got. */
interface Seen {
  time: number
  peer: string
  chain: string
}
/** Requests in the same minute. */
const seen = (count: number, one: (index: number) => Omit<Seen, 'time'>): Seen[] =>
  Array.from({ length: count }, (_, index) => ({ time: START + index * 1000, ...one(index) }))
/** One client that sends another address each time, through a load balancer. */
const spoofed = seen(20, (index) => ({ peer: '10.0.0.5', chain: `203.0.113.${index}, ${CLIENT}` }))

const iso = (time: number) => new Date(time).toISOString()
const request = '"GET /a HTTP/1.1"'
/** The formats in which a server writes `X-Forwarded-For` that it got. */
const logs: Record<string, (seen: Seen) => string> = {
  'nginx, format main': ({ time, peer, chain }) =>
    `${peer} - - [${clfStamp(time)}] ${request} 200 5 "-" "curl" "${chain}"`,
  'nginx, JSON': ({ time, peer, chain }) =>
    `{"time":"${iso(time)}","request":"GET /a HTTP/1.1","remote_addr":"${peer}","http_x_forwarded_for":${JSON.stringify(chain)}}`,
  Caddy: ({ time, peer, chain }) =>
    JSON.stringify({
      ts: time / 1000,
      request: {
        ...{ method: 'GET', uri: '/a', remote_ip: peer, client_ip: peer },
        headers: { 'X-Forwarded-For': [chain] },
      },
    }),
  Traefik: ({ time, peer, chain }) =>
    `{"time":"${iso(time)}","RequestMethod":"GET","RequestPath":"/a","ClientHost":"${peer}","request_X-Forwarded-For":${JSON.stringify(chain)}}`,
  'Istio, JSON': ({ time, chain }) =>
    `{"start_time":"${iso(time)}","method":"GET","path":"/a","x_forwarded_for":${JSON.stringify(chain)},"downstream_remote_address":"10.0.0.1:4711"}`,
  'Envoy, text': ({ time, chain }) =>
    `[${iso(time)}] ${request} 200 - 0 512 14 9 "${chain}" "curl" "id" "a.example" "10.0.0.9:80"`,
}
const iis = '#Fields: date time c-ip cs-method cs-uri-stem X-Forwarded-For\n'
logs.IIS = ({ time, peer, chain }) =>
  `${iso(time).slice(0, 19).replace('T', ' ')} ${peer} GET /a ${chain.replaceAll(' ', '+')}`

const limits: ConfigOptions['policies'] = [{ name: 'per-ip', limit: LIMIT, window: '1m' }]
let files = 0

/** Replays a log of these requests. */
async function report(
  name: string,
  requests: Seen[],
  clientAddress?: ConfigOptions['clientAddress'],
  { map, ...others }: { map?: Record<string, string> } & Partial<ReplayOptions> = {},
) {
  const file = join(folder, `${files++}.log`)
  const header = name === 'IIS' ? iis : ''
  await writeFile(file, `${header}${requests.map(logs[name]!).join('\n')}\n`)
  const options = { policies: limits, ...(clientAddress && { clientAddress }) }
  return replay({
    files: [file],
    log: map ? { map } : {},
    config: { file: 'c.ts', options: options as ConfigOptions },
    ...others,
  })
}
const byProxies = (trustedProxies: number | string[]) => ({ forwardedFor: { trustedProxies } })

test.each(Object.keys(writers).map((name, index) => [name, index] as const))(
  'A limit of 5 refuses 16 of the 26 requests of two clients in a log of %s, wrapped or not.',
  async (name, index) => {
    const { header, ...writer } = writers[name]!
    const lines = Array.from({ length: 26 }, (_, index) =>
      writable(
        {
          ...{ time: START + index * 1000, method: 'GET', target: '/a', status: 200 },
          ...{ host: 'a.example', country: 'DE', asn: '1', colo: 'FRA' },
          ip: index < 20 ? CLIENT : '2001:db8:1:2::9',
        },
        writer,
      ),
    )
    const texts = [...(header?.split('\n') ?? []), ...lines.map((line) => writer.write(line))]
    const collectors = Object.values(wrappings)
    for (const wrap of [(text: string) => text, collectors[index % collectors.length]!]) {
      const file = join(folder, `${files++}.log`)
      await writeFile(file, `${texts.map(wrap).join('\r\n')}\r\n`)
      const { clients, total } = await replay({
        files: [file],
        config: { file: 'c.ts', options: { policies: limits } },
      })
      expect([clients.count, total.refused]).toEqual([2, { low: 16, high: 16 }])
    }
  },
)

describe('The address of the client in a log', () => {
  test('is the one that the proxies have found, whatever the client has sent, in every format.', async () => {
    const v4 = fc.ipV4().map((ip) => `203.0.113.${ip.length}`)
    const sent = fc.oneof(v4, fc.ipV6(), fc.constantFrom('unknown', '', ' ', '127.0.0.1', 'x:1'))
    const written = fc.constantFrom(
      ...['198.51.100.7', '198.51.100.7:4711', ' 198.51.100.7 '].map((text) => [text, CLIENT]),
      ...['2001:db8:1:2::9', '[2001:db8:1:2::9]', '[2001:db8:1:2::9]:443'].map((text) => [
        text,
        '2001:db8:1:2::/64',
      ]),
    )
    const drawn = fc.record({
      name: fc.constantFrom(...Object.keys(logs)),
      sent: fc.array(fc.array(sent, { maxLength: 3 }), { minLength: 1, maxLength: 12 }),
      written,
      hops: fc.integer({ min: 0, max: 2 }),
      isList: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(drawn, async ({ name, sent, written: [text, client], hops, isList }) => {
        const requests = seen(sent.length, (index) => ({
          peer: '10.0.0.5',
          chain: [...sent[index]!, text, ...['10.0.0.3', '10.0.0.4'].slice(0, hops)].join(','),
        }))
        const { clients, offenders, total } = await report(
          name,
          requests,
          byProxies(isList ? ['10.0.0.0/8'] : hops + 1),
        )
        const over = Math.max(0, requests.length - LIMIT)
        expect(clients.count).toBe(1)
        expect(total.refused.high).toBe(over)
        expect(offenders.map((one) => one.client)).toEqual(over > 0 ? [client] : [])
      }),
      { numRuns: 150 },
    )
  })

  test.each([
    ['nginx, format main', { ip: 'forwardedFor' }],
    ['nginx, format main', { 'header:x-forwarded-for': 'forwardedFor' }],
    ['nginx, JSON', { ip: 'http_x_forwarded_for' }],
    ['Istio, JSON', { ip: 'x_forwarded_for' }],
    ['Istio, JSON', { 'header:x-forwarded-for': 'x_forwarded_for' }],
  ])('is read from the field that --map names, of %s with %j.', async (name, map) => {
    const { total, offenders, notReplayed } = await report(name, spoofed, byProxies(1), { map })
    expect(notReplayed).toEqual([])
    expect(total.refused.high).toBe(15)
    expect(offenders[0]!.client).toBe(CLIENT)
  })

  test.each<[string, ConfigOptions['clientAddress'] | undefined]>([
    ['no clientAddress', undefined],
    ['the address of the connection', 'socket'],
  ])('is the last one of a list, with %s, and the report says so.', async (_, setting) => {
    const map = { ip: 'forwardedFor' }
    const { offenders, notes } = await report('nginx, format main', spoofed, setting, { map })
    expect(offenders[0]!.client).toBe(CLIENT)
    expect(notes.join()).toContain('the last one in forwardedFor')
  })

  test('may be at the beginning of a line with all addresses of the header.', async () => {
    logs.Apache = ({ time, chain }) =>
      `${chain} - - [${clfStamp(time)}] ${request} 200 5 "-" "curl"`
    const mixed = seen(20, (index) => ({
      peer: '',
      chain: ['', '203.0.113.9, ', '203.0.113.9, 2001:db8::1, '][index % 3]! + CLIENT,
    }))
    for (const setting of [byProxies(1), byProxies(['10.0.0.0/8']), undefined]) {
      const { clients, offenders } = await report('Apache', mixed, setting)
      expect([clients.count, offenders[0]!.client]).toEqual([1, CLIENT])
    }
    const behind = seen(20, (index) => ({
      peer: '',
      chain: `203.0.113.${index}, ${CLIENT}, 10.0.0.3`,
    }))
    expect((await report('Apache', behind, byProxies(2))).offenders[0]!.client).toBe(CLIENT)
  })

  test('is the connection if clients connect themselves, because they can write the field.', async () => {
    const direct = seen(20, (index) => ({
      peer: index % 2 ? CLIENT : '198.51.100.8',
      chain: `203.0.113.${index}`,
    }))
    for (const name of ['nginx, format main', 'nginx, JSON', 'Caddy', 'Traefik', 'IIS']) {
      const { clients, notes } = await report(name, direct, byProxies(1))
      expect([name, clients.count]).toEqual([name, 2])
      expect(notes.join()).toMatch(/x-forwarded-for, which clients can write.*--map header:x-forw/)
      const listed = await report(name, direct, byProxies(['10.0.0.0/8']))
      expect(listed.clients.count).toBe(2)
    }
    const map = { 'header:x-forwarded-for': 'http_x_forwarded_for' }
    expect((await report('nginx, JSON', direct, byProxies(1), { map })).clients.count).toBe(20)
  })

  test('may be in a header of its own, or where a function finds it.', async () => {
    const requests = seen(20, () => ({ peer: '10.0.0.5', chain: CLIENT }))
    const map = { 'header:x-real-ip': 'http_x_forwarded_for' }
    for (const setting of [
      { header: 'X-Real-IP', trustedProxies: 1 },
      { header: 'X-Real-IP', trustedProxies: ['private'] },
      (request: Request) => request.headers.get('X-Real-IP'),
    ]) {
      const { offenders } = await report('nginx, JSON', requests, setting, { map })
      expect(offenders[0]!.client).toBe(CLIENT)
      const without = await report('nginx, JSON', requests, setting)
      expect(without.offenders[0]!.client).toBe('10.0.0.5')
      expect(without.notes.join()).toContain('add "http_x_real_ip":"$http_x_real_ip" to log_format')
    }
  })

  test('is that of the CDN in its own log, whose header is what the client has sent.', async () => {
    const file = join(folder, 'cloudfront.log')
    const row = (index: number) =>
      `2026-11-20\t10:00:0${index}\tFRA\t${CLIENT}\tGET\t/a\t203.0.113.${index}`
    await writeFile(
      file,
      `#Fields: date time x-edge-location c-ip cs-method cs-uri-stem x-forwarded-for\n${[0, 1, 2, 3, 4, 5, 6].map(row).join('\n')}\n`,
    )
    const options = { policies: limits, clientAddress: byProxies(1) } as ConfigOptions
    const { offenders } = await replay({ files: [file], config: { file: 'c.ts', options } })
    expect(offenders[0]!.client).toBe(CLIENT)
  })

  test('is not looked for in a header that no request of the log has.', async () => {
    const setting = { header: 'X-Real-IP', trustedProxies: 1 }
    const { notes, clients } = await report('Caddy', spoofed, setting)
    expect(clients.count).toBe(1)
    expect(notes.join()).toContain(
      'clientAddress reads x-real-ip, which the first requests do not have.',
    )
  })

  test('is the same for a suggestion, an expectation and an anonymized log.', async () => {
    const shared = join(folder, 'shared.log')
    const { suggestion, total } = await report('nginx, format main', spoofed, byProxies(1), {
      suggest: { policy: 'per-ip' },
      anonymize: shared,
    })
    expect(suggestion).toMatchObject({ keys: 1, gap: { highest: [20] } })
    expect(await readFile(shared, 'utf8')).not.toMatch(/10\.0\.0\.5|203\.0\.113/)
    const options = { policies: limits, clientAddress: byProxies(1) } as ConfigOptions
    const again = await replay({ files: [shared], config: { file: 'c.ts', options } })
    expect(again.total.refused).toEqual(total.refused)
  })

  test('is read by each of two configurations as it says itself.', async () => {
    const options = { policies: limits, clientAddress: 'socket' } as ConfigOptions
    const twoClients = seen(12, (index) => ({
      peer: '10.0.0.5',
      chain: index % 2 ? CLIENT : '198.51.100.8',
    }))
    const { against, total } = await report('nginx, JSON', twoClients, byProxies(1), {
      against: { file: 'd.ts', options },
    })
    expect(total.refused.high).toBe(2)
    expect(against!.removed.requests.high).toBe(5)
  })
})
