import type { IncomingMessage } from 'node:http'

/** An answer of the local server. */
export interface Answer {
  status: number
  type: string
  body: string
  retryAfter?: string
  cookie?: string
}

/** The Worker that the dashboard shows. */
export interface WatchedWorker {
  /** Its origin, such as `https://www.example.com`. */
  url: string
  /** Returns a token of `SLUICE_OPERATE_TOKEN`. */
  token(): string
}

const MAX_BODY = 64 * 1024
/** The counts of hundreds of policies have some 100 KB. */
const MAX_ANSWER = 4 * 1024 * 1024
const TIMEOUT_MS = 10_000
const JSON_TYPE = /^application\/(problem\+)?json\b/

/** The calls that the page needs. No other path of the Worker can be reached. */
const forwarded = [
  /^GET \/_sluice\/v1\/(?:stats|policies|policies\/[^/?#\\]+\/(?:keys|bans))$/,
  /^POST \/_sluice\/v1\/policies\/[^/?#\\]+\/(?:peek|ban|unban|reset|try)$/,
  /^(?:PUT|DELETE) \/_sluice\/v1\/policies\/[^/?#\\]+\/keys\/[^/?#\\]+\/limit$/,
]

export function problem(status: number, detail: string): Answer {
  return { status, type: 'application/problem+json', body: JSON.stringify({ status, detail }) }
}

/** Sends a call of the page to the Worker, with the token. Returns `undefined` for calls that the page does not need. */
export async function forward(
  request: IncomingMessage,
  worker: WatchedWorker,
): Promise<Answer | undefined> {
  const { method = '', url: path = '' } = request
  if (!forwarded.some((one) => one.test(`${method} ${path}`))) return undefined
  if (new URL(path, worker.url).pathname !== path) return undefined // dots, which a URL resolves
  const body = method === 'POST' || method === 'PUT' ? await readBody(request) : null
  if (body === undefined) return problem(413, `The body is larger than ${MAX_BODY / 1024} KiB.`)
  return ask(method, path, worker, body)
}

/** Calls the Worker with the token of an operator. Never rejects. */
export async function ask(
  method: string,
  path: string,
  { url, token }: WatchedWorker,
  body: string | null = null,
): Promise<Answer> {
  try {
    const response = await fetch(new URL(path, url), {
      method,
      headers: {
        Authorization: `Bearer ${token()}`,
        ...(body && { 'Content-Type': 'application/json' }),
      },
      body,
      redirect: 'manual', // the token is for this host only
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    // A Worker without a list of bans is no error of the page.
    if (path.endsWith('/bans') && [404, 409].includes(response.status)) {
      return { status: 200, type: 'application/json', body: '{}' }
    }
    return await answerOf(response, url)
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string; message?: string } }
    return problem(502, `${url} does not respond: ${cause?.code ?? cause?.message ?? message}.`)
  }
}

async function answerOf(response: Response, url: string): Promise<Answer> {
  const { status, headers } = response
  const type = headers.get('content-type') ?? ''
  const body = await textUpTo(MAX_ANSWER, response.body ?? [])
  if (body === undefined) {
    return problem(502, `${url} answers with more than ${MAX_ANSWER / 1024 / 1024} MiB.`)
  }
  if (!JSON_TYPE.test(type)) {
    if (status === 404) return problem(404, 'The Worker has no such endpoint.')
    return problem(502, `${url} answers ${status} without JSON. Is this the address of the Worker?`)
  }
  const retryAfter = headers.get('retry-after')
  return { status, type, body, ...(retryAfter && { retryAfter }) }
}

export const readBody = (request: IncomingMessage): Promise<string | undefined> =>
  textUpTo(MAX_BODY, request.iterator({ destroyOnReturn: false }))

/** Reads a body; `undefined` if it is longer. */
async function textUpTo(
  most: number,
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > most) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
