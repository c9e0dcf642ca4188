/** Checks of a deployment as a whole: its configuration, its database and its clocks. */
import { credentialsOf } from '../../src/core/base/bindings.ts'
import type { Config } from '../../src/core/config/parse.ts'
import { fingerprints } from '../../src/features/verify/fingerprint.ts'
import {
  databaseId,
  type VerifiedDatabase,
  type VerifyReport,
} from '../../src/features/verify/report.ts'
import { type Finding, ok, problem, unknown } from './finding.ts'

/** Compares the deployed configuration with that of this folder. */
export async function checkConfiguration(
  config: Config,
  reports: VerifyReport[],
): Promise<Finding> {
  const name = 'configuration'
  const [first] = reports as [VerifyReport]
  const { deployed, live } = first
  if (new Set(reports.map((one) => JSON.stringify(one.deployed))).size > 1) {
    return problem(
      name,
      'several configurations answer: a deployment is in progress, or an old instance still runs',
    )
  }
  const own = await fingerprints(config)
  const names = Object.keys(own.policies)
  const missing = names.filter((one) => !(one in deployed.policies))
  const others = Object.keys(deployed.policies).filter((one) => !(one in own.policies))
  const changed = names.filter(
    (one) => one in deployed.policies && own.policies[one] !== deployed.policies[one],
  )
  const differences = [
    ...(missing.length > 0 ? [`not deployed: ${missing.join(', ')}`] : []),
    ...(changed.length > 0 ? [`deployed with other terms: ${changed.join(', ')}`] : []),
    ...(others.length > 0 ? [`only deployed: ${others.join(', ')}`] : []),
    ...(own.others !== deployed.others && missing.length + changed.length + others.length === 0
      ? ['the fields beside policies differ']
      : []),
  ]
  if (differences.length > 0) {
    return problem(
      name,
      `not that of this folder (${differences.join('; ')}). Deploy it, or run sluice verify in the folder that was deployed`,
    )
  }
  const text = `this folder's (fingerprint ${own.others})`
  return ok(name, live ? `${text}; live policies are in force` : text)
}

/** A database that answers later than this makes each request slow, ms. */
const SLOW_MS = 250

export async function checkStore(
  reports: VerifyReport[],
  fallbacks: number,
  env: Record<string, string | undefined>,
): Promise<Finding> {
  const name = 'store'
  const all = reports.map(({ database }) => database)
  const failing = all.find(({ status }) => status === 'failing')
  if (failing) {
    return problem(
      name,
      `the database does not answer (${failing.code}): onStoreError decides all requests`,
    )
  }
  const [{ id }] = all as [VerifiedDatabase]
  if (all.some((one) => one.id !== id)) {
    return problem(
      name,
      'several databases answer for one: the instances have different variables, so that each counts by itself',
    )
  }
  const { url } = credentialsOf(env)
  if (url && id && (await databaseId(url)) !== id) {
    return problem(
      name,
      'the database is not the one in UPSTASH_REDIS_REST_URL of this environment',
    )
  }
  if (fallbacks > 0) {
    return problem(
      name,
      `the database did not decide ${fallbacks} of the requests: onStoreError answered`,
    )
  }
  const slowest = Math.max(...all.map(({ roundTripMs = 0 }) => roundTripMs))
  const text = `answered in ${slowest} ms; the fallback did not decide`
  return ok(
    name,
    slowest > SLOW_MS ? `${text}. That is slow: choose a region near the server` : text,
  )
}

/** Clocks that differ less are right, ms. */
const MAX_OFFSET_MS = 5_000

export function checkClock(offsetMs: number, { database }: VerifyReport): Finding {
  const name = 'clock'
  const { clockOffsetMs = 0, roundTripMs = 0 } = database
  if (Math.abs(clockOffsetMs) > MAX_OFFSET_MS + roundTripMs) {
    return problem(
      name,
      `the clock of the database is ${spanText(clockOffsetMs)} that of the server: calendar windows and Retry-After dates are off by it`,
    )
  }
  if (Math.abs(offsetMs) > MAX_OFFSET_MS) {
    return problem(name, `the clock of the server is ${spanText(offsetMs)} that of this machine`)
  }
  const most = Math.max(Math.abs(offsetMs), Math.abs(clockOffsetMs))
  return ok(name, `within ${most < 100 ? '0.1 s' : `${Math.ceil(most / 100) / 10} s`}`)
}

function spanText(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000)
  const span = seconds >= 120 ? `${Math.round(seconds / 60)} minutes` : `${seconds} s`
  return `${span} ${ms < 0 ? 'behind' : 'ahead of'}`
}

/** The deployment has no report. */
export const withoutReport = (text: string): Finding =>
  unknown('configuration', `not checked: ${text}`)
