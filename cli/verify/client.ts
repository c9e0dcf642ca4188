/** Sends verified requests to a deployment. */
import { randomBytes } from 'node:crypto'
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

/** The longest wait for an answer, ms. */
const TIMEOUT_MS = 30_000

/** Creates a client of a deployment. */
export function createClient({ url, token, headers: all, through }: Target) {
  // A cache may have answers to earlier runs, so the numbers of two runs differ.
  let count = Math.floor(Math.random() * 900_000_000)
  /** The time of the server minus the time of this machine, ms. */
  let offsetMs = 0
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
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((error: Error) => {
      throw new Error(`${base} cannot be reached: ${reasonOf(error)}`)
    })
    const body = await response.text()
    const receivedAt = performance.now()
    const { status, headers } = response
    return { own, status, headers, body, ms: receivedAt - startedAt, receivedAt }
  }

  return {
    /**
     * Sends a request that has counters of its own. An admitted one does not reach the app, unless the target says `through`.
     * @throws Error if the address cannot be reached
     */
    async send(request: SampleRequest, terms: Terms): Promise<Answer> {
      const { own, ...answer } = await call(request, { ...terms, through })
      const decision = decisionIn(answer.headers)
      const isCached = decision !== undefined && decision.count !== own
      return { ...answer, decision: isCached ? undefined : decision, isCached }
    },

    /**
     * Asks the deployment for its state, and learns the time of its clock.
     * @returns the state, or the answer of another server
     * @throws Error if the address cannot be reached
     */
    async report(): Promise<
      | { report: VerifyReport; offsetMs: number }
      | { status: number; headers: Headers; body: string }
    > {
      const request = { method: 'GET', path: '/_sluice/v1/verify', headers: {} }
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
    },
  }
}

/** The message of an error of `fetch`, whose cause has the reason. */
export function reasonOf(error: Error): string {
  const { code, message } = Object(error.cause) as { code?: string; message?: string }
  return code ?? message ?? error.message
}

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
