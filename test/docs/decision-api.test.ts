/** Runs every curl command of docs/reference/decision-api.md and operate-api.md in order, and checks the bodies on the page against the schemas. */
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { type SchemaName, schemas } from '../../tools/openapi/schemas.ts'
import type { Stack } from '../../tools/stack.ts'
import { commandsBetween } from '../support/commands.ts'
import { type CurlCommand, parseCurl, sendCurl } from '../support/curl.ts'
import { evaluate } from '../support/entries.ts'
import { exporting } from '../support/examples.ts'
import { byJsonSchema, openapi } from '../support/json-schema.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'
import { blocksOf, found, pageAt } from '../support/pages.ts'
import { startStack } from '../support/stack.ts'
import { type Step, stepsOf } from '../support/transcripts.ts'

const both = ['decision-api', 'operate-api'].map((name) => pageAt(`docs/reference/${name}.md`))
const blocks = both.flatMap(blocksOf)
const block = (named: string) => blocks.find(({ name }) => name === named)!.code
const configOf = (code: string): ConfigOptions =>
  evaluate(exporting(code).replace('export default', 'return'))
const token = { API_TOKEN: 'dev-api-token-0000', OPERATE: 'dev-operate-token-0000' }

interface Call extends CurlCommand {
  /** The command without its headers, for test titles. */
  title: string
  url: string
  /** The status, the header fields and the body that the page shows. */
  status: number | undefined
  fields: Record<string, string>
  answer: unknown
}

function callOf({ command, output }: Step): Call {
  const [head, json] = output.startsWith('HTTP/') ? output.split(/\n\n(.*)/s) : ['', output]
  const withTokens = command.replace(/\$(API_TOKEN|OPERATE)/, (_, name: 'OPERATE') => token[name])
  const curl = parseCurl(withTokens)
  return {
    ...curl,
    title: command.replace(/\\\n +/g, '').replace(/ -H .*?(?= -d|$)/, ''),
    url: curl.urls[0]!,
    status: head ? Number(head.split(' ')[1]) : undefined,
    fields: Object.fromEntries(
      [...head!.matchAll(/^([\w-]+): (.*)$/gm)].map(([, name, value]) => [name!, value!]),
    ),
    answer: json!.startsWith('#') ? json! : JSON.parse(json!),
  }
}

/** The commands on the page, without those in its transcripts of reverse proxies, which `npm run transcripts` generates. */
const calls = blocks
  .filter(({ language }) => language === '')
  .flatMap(stepsOf)
  .filter(({ command }) => /\/_sluice\/v1|\$API/.test(command))
  .map(callOf)

/** Replaces values that differ between runs: times, waits above 0, ids of slots. */
const stable = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, value) => {
      if (key === 'decidedAt' || key === 'roundTripMs' || key === 'slot') return typeof value
      if (/^(retryAfter|resetAfter|nextAfter|bannedFor|overriddenFor)Ms$/.test(key) && value > 0)
        return '> 0'
      return value
    }),
  )
const stableField = (value: string | undefined) => value?.replace(/;t=[1-9]\d*/, ';t=…')

const env = { SLUICE_API_TOKEN: token.API_TOKEN, SLUICE_OPERATE_TOKEN: token.OPERATE }

describe('The commands of the decision API and of the operator API', () => {
  let shipped: Stack
  let stack: Stack
  beforeAll(async () => {
    shipped = await startStack({ env })
    stack = await startStack({ config: configOf(block('decision-api')), observe: {}, env })
    // The first decision of a Worker may take longer than the default deadline.
    const decided = async () =>
      expect((await shipped.fetch('/', { ip: '192.0.2.254' })).headers.has('ratelimit')).toBe(true)
    await vi.waitFor(decided, { timeout: 20_000, interval: 100 })
  })
  afterAll(() => Promise.all([shipped?.stop(), stack?.stop()]))

  /** The previous answer, which a refund refers to. */
  let last: { decidedAt?: number; slot?: string } = {}

  test('The page has more than 12 commands.', () => {
    expect(calls.length).toBeGreaterThan(12)
  })

  test.each(calls.map((call) => [call.title, call] as const))(
    'The answer to %s is the one on the page.',
    async (_, call) => {
      const body = call.body
        ?.replace(/"decidedAt":\d+/, `"decidedAt":${last.decidedAt}`)
        .replace(/"slot":"[^"]+"/, `"slot":"${last.slot}"`)
      const isShipped = call.url.startsWith('http://127.0.0.1:8787/')
      const { directUrl } = (isShipped ? shipped : stack).worker
      const url = call.url.replace('$API', 'http://127.0.0.1:8787/_sluice/v1')
      const response = await sendCurl({ ...call, body }, url, directUrl, {})
      if (typeof call.answer === 'string') {
        const metrics = parseOpenMetrics(response.body)
        for (const [name, shown] of parseOpenMetrics(call.answer.replace(/\n*$/, '\n'))) {
          expect(metrics.get(name)).toEqual(shown)
        }
        return
      }
      const answer = JSON.parse(response.body)
      // The page omits some of the stats.
      if (call.url.endsWith('/stats')) expect(answer).toMatchObject(call.answer as object)
      else expect(stable(answer)).toEqual(stable(call.answer))
      expect(response.status).toBe(call.status ?? 200)
      for (const [name, value] of Object.entries(call.fields)) {
        expect(stableField(response.header(name)), name).toBe(stableField(value))
      }
      if (call.status !== undefined && /^\[?\{"(allowed|type)/.test(JSON.stringify(answer))) {
        expect(response.header('retry-after') !== undefined).toBe('Retry-After' in call.fields)
      }
      last = answer
    },
  )

  test('The client example charges only the units that were used.', async () => {
    Object.assign(process.env, { SLUICE_URL: stack.url, SLUICE_API_TOKEN: token.API_TOKEN })
    const { complete } = await import('../../examples/api-client.ts')
    for (const remaining of [6000, 4800]) {
      const { limits } = await complete('user-of-the-example', 4000, async () => 1200)
      expect(limits[0]!.remaining).toBe(remaining)
    }
  })

  test('An Idempotency-Key costs one more Redis command, and a repeated call costs three in total.', async () => {
    const decide = (key?: string) =>
      fetch(`${stack.url}/_sluice/v1/decide`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${token.API_TOKEN}`,
          ...(key && { 'Idempotency-Key': key }),
        },
        body: '{"policy":"per-user","key":"user-of-commands"}',
      })
    await decide()
    const count = async (key?: string) => {
      const commands = await commandsBetween(stack.redis.url, () => decide(key))
      return Object.values(commands).reduce((sum, n) => sum + n, 0)
    }
    expect([await count(), await count('a-key'), await count('a-key')]).toEqual([4, 5, 3])
  })
})

describe('The bodies on both pages', () => {
  /** The schemas of the body and of the answer. */
  const schemasOf = ({
    url,
    method,
  }: Call): [body: SchemaName | undefined, answer: SchemaName | undefined] => {
    if (url.endsWith('/decide')) return ['Ask', 'Decision']
    if (url.endsWith('/settle')) return ['Settlement', 'LimitStatus']
    if (url.endsWith('/refund')) return ['Refund', 'LimitStatus']
    if (url.endsWith('/try')) return ['Try', 'Trial']
    if (/\/(policies|stats|metrics)$/.test(url)) return [undefined, undefined]
    if (/\/bans\b/.test(url)) return [undefined, 'BanPage']
    if (url.endsWith('/keys')) return [undefined, 'OverrideList']
    if (url.endsWith('/limit')) return [method === 'PUT' ? 'Override' : undefined, 'LimitStatus']
    return [url.endsWith('/ban') ? 'Ban' : 'Target', 'LimitStatus']
  }
  /** Each body or answer; of a list, each item. */
  type Row = [part: string, title: string, verdict: string, name: SchemaName, value: unknown]
  const rows = calls.flatMap((call): Row[] => {
    const [body, answer] = schemasOf(call)
    const isValid = call.status !== 422
    const rowsOf = (
      part: string,
      name: SchemaName | undefined,
      value: unknown,
      isValid: boolean,
    ) =>
      name
        ? [value]
            .flat()
            .map((item): Row => [part, call.title, isValid ? 'valid' : 'invalid', name, item])
        : []
    return [
      ...rowsOf('body', body, call.body && JSON.parse(call.body), isValid),
      ...rowsOf('answer', isValid ? answer : 'Problem', call.answer, true),
    ]
  })

  test.each(rows)('The %s of %s is %s by the schema %s.', (_, __, verdict, name, value) => {
    expect(v.safeParse(schemas[name], value).success).toBe(verdict === 'valid')
    expect(byJsonSchema(name)(value)).toBe(verdict === 'valid')
  })

  test('The answer of GET /policies matches the schemas of its reports.', () => {
    const { answer } = calls.find(({ url }) => url.endsWith('/policies'))!
    const reports = v.object({
      policies: v.array(schemas.PolicyReport),
      store: schemas.StoreReport,
    })
    expect(v.is(reports, answer)).toBe(true)
  })
})

test('The configuration on docs/reference/decision-api.md parses.', () => {
  expect(configOf(block('decision-api')).policies).not.toEqual([])
})

test('Every endpoint of openapi.json is on docs/reference/decision-api.md, and every page that it links to exists.', () => {
  const page = pageAt('docs/reference/decision-api.md')
  const { paths } = openapi
  for (const path of Object.keys(paths)) {
    expect(page.text).toContain(
      path.replace('/{target}', '/…').replace(/.*(?=\/(reset|unban)$)/, ''),
    )
  }
  const links = found(page.text, /\]\(([\w-]+\.md)/g)
  expect(links.filter((file) => !pageAt(`docs/reference/${file}`))).toEqual([])
})
