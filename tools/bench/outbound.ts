/**
 * `npx node tools/bench/outbound.ts`: four processes with 16 callers each, on one origin with a limit of 50 requests a second. Two of the processes
 * end after half of the time. Prints what the origin has answered, for `outbound` and for limiters of one process.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startBridge, startRedis } from 'sluice-upstash-bridge'
import { type Arrival, limitedOrigin } from '../../test/support/limited-origin.ts'

const LIMIT = 50
/** The time that is measured with all processes, and then with two, ms. */
const PHASE_MS = 10_000
/** The time in which the processes start, and end, ms. */
const MARGIN_MS = 5_000

const program = fileURLToPath(new URL('outbound/callers.ts', import.meta.url))
const contenders = {
  outbound: '`sluice/outbound`',
  'bottleneck-quarter': '`bottleneck`, a quarter of the limit in each process',
  bottleneck: '`bottleneck`, the limit in each process, and retries',
  'p-limit': '`p-limit`, 4 at a time in each process, and retries',
}

const redis = await startRedis({ own: true })
const bridge = await startBridge({ redis: redis.url })

/** The share of the limit that was admitted between two times, ms since the epoch. */
const used = (arrivals: Arrival[], from: number) =>
  arrivals.filter(({ at, status }) => status === 200 && at >= from && at < from + PHASE_MS).length /
  ((LIMIT * PHASE_MS) / 1000)

const percent = (share: number) => `${(share * 100).toFixed(1)} %`

console.log('| limiter | of the limit, four processes | of the limit, two processes | 429s |')
console.log('| --- | --- | --- | --- |')
for (const [name, label] of Object.entries(contenders)) {
  const origin = await limitedOrigin({ requests: LIMIT, tokens: 1e9 })
  const begun = Date.now()
  const half = begun + MARGIN_MS + PHASE_MS
  const whole = half + MARGIN_MS + PHASE_MS
  const env = {
    ...process.env,
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: bridge.token,
    SLUICE_SECRET: name,
    ORIGIN: origin.url,
    CONTENDER: name,
  }
  await Promise.all(
    [half, half, whole, whole].map((until) =>
      promisify(execFile)(process.execPath, [program], { env: { ...env, UNTIL: `${until}` } }),
    ),
  )
  const refused = origin.arrivals.filter(({ status }) => status === 429).length
  const shares = [begun + MARGIN_MS, half + MARGIN_MS].map((from) =>
    percent(used(origin.arrivals, from)),
  )
  console.log(`| ${label} | ${shares.join(' | ')} | ${refused} |`)
  origin.close()
}
await bridge.close()
await redis.stop()
