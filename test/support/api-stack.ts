import type { Decision } from '../../src/core/base/decision.ts'
import type { JsonConfig } from '../../tools/any-config.ts'
import type { StackOptions } from '../../tools/stack.ts'
import { type IsolateOptions, useGateway } from './gateway.ts'
import { startStack } from './stack.ts'

export const API_TOKEN = 'a-api-token-for-tests'
export const OPERATE = 'an-operate-token-for-tests'

export interface Answer<T> {
  status: number
  headers: Headers
  body: T
}

export interface CallOptions {
  /** The bearer token. `null` sends no token. */
  token?: string | null
  headers?: Record<string, string>
  method?: string
}

/** The tokens of the decision API, as variables of a Worker. */
export const apiTokens = { SLUICE_API_TOKEN: API_TOKEN, SLUICE_OPERATE_TOKEN: OPERATE }

/** Starts the whole stack with the decision API. */
export async function startApi(
  config: JsonConfig,
  env: Record<string, string> = {},
  options: Pick<StackOptions, 'observe'> = {},
) {
  const stack = await startStack({ ...options, config, env: { ...apiTokens, ...env } })
  return {
    stack,
    ...apiOf((path, init) => fetch(stack.url + path, init)),
    stop: () => stack.stop(),
  }
}

/** The address of the gateway of `useApi`. */
export const API_URL = 'https://limits.example.com'

/** Runs the gateway in this process with the decision API, like `useGateway`. */
export function useApi(
  config: JsonConfig,
  env: IsolateOptions['env'] = {},
  options: IsolateOptions = {},
) {
  const all = { config, observe: {}, ...options, env: { ...apiTokens, ...env } }
  const gateway = useGateway(all)
  return Object.assign(gateway, apiOf(gateway.fetch))
}

/** The calls of the decision API. `send` sends them to a Worker or to a gateway in this process. */
export function apiOf(send: (path: string, init: RequestInit) => Promise<Response> | Response) {
  /** Calls an endpoint. A body that is not a string is sent as JSON. */
  async function call<T = Record<string, unknown>>(
    path: string,
    body?: unknown,
    {
      token = API_TOKEN,
      headers = {},
      method = body === undefined ? 'GET' : 'POST',
    }: CallOptions = {},
  ): Promise<Answer<T>> {
    const response = await send(`/_sluice/v1${path}`, {
      method,
      redirect: 'manual',
      headers: { ...(token !== null && { Authorization: `Bearer ${token}` }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const json = text !== '' && /json/.test(response.headers.get('content-type') ?? '')
    return {
      status: response.status,
      headers: response.headers,
      body: (json ? JSON.parse(text) : text) as T,
    }
  }

  return {
    call,
    decide: (body: unknown, options?: CallOptions) => call<Decision>('/decide', body, options),
    decideEach: (bodies: unknown[], options?: CallOptions) =>
      call<Decision[]>('/decide', bodies, options),
    operate: <T>(name: string, operation: string, body: unknown) =>
      call<T>(`/policies/${name}/${operation}`, body, { token: OPERATE }),
  }
}

export type Api = Awaited<ReturnType<typeof startApi>>
export type LocalApi = ReturnType<typeof useApi>
