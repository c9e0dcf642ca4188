/** The decision API in this process: the gateway, the bridge, the demo origin and a real Redis, without workerd. */
import { startBridge } from 'sluice-upstash-bridge'
import { vi } from 'vitest'
import { startOrigin } from '../../cli/dev/origin.ts'
import type { JsonConfig } from '../../dev/any-config.ts'
import openapi from '../../src/api/openapi.json' with { type: 'json' }
import { jwt } from '../../src/features/jwt/index.ts'
import { observe } from '../../src/features/observe/index.ts'
import { createGateway } from '../../src/hosts/worker/gateway.ts'
import { API_TOKEN, apiOf, OPERATE } from './api-stack.ts'
import { borrowRedis } from './borrow-redis.ts'

const context = { waitUntil() {}, passThroughOnException() {}, props: {} }
const URL_OF_API = 'https://limits.example.com'

type Fetched = RequestInit & { ip?: string; headers?: Record<string, string> }

export async function startLocalApi(
  { jwt: jwtOptions, ...config }: JsonConfig,
  env: Record<string, string> = {},
) {
  const origin = await startOrigin()
  // With the URL of another database this one is not needed.
  const redis = env.UPSTASH_REDIS_REST_URL ? undefined : await borrowRedis()
  const bridge = redis && (await startBridge({ redis: redis.url, token: 'a-local-token' }))
  const logs: string[] = []
  const spy = vi.spyOn(console, 'error').mockImplementation((line) => void logs.push(String(line)))
  const gateway = createGateway(
    {
      deadline: '10s', // a slow machine must cause no store errors
      clientAddress: 'cloudflare',
      ...config,
      use: [observe(), ...(config.use ?? []), ...(jwtOptions ? [jwt(jwtOptions)] : [])],
    },
    { openapi },
  )
  const variables = {
    UPSTASH_REDIS_REST_URL: bridge?.url,
    UPSTASH_REDIS_REST_TOKEN: bridge?.token ?? 'a-local-token',
    ORIGIN: origin.url,
    SLUICE_API_TOKEN: API_TOKEN,
    SLUICE_OPERATE_TOKEN: OPERATE,
    ...env,
  }
  const fetchPath = async (path: string, init: RequestInit = {}) => {
    const request = new Request(new URL(path, URL_OF_API), init)
    const cf = JSON.parse(request.headers.get('mf-cf-blob') ?? '{}')
    return gateway.fetch(Object.assign(request, { cf }), variables, context)
  }
  return {
    ...apiOf(fetchPath),
    redis: redis!,
    bridge: bridge!,
    /** The lines that the gateway has logged. */
    logs,
    url: URL_OF_API,
    /** Fetches a path through the gateway. `ip` is the address of the client. */
    fetch: (path: string, { ip = '203.0.113.7', headers, ...init }: Fetched = {}) =>
      fetchPath(path, { ...init, headers: { 'CF-Connecting-IP': ip, ...headers } }),
    /** Number of HTTP requests that the bridge has answered. */
    httpRequests: () => bridge!.stats()[bridge!.token]!.http,
    async stop() {
      spy.mockRestore()
      await Promise.all([bridge?.close(), origin.close()])
      await redis?.stop()
    },
  }
}

export type LocalApi = Awaited<ReturnType<typeof startLocalApi>>
