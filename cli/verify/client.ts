/** Sends verified requests to a deployment. */
import { randomBytes } from 'node:crypto'
import { spanText } from '../../src/core/base/duration.ts'
import { ANSWER, type Claim, FIELD, signed } from '../../src/features/verify/field.ts'
import type { VerifyReport } from '../../src/features/verify/report.ts'
import type { VerifiedDecision } from '../../src/features/verify/verified.ts'

/** A deployment. */
export interface Target {
  /** The address, such as `https://www.example.com`. */
  url: string
  /** A token of its variable `SLUICE_VERIFY_TOKEN`. */
  token: string
  /** Header fields of every request, such as credentials. */
  headers: Record<string, string>
  /** True to send admitted requests on to the app. */
  through: boolean
  /** The longest wait for an answer, ms. Defaults to 30 s. */
  timeoutMs?: number
}

/** A request to send. */
export interface SampleRequest {
  method: string
  /** The path and the query, as they are sent. */
  path: string
  headers: Record<string, string>
  body?: string | undefined
}

/** How a verified request is counted. */
export interface Terms extends Pick<Claim, 'policy' | 'cost'> {
  /** Requests with the same nonce share counters: see `newNonce`. */
  nonce: string
}

/** The answer to a verified request. */
export interface Answer {
  status: number
  headers: Headers
  body: string
  /** The round trip, ms. */
  ms: number
  /** When the answer arrived, by the monotonic clock of this process, ms. */
  receivedAt: number
  /** The decision of Sluice about this request. Undefined if Sluice did not decide it. */
  decision: VerifiedDecision | undefined
  /** True if the answer is that to another request: a cache has answered. */
  isCached: boolean
}

export const newNonce = (): string => randomBytes(12).toString('base64url')

export type Client = ReturnType<typeof createClient>

/** Creates a client of a deployment. */
export function createClient({ url, token, headers: all, through, timeoutMs = 30_000 }: Target) {
  // A cache may have answers to earlier runs, so the numbers of two runs differ.
  let count = Math.floor(Math.random() * 900_000_000)
  /** The time of the server minus the time of this machine, ms. */
  let offsetMs = 0
  let fastestMs = Number.POSITIVE_INFINITY
  const base = url.replace(/\/$/, '')
  const timeThere = () => Date.now() + offsetMs

  async function call(request: SampleRequest, claim: Omit<Claim, 'at' | 'count'>) {
    const own = ++count
    const field = await signed({ ...claim, count: own, at: timeThere() }, token)
    const startedAt = performance.now()
    const response = await fetch(`${base}${request.path}`, {
      method: request.method,
      headers: { 'user-agent': 'sluice-verify', ...request.headers, ...all, [FIELD]: field },
      body: request.body ?? null,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    }).catch((error: Error) => {
      const where = request.path === REPORT ? base : `${request.method} ${base}${request.path}`
      throw new Unanswered(`${where} is not answered: ${reasonOf(error, timeoutMs)}`)
    })
    const receivedAt = performance.now()
    fastestMs = Math.min(fastestMs, receivedAt - startedAt)
    const body = await beginningOf(response)
    const { status, headers } = response
    return { own, status, headers, body, ms: receivedAt - startedAt, receivedAt }
  }

  async function report(): Promise<Reached | Omit<Answer, 'decision' | 'isCached'>> {
    const request = { method: 'GET', path: REPORT, headers: {} }
    for (const isLast of [false, true]) {
      const { own, ...answer } = await call(request, { nonce: newNonce() })
      const json = jsonIn(answer.body)
      const isOwn = answer.status === 200 && json.v === 1 && json.count === own
      if (typeof json.now === 'number') {
        const measured = json.now - (Date.now() - answer.ms / 2)
        if (isOwn) return { report: json as unknown as VerifyReport, offsetMs: measured }
        offsetMs = Math.round(measured)
      }
      if (isLast || typeof json.now !== 'number') return answer
    }
    throw new Error('unreachable')
  }

  return {
    /**
     * Sends a request that has counters of its own. An admitted one does not reach the app, unless the target says `through`.
     * @throws {Unanswered} if there is no answer
     * @throws {TooMany} if the deployment verifies no more requests for now
     */
    async send(request: SampleRequest, terms: Terms): Promise<Answer> {
      const { own, ...answer } = await call(request, { ...terms, through })
      const decision = decisionIn(answer.headers)
      const isCached = decision !== undefined && decision.count !== own
      if (!decision && isLimited(answer)) {
        const reached = await report()
        if ('status' in reached && isTooMany(reached)) throw new TooMany(TOO_MANY)
      }
      return { ...answer, decision: isCached ? undefined : decision, isCached }
    },

    /**
     * Asks the deployment for its state, and learns the time of its clock.
     * @returns the state, or the answer of another server
     * @throws {Unanswered} if there is no answer
     */
    report,

    /** The shortest round trip so far, ms. The first ones of a server are longer. */
    fastestMs: () => fastestMs,
  }
}

/** The state of a deployment. */
interface Reached {
  report: VerifyReport
  /** The time of the server minus the time of this machine, ms. */
  offsetMs: number
}

const REPORT = '/_sluice/v1/verify'

/** A request without an answer. */
export class Unanswered extends Error {}

/** The deployment verifies no more requests for now. */
export class TooMany extends Error {}

export const TOO_MANY =
  'the deployment has verified 2,000 requests in this minute. Run sluice verify again in a minute'

/** True for the report of an isolate that verifies no more requests for now. */
export const isTooMany = ({ status, body }: { status: number; body: string }): boolean =>
  status === 429 && /has verified too many requests/.test(body)

/** True for an answer that a limiter has made or has let pass. */
export const isLimited = ({ headers }: { headers: Headers }): boolean =>
  headers.has('ratelimit-policy') || headers.has('ratelimit')

/** The most of a body that is read, in characters, and for how long, ms: that of an app may never end. */
const MAX_BODY = 65_536
const BODY_MS = 2_000

/** The beginning of a body. */
async function beginningOf({ body }: Response): Promise<string> {
  if (!body) return ''
  const reader = body.getReader()
  const stop = () => reader.cancel().catch(() => {})
  const timer = setTimeout(stop, BODY_MS)
  const decoder = new TextDecoder()
  let text = ''
  try {
    while (text.length < MAX_BODY) {
      const { done, value } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
    }
  } catch {
    // The connection has ended, and the sentence needs no more.
  }
  clearTimeout(timer)
  await stop()
  return text
}

/**
 * Why a request has no answer.
 * @param timeoutMs how long it was waited for
 */
export function reasonOf(error: Error, timeoutMs: number): string {
  const { code = '', message } = Object(error.cause ?? error) as { code?: string; message?: string }
  if (error.name === 'TimeoutError') return `no answer within ${spanText(timeoutMs)}`
  if (code === 'ENOTFOUND') return 'no host has this name (ENOTFOUND)'
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    return 'the port does not speak TLS. Write http:// for it'
  }
  if (isUntrusted(code)) {
    return `its certificate is not trusted (${code}). For an authority of your own, set NODE_EXTRA_CA_CERTS to its certificate`
  }
  return code || message || error.message
}

const isUntrusted = (code: string) => /CERT|SELF_SIGNED|VERIFY_LEAF|ALTNAME/.test(code)

function jsonIn(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

function decisionIn(headers: Headers): VerifiedDecision | undefined {
  const { count, ...decision } = jsonIn(headers.get(ANSWER) ?? '')
  return typeof count === 'number' ? ({ count, ...decision } as VerifiedDecision) : undefined
}
