/** Runs all checks of `sluice verify`. */
import type { Config } from '../../src/core/config/parse.ts'
import { ANSWER } from '../../src/features/verify/field.ts'
import type { VerifyReport } from '../../src/features/verify/report.ts'
import { expectationsOf } from '../../src/lint/expect/options.ts'
import { checkAddress } from './address.ts'
import { type Client, createClient, isTooMany, TOO_MANY, TooMany, Unanswered } from './client.ts'
import { checkClock, checkConfiguration, checkStore, withoutReport } from './deployment.ts'
import { checkExpectations } from './expectation.ts'
import { type Finding, problem, unknown } from './finding.ts'
import { checkNetworks } from './networks.ts'
import { checkOrigin } from './origin.ts'
import { checkPolicy, type PolicyResult } from './policy.ts'
import type { PolicyContext } from './policy-context.ts'
import { createLocalMatcher, type KnownRoute, routesOf } from './sample.ts'
import { checkShared } from './shared.ts'
import { detailIn } from './words.ts'

export interface VerifyOptions {
  url: string
  token: string
  config: Config
  /** The fields of `--header`. Defaults to none. */
  headers?: Record<string, string>
  /** The URL of the app itself. Defaults to no check. */
  origin?: string | undefined
  /** True to send admitted requests on to the app. Defaults to false. */
  through?: boolean
  /** The longest wait for a refused quota, ms. */
  maxWaitMs: number
  /** Routes of the app that must be behind the limiter. Defaults to none. */
  paths?: KnownRoute[]
  /** The names of the policies to check. Defaults to all. */
  only?: string[] | undefined
  /** The variables of this environment. Defaults to none. */
  env?: Record<string, string | undefined>
  /** The patterns of the Worker's routes. Defaults to none. */
  routes?: string[]
}

/** How many policies are checked at the same time. */
const CONCURRENT = 4
/** How often the deployment is asked for its state: other instances may answer. */
const REPORTS = 4

/**
 * Checks a deployment.
 * @throws Error if the address cannot be reached
 */
export async function verifyDeployment(options: VerifyOptions): Promise<Finding[]> {
  const { url, token, config, headers = {}, through = false, origin, env = {} } = options
  const client = createClient({ url, token, headers, through })
  const host = new URL(url).hostname
  const reached = await client.report()
  const refused = 'report' in reached ? undefined : whyNoReport(reached, url)
  if (refused?.isFinal) return [problem('verify', refused.text), ...(await originOf(origin, host))]
  const others = refused
    ? []
    : await Promise.all(Array.from({ length: REPORTS - 1 }, () => client.report()))
  const reports = [reached, ...others].flatMap((one) => ('report' in one ? [one.report] : []))

  const context: PolicyContext = {
    client,
    config,
    host,
    headers,
    match: createLocalMatcher(config, url, headers),
    known: [...(options.paths ?? []), ...routesOf(expectationsOf(config).output ?? [])],
    maxWaitMs: options.maxWaitMs,
    routes: options.routes ?? [],
    poweredBy: ('headers' in reached && reached.headers.get('x-powered-by')) || '',
  }
  const { only } = options
  const policies = config.policies.filter(({ name }) => only?.includes(name) ?? true)
  const results = await inTurns(policies, (policy) =>
    attempt(
      () => checkPolicy(policy, context),
      (failure): PolicyResult => ({ finding: failure(policy.name) }),
    ),
  )
  const several = (name: string, check: () => Promise<Finding[]>) =>
    attempt(check, (failure) => [failure(name)])
  const expectations = only ? [] : await several('expect', () => checkExpectations(context))
  const plans = results.flatMap(({ plan }) => plan ?? [])
  return [
    ...results.map(({ finding }) => finding),
    ...expectations,
    ...(plans.length > 0 ? await several('shared', () => checkShared(plans, client)) : []),
    ...(refused
      ? [withoutReport(refused.text)]
      : await ofReports(config, reports, results, 'report' in reached ? reached.offsetMs : 0, env)),
    ...(await several('address', () => addressOf(config, host, results, client))),
    ...(await checkNetworks(config)),
    ...(await originOf(origin, host)),
  ]
}

async function ofReports(
  config: Config,
  reports: VerifyReport[],
  results: PolicyResult[],
  offsetMs: number,
  env: Record<string, string | undefined>,
): Promise<Finding[]> {
  const fallbacks = results.filter(({ decision }) => decision?.reason === 'store-error').length
  return [
    await checkConfiguration(config, reports),
    await checkStore(reports, fallbacks, env),
    checkClock(offsetMs, reports[0]!),
  ]
}

const originOf = async (origin: string | undefined, host: string) =>
  origin === undefined ? [] : [await checkOrigin(origin, host)]

async function addressOf(config: Config, host: string, results: PolicyResult[], client: Client) {
  const decision = results.find((one) => one.decision)?.decision
  const finding = decision && (await checkAddress(config, host, decision, client))
  return finding ? [finding] : []
}

/**
 * Runs one check. One request without an answer makes one finding, so that the others are still shown.
 * @param or makes the result of a check that failed
 */
async function attempt<Result>(
  check: () => Promise<Result>,
  or: (failure: (name: string) => Finding) => Result,
): Promise<Result> {
  try {
    return await check()
  } catch (error) {
    if (error instanceof TooMany) return or((name) => unknown(name, `not checked: ${TOO_MANY}`))
    if (error instanceof Unanswered) return or((name) => problem(name, error.message))
    throw error
  }
}

/** Why the deployment has not answered `/_sluice/v1/verify`. It is final if no request would be recognized. */
function whyNoReport(
  { status, headers, body }: { status: number; headers: Headers; body: string },
  url: string,
): { text: string; isFinal: boolean } {
  const place = whereTo(headers.get('location'), url)
  if (status >= 300 && status < 400 && place && place.origin !== new URL(url).origin) {
    const text = `${url} redirects to ${place.origin}: run sluice verify with that address`
    return { text, isFinal: true }
  }
  if (isTooMany({ status, body })) return { text: TOO_MANY, isFinal: true }
  if (status === 401 && /Sluice-Verify/.test(body)) {
    const text =
      'the token is not one of SLUICE_VERIFY_TOKEN of the deployment: set the same value in both places'
    return { text, isFinal: true }
  }
  if (status >= 500)
    return { text: `the deployment answers ${status}${detailIn(body)}`, isFinal: true }
  if (status === 404 && /Paths under \/_sluice\/ are reserved/.test(body)) {
    const text =
      'Sluice answers, but without the variable SLUICE_VERIFY_TOKEN: set it to a text of at least 16 characters'
    return { text, isFinal: true }
  }
  if (headers.has(ANSWER)) {
    const text =
      'Sluice decides here for another server. Run sluice verify also with the address of the Worker, for its configuration, database and clock'
    return { text, isFinal: false }
  }
  if (status === 200 && /"deployed":/.test(body)) {
    const text = 'a cache in front of Sluice answers /_sluice/v1/verify: exempt the path from it'
    return { text, isFinal: false }
  }
  const text = `/_sluice/v1/verify answers ${status} without Sluice: the limiter does not cover this path, has no verify() in use, or no variable SLUICE_VERIFY_TOKEN`
  if (new URL(url).pathname === '/') return { text, isFinal: false }
  return { text: `${text}. Write the address without its path`, isFinal: true }
}

const whereTo = (location: string | null, from: string) =>
  location !== null && URL.canParse(location, from) ? new URL(location, from) : undefined

/** Runs tasks, a few at a time, and returns their results in order. */
async function inTurns<Item, Result>(items: Item[], run: (item: Item) => Promise<Result>) {
  const results: Result[] = []
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const index = next++
      results[index] = await run(items[index]!)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT }, worker))
  return results
}
