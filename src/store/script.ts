/** The only file that knows Lua: the script's text, its arguments, its reply. The contract is lua/README.md. */
/// <reference path="../lua.d.ts" />
import decide from '../../lua/decide.lua'
import fixedWindow from '../../lua/fixed_window.lua'
import gcra from '../../lua/gcra.lua'
import slidingLog from '../../lua/sliding_log.lua'
import slidingWindow from '../../lua/sliding_window.lua'
import tokenBucket from '../../lua/token_bucket.lua'
import type { RowState, StoreReply, StoreRequest } from './store.ts'

/** Lines of comment and indentation stay at home: every isolate's first call sends the whole text. */
const trim = (lua: string) => lua.replace(/^[ \t]*(--.*)?\n|^[ \t]+/gm, '')

/** The whole script. Upstash honours the flag only if these are the first bytes. */
export const script = `#!lua flags=allow-key-locking\n${[
  fixedWindow,
  slidingWindow,
  slidingLog,
  tokenBucket,
  gcra,
  decide,
]
  .map(trim)
  .join('')}`

/** SHA-1 of the script as Redis knows it, in hex. */
export async function scriptSha(): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(script))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** KEYS and ARGV of one call. */
export function encode(requests: StoreRequest[], now?: number): { keys: string[]; args: string[] } {
  const keys: string[] = []
  const args = [now === undefined ? '' : String(now)]
  requests.forEach(({ mode, rows, receipt }, request) => {
    for (const { subject, policy, cost } of rows) {
      const record = `sluice:1:{${subject}}`
      const key = policy.algorithm === 'sliding-log' ? `${record}:log:${policy.tag}` : record
      if (!keys.includes(key)) keys.push(key)
      args.push(
        String(request + 1),
        mode,
        String(keys.indexOf(key) + 1),
        policy.tag,
        policy.algorithm,
        String(policy.limit),
        String(policy.windowMs),
        String(policy.burst),
        String(cost),
        policy.align,
        receipt === undefined ? '' : String(receipt),
      )
    }
  })
  return { keys, args }
}

/** The reply of the script, or `undefined` where something else answered. */
export function decode(reply: unknown, requests: StoreRequest[]): StoreReply | undefined {
  const size = 1 + 5 * requests.reduce((sum, { rows }) => sum + rows.length, 0)
  if (!Array.isArray(reply) || reply.length !== size || !reply.every(Number.isSafeInteger)) {
    return undefined
  }
  let index = 1
  const row = (): RowState => {
    const [allowed, remaining, retryAfter, resetAfterMs, nextAfterMs] = reply.slice(
      index,
      index + 5,
    )
    index += 5
    return {
      allowed: allowed === 1,
      remaining,
      retryAfterMs: retryAfter < 0 ? null : retryAfter,
      resetAfterMs,
      nextAfterMs,
    }
  }
  return { now: reply[0], requests: requests.map(({ rows }) => rows.map(row)) }
}
