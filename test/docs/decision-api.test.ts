/** docs/reference/decision-api.md: its calls are made, in their order, and its bodies are what the schemas say. */
import { readFile } from 'node:fs/promises'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SchemaName, schemas } from '../../dev/openapi/schemas.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { defineConfig } from '../../src/config/parse.ts'
import { commandsBetween } from '../support/commands.ts'
import { byJsonSchema } from '../support/json-schema.ts'

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')
const doc = await read('docs/reference/decision-api.md')
const block = (name: string) => new RegExp(`^\`\`\`ts ${name}\n(.*?)^\`\`\`$`, 'ms').exec(doc)![1]!
const configOf = (code: string): ConfigOptions =>
  new Function('defineConfig', `return ${code.replace('export default ', '')}`)(defineConfig)

interface Call {
  /** As it stands there, for the names of tests. */
  title: string
  url: string
  token: 'API_TOKEN' | 'OPERATE'
  headers: Record<string, string>
  body: string | undefined
  /** What the document says comes back. */
  status: number | undefined
  fields: Record<string, string>
  answer: unknown
}

/** Without the transcripts of reverse proxies, which a command makes. */
const own = doc.replace(/<!-- transcripts:(\w+) -->.*?<!-- \/transcripts:\1 -->/gs, '')

/** Every call of the document by curl. */
const calls = [...own.matchAll(/^```\n(\$ curl .*?)^```$/gms)].flatMap(([, text]) =>
  text!.split(/^\$ /m).slice(1).map(callOf),
)

function callOf(text: string): Call {
  const [command, said = ''] = text.replace(/\\\n +/g, '').split(/(?<=['"])\n(.*)/s) as [
    string,
    string,
  ]
  const headers = [...command.matchAll(/-H (['"])(.*?)\1/g)].map(([, , field]) =>
    field!.split(': '),
  )
  const [head, json] = said.startsWith('HTTP/') ? said.split(/\n\n(.*)/s) : ['', said]
  return {
    title: command.replace(/ -H .*?(?= -d|$)/, ''),
    url: /(?:\$API|http:)\S+/.exec(command)![0],
    token: /OPERATE/.test(command) ? 'OPERATE' : 'API_TOKEN',
    headers: Object.fromEntries(headers.filter(([name]) => name !== 'Authorization')),
    body: / -d '(.*)'/s.exec(command)?.[1],
    status: head ? Number(head.split(' ')[1]) : undefined,
    fields: Object.fromEntries(
      [...head!.matchAll(/^([\w-]+): (.*)$/gm)].map(([, name, value]) => [name!, value!]),
    ),
    answer: JSON.parse(json!),
  }
}

/** Without what differs from one time to the next: instants, waits above 0, names of slots. */
const tamed = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, value) => {
      if (key === 'decidedAt' || key === 'roundTripMs' || key === 'slot') return typeof value
      if (/^(retryAfter|resetAfter|nextAfter|bannedFor)Ms$/.test(key) && value > 0) return '> 0'
      return value
    }),
  )
const tamedField = (value: string | null) => value?.replace(/;t=[1-9]\d*/, ';t=…')

const token = { API_TOKEN: 'dev-api-token-0000', OPERATE: 'dev-operate-token-0000' }
const env = { SLUICE_API_TOKEN: token.API_TOKEN, SLUICE_OPERATE_TOKEN: token.OPERATE }

describe('the calls', () => {
  let shipped: Stack
  let stack: Stack
  beforeAll(async () => {
    shipped = await startStack({ env: { ...env } })
    stack = await startStack({ config: configOf(block('decision-api')), env })
  })
  afterAll(() => Promise.all([shipped?.stop(), stack?.stop()]))

  /** Of the answer before: what a refund names. */
  let last: { decidedAt?: number; slot?: string } = {}

  test('are there', () => {
    expect(calls.length).toBeGreaterThan(12)
  })

  test.each(calls.map((call) => [call.title, call] as const))('%s', async (_, call) => {
    const body = call.body
      ?.replace(/"decidedAt":\d+/, `"decidedAt":${last.decidedAt}`)
      .replace(/"slot":"[^"]+"/, `"slot":"${last.slot}"`)
    const url = call.url
      .replace('$API', `${stack.url}/_sluice/v1`)
      .replace('http://127.0.0.1:8787', shipped.url)
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { Authorization: `Bearer ${token[call.token]}`, ...call.headers },
      ...(body !== undefined && { body }),
    })
    const answer = await response.json()
    expect(tamed(answer)).toEqual(tamed(call.answer))
    expect(response.status).toBe(call.status ?? 200)
    for (const [name, value] of Object.entries(call.fields)) {
      expect(tamedField(response.headers.get(name)), name).toBe(tamedField(value))
    }
    if (call.status !== undefined && /^\[?\{"(allowed|type)/.test(JSON.stringify(answer))) {
      expect(response.headers.has('retry-after')).toBe('Retry-After' in call.fields)
    }
    last = answer
  })

  test('examples/api-client.ts is the one of the document, and pays for what it used', async () => {
    expect((await read('examples/api-client.ts')).split('\n').slice(1).join('\n')).toBe(
      block('client'),
    )
    Object.assign(process.env, { SLUICE_URL: stack.url, SLUICE_API_TOKEN: token.API_TOKEN })
    const { complete } = await import('../../examples/api-client.ts')
    for (const remaining of [6000, 4800]) {
      const { limits } = await complete('user-of-the-example', 4000, async () => 1200)
      expect(limits[0]!.remaining).toBe(remaining)
    }
  })

  test('an Idempotency-Key costs one command more, and its repetition three in all', async () => {
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

describe('the bodies', () => {
  const nameOf = ({
    url,
  }: Call): [asked: SchemaName | undefined, answered: SchemaName | undefined] => {
    if (url.endsWith('/decide')) return ['Ask', 'Decision']
    if (url.endsWith('/refund')) return ['Refund', 'LimitStatus']
    if (url.endsWith('/try')) return ['Try', 'Trial']
    if (url.endsWith('/policies')) return [undefined, undefined]
    return [url.endsWith('/ban') ? 'Ban' : 'Target', 'LimitStatus']
  }
  const bodies = calls.flatMap((call): [string, SchemaName, unknown, boolean][] => {
    const [asked, answered] = nameOf(call)
    const right = call.status !== 422
    const told = (what: string, name: SchemaName | undefined, body: unknown, right: boolean) =>
      name
        ? [body]
            .flat()
            .map((one): [string, SchemaName, unknown, boolean] => [
              `${what} ${call.title}`,
              name,
              one,
              right,
            ])
        : []
    return [
      ...told('asked:', asked, call.body && JSON.parse(call.body), right),
      ...told('answered:', right ? answered : 'Problem', call.answer, true),
    ]
  })

  test.each(bodies)('%s, right or wrong as %s', (_, name, body, right) => {
    expect(v.safeParse(schemas[name], body).success).toBe(right)
    expect(byJsonSchema(name)(body)).toBe(right)
  })

  test('GET /policies answers with reports', () => {
    const { policies, store } = calls.find(({ url }) => url.endsWith('/policies'))!.answer as {
      policies: unknown[]
      store: unknown
    }
    for (const report of policies) expect(v.is(schemas.PolicyReport, report)).toBe(true)
    expect(v.is(schemas.StoreReport, store)).toBe(true)
  })
})

test('every configuration of the document parses', () => {
  for (const name of ['decision-api', 'callers'])
    expect(configOf(block(name)).policies).not.toEqual([])
})

test('every endpoint of the description is in the document, and every file it points at is there', async () => {
  const { paths } = JSON.parse(await read('src/api/openapi.json'))
  for (const path of Object.keys(paths)) {
    expect(doc).toContain(path.replace('/{target}', '/…').replace(/.*(?=\/(reset|unban)$)/, ''))
  }
  for (const [, file] of doc.matchAll(/\]\(([\w-]+\.md)/g)) await read(`docs/reference/${file}`)
})
