/** Refusals that clients of MCP, JSON-RPC and GraphQL read: through the gateway, with the client library of MCP. */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { bodies } from '../../../src/features/bodies/index.ts'
import { createAppLimiter } from '../../../src/hosts/app/app-limiter.ts'
import { API_TOKEN, apiTokens } from '../../support/api-stack.ts'
import { refusals } from '../../support/features.ts'
import { useGateway } from '../../support/gateway.ts'
import { expectedBy } from '../../support/parse.ts'
import { type Script, startScriptedOrigin } from '../../support/scripted-origin.ts'

const tools = (name: string, refusal: PolicyOptions['refusal']): PolicyOptions => ({
  name,
  algorithm: 'fixed-window',
  limit: 1,
  window: '1h',
  match: { path: `/${name}`, body: { method: 'tools/call' } },
  cost: { max: 1 },
  refusal,
})

const gateway = useGateway({
  env: apiTokens,
  bodies: { max: '4kb' },
  config: {
    policies: [
      tools('mcp', 'json-rpc'),
      tools('read', { body: 'json-rpc', status: 200, headers: { 'X-Policy': '{{policy}}' } }),
      {
        ...tools('graphql', { body: 'graphql', status: 200 }),
        match: { path: '/graphql' },
      },
      { ...tools('auth', { body: 'json-rpc', status: 200 }), match: { path: '/auth' } },
    ],
  },
})

/** An MCP server with one tool, which answers with JSON. */
const script: Script = async (_, response, request) => {
  let text = ''
  for await (const part of request) text += part
  const { id, method, params } = JSON.parse(text || '{}')
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'tools', version: '1.0.0' },
    },
    'tools/call': { content: [{ type: 'text', text: 'found' }] },
  }
  const result = results[method]
  if (!result) return void response.writeHead(request.method === 'POST' ? 202 : 405).end()
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
}
let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
beforeAll(async () => {
  origin = await startScriptedOrigin(script)
})
afterAll(() => origin?.close())

const send = (path: string, init: RequestInit, ip = '198.51.100.1') =>
  gateway.fetch(
    path,
    { ...init, ip, headers: Object.fromEntries(new Headers(init.headers)) } as never,
    { ORIGIN: origin.url },
  )

async function connect(path: string, ip: string) {
  const client = new Client({ name: 'agent', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(`http://localhost${path}`), {
    fetch: (url, init) => send(String(url), init!, ip),
  })
  await client.connect(transport)
  return client
}
const search = { name: 'search', arguments: { query: 'a' } }

describe('the client library of MCP', () => {
  test('With the status 200 a refused call is an error of the protocol, with its code and its wait.', async () => {
    const client = await connect('/read', '198.51.100.2')
    await client.callTool(search)
    const refused = await client.callTool(search).catch((error: unknown) => error)
    expect(refused).toMatchObject({
      code: -32005,
      message: expect.stringMatching(/Quota exceeded\. Try again in \d+ \w+\./),
      data: { status: 429, retryAfterMs: expect.any(Number), 'violated-policies': ['read'] },
    })
    await client.close()
  })

  test('With the status 429 a refused call is an error of the transport, whose text is the JSON-RPC error.', async () => {
    const client = await connect('/mcp', '198.51.100.3')
    await client.callTool(search)
    const refused = await client.callTool(search).catch((error: unknown) => error)
    const { status, text } = (refused as { data: { status: number; text: string } }).data
    expect(status).toBe(429)
    expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', error: { code: -32005 } })
    await client.close()
  })
})

describe('a refusal by protocol', () => {
  const json = (body: unknown) => ({
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
  const call = (id?: number) => ({ jsonrpc: '2.0', id, method: 'tools/call' })

  test('It keeps Retry-After, the rate limit fields and the header fields of the configuration.', async () => {
    const ip = '198.51.100.4'
    await send('/read', json(call(1)), ip)
    const { status, headers } = await send('/read', json(call(2)), ip)
    expect(status).toBe(200)
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(headers.get('ratelimit')).toMatch(/"read";r=0/)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('x-policy')).toBe('read')
  })

  test('A notification and an unreadable body, which get no answer, get the status 429.', async () => {
    const ip = '198.51.100.5'
    await send('/read', json(call(1)), ip)
    for (const init of [json(call()), json({ ...call(1), text: 'x'.repeat(5000) })]) {
      const refused = await send('/read', init, ip)
      expect([refused.status, ((await refused.json()) as { id: unknown }).id]).toEqual([429, null])
    }
  })

  test('The errors of GraphQL have the time to wait.', async () => {
    const ip = '198.51.100.6'
    await send('/graphql', json({ query: '{ a }' }), ip)
    const refused = await send('/graphql', json({ query: '{ a }' }), ip)
    expect(refused.status).toBe(200)
    expect(await refused.json()).toEqual({
      errors: [
        {
          message: expect.stringContaining('Quota exceeded.'),
          extensions: {
            code: 'RATE_LIMITED',
            retryAfterMs: expect.any(Number),
            'violated-policies': ['graphql'],
          },
        },
      ],
    })
  })

  test.each(['', '/nginx'])(
    'Forward-auth%s never answers a refused client with the status 200, also if the call has a body.',
    async (variant) => {
      const auth = () =>
        gateway.fetch(`/_sluice/v1/auth${variant}`, {
          ...json(call(1)),
          headers: {
            'content-type': 'application/json',
            'sluice-token': API_TOKEN,
            'x-forwarded-method': 'POST',
            'x-forwarded-proto': 'https',
            'x-forwarded-host': 'a.test',
            'x-forwarded-uri': '/auth',
            'x-forwarded-for': `198.51.100.${variant.length + 7}`,
          },
        })
      expect((await auth()).status).toBe(200)
      expect((await auth()).status).toBeGreaterThanOrEqual(400)
    },
  )
})

describe('the configuration', () => {
  const base = { name: 'a', limit: 1, window: '1m' as const }
  const problems = (refusal: unknown, use: object[] = [bodies(), refusals()]) =>
    expectedBy(() => parseConfig({ policies: [base], refusal, use }))

  test.each([
    ['json-rpc'],
    ['graphql'],
    [{ body: 'json-rpc' }],
    [{ body: 'graphql', status: 200 }],
    [{ body: 'graphql', status: 503, headers: { 'x-a': '{{policy}}' } }],
  ])('The refusal %j is valid.', (refusal) => {
    expect(problems(refusal)).toEqual([])
  })

  test.each([
    [
      'rpc',
      'refusal: an object with status, body and headers, "json-rpc", "graphql", or a function',
    ],
    [{ body: 'rpc' }, 'refusal.body: an object, "json-rpc" or "graphql"'],
    [{ body: 'json-rpc', status: 302 }, 'refusal.status: a whole number from 400 to 599'],
    [
      { status: 200, body: { text: 'a' } },
      'refusal.status: a whole number from 400 to 599 (200 only with body: "json-rpc" or "graphql")',
    ],
  ])('The refusal %j is refused with one problem.', (refusal, problem) => {
    expect(problems(refusal)).toEqual([problem])
  })

  test('It needs the feature that reads the body, in the configuration and in a policy.', () => {
    const app = (own: object, use: object[]) =>
      expectedBy(() => {
        const options = { policies: [{ ...base, key: 'global' }], use, ...own }
        createAppLimiter(options as never)
      })
    const bodiesIsMissing = "use: [bodies()], with import { bodies } from 'sluice/features'"
    const policies = [{ ...base, key: 'global', refusal: 'graphql' }]
    expect(app({ refusal: 'json-rpc' }, [])).toEqual([`refusal: ${bodiesIsMissing}`])
    expect(app({ refusal: 'json-rpc' }, [bodies()])).toEqual([])
    expect(app({ policies }, [])).toEqual([`policies[0].refusal: ${bodiesIsMissing}`])
    expect(app({ policies }, [bodies()])).toEqual([])
  })
})
