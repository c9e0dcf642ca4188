/** Checks on a deployment what the configuration expects (`expect`). */

import { spanText } from '../../src/core/base/duration.ts'
import { type Config, parseConfig } from '../../src/core/config/parse.ts'
import type { Match } from '../../src/core/program/match.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { covers } from '../../src/lint/covers.ts'
import { boundOf } from '../../src/lint/expect/bound.ts'
import { type Expectation, expectationsOf } from '../../src/lint/expect/options.ts'
import { titleOf } from '../../src/lint/expect/text.ts'
import { type Answer, type Client, newNonce, type SampleRequest } from './client.ts'
import { type Finding, ok, problem, unknown } from './finding.ts'
import type { PolicyContext } from './policy-context.ts'
import { createLocalMatcher, sampleFor } from './sample.ts'
import { countText, uncovered } from './words.ts'

/** The most requests of one expectation. For a larger number each states a cost, and stands for several. */
const MAX_REQUESTS = 20

/** Sends one request more than each expectation allows, until one is refused. */
export async function checkExpectations(context: PolicyContext): Promise<Finding[]> {
  const { output, problems } = expectationsOf(context.config)
  if (problems) {
    return problems.map(({ path, expected, got }) =>
      problem('expect', `${path}: expected ${expected}, got ${got}`),
    )
  }
  const isList = Array.isArray(context.config.expect)
  const findings: Finding[] = []
  // One after the other, so that the requests of one take less than its interval.
  for (const [index, expectation] of output.entries()) {
    const name = isList ? `expect[${index}]` : 'expect'
    findings.push(await check(name, index, expectation, context))
  }
  return findings
}

async function check(
  name: string,
  index: number,
  expectation: Expectation,
  context: PolicyContext,
): Promise<Finding> {
  const { client, config, host, headers, match, known } = context
  const { atMost, inMs } = expectation
  const expected = `${titleOf(expectation)}: at most ${atMost} in ${spanText(inMs)}`
  const alone = asPolicy(config, index)
  const isMeant = createLocalMatcher(alone, `https://${host}`, headers)
  const sample = await sampleFor(alone.policies[0]!, alone, host, headers, isMeant, known)
  if ('why' in sample) return unknown(name, `not checked: ${sample.why}`)
  if (!sample.match) return unknown(name, 'not checked: no request of this machine is one of these')
  const { request } = sample
  const bounding = boundingOn(expectation, config, await match(request))
  let each = Math.ceil((atMost + 1) / MAX_REQUESTS)
  if (each > 1 && !bounding) return unknown(name, `not checked: ${UNBOUND}`)
  let played = await play(client, request, expectation, each, bounding)
  if (bounding?.enough.length && isByOther(played, bounding) && played.passed > 0) {
    // As many requests as the other policy admits, which together cost what the expectation allows.
    each = Math.ceil((atMost + 1) / played.passed)
    played = await play(client, request, expectation, each, bounding)
  }
  const { passed, answer, tookMs } = played
  if (!answer.decision) return uncovered(name, answer, request, context)
  const units = each > 1 ? `, each for ${each}` : ''
  const text = `${countText(passed, 'request')} passed${units}`
  const { allowed, reason, refusedBy = [] } = answer.decision
  if (reason === 'store-error') {
    return unknown(name, 'not checked: the database did not decide, and onStoreError answered')
  }
  if (!allowed) {
    const isDenied = reason === 'denied' && config.deny.some(isAllOf(expectation))
    if (isDenied || !isByOther(played, bounding)) {
      return ok(name, `${expected}: ${text}, the next was refused`)
    }
    const by = refusedBy.length > 0 ? refusedBy.join(' and ') : 'deny'
    const why = !bounding
      ? UNBOUND
      : bounding.enough.length > 0
        ? `${bounding.enough.join(' and ')} bounds it`
        : `${bounding.name} may admit ${bounding.requests} (npx sluice check)`
    return unknown(name, `not checked: ${text}, and ${by} refused the next, but ${why}`)
  }
  const took = `${text} in ${Math.ceil(tookMs)} ms`
  return tookMs >= inMs
    ? unknown(name, `not checked: ${took}, which is longer than the interval`)
    : problem(
        name,
        `${expected}, and ${took}. Deploy the policies of this folder, and run npx sluice check`,
      )
}

/** True for an entry of `deny` that refuses all requests of an expectation. */
const isAllOf =
  ({ request }: Expectation) =>
  ({ condition }: Config['deny'][number]) =>
    covers(condition, request)

const UNBOUND = 'no policy of this folder bounds it (npx sluice check)'

interface Played {
  passed: number
  /** The last answer. */
  answer: Answer
  tookMs: number
}

/** Sends requests until one is refused, or more have passed than the expectation allows. */
async function play(
  client: Client,
  request: SampleRequest,
  { atMost }: Expectation,
  each: number,
  bounding: Bounding | undefined,
): Promise<Played> {
  const terms = {
    nonce: newNonce(),
    ...(bounding && { policy: bounding.name, ...(each > 1 && { cost: each * bounding.cost }) }),
  }
  const count = Math.ceil((atMost + 1) / each)
  const startedAt = performance.now()
  for (let passed = 0; ; passed += 1) {
    const answer = await client.send(request, terms)
    const isLast = !answer.decision?.allowed || passed + 1 >= count
    if (!isLast) continue
    const all = answer.decision?.allowed ? passed + 1 : passed
    return { passed: all, answer, tookMs: performance.now() - startedAt }
  }
}

/** True if a refusal does not prove the expectation: a policy with a shorter window admits again before its end. */
const isByOther = ({ answer: { decision } }: Played, bounding: Bounding | undefined): boolean =>
  decision?.allowed === false &&
  decision.reason !== 'store-error' &&
  (!bounding || !(decision.refusedBy ?? []).some((one) => bounding.enough.includes(one)))

/** The requests of an expectation, as those of the only policy of a configuration. */
function asPolicy(config: Config, index: number) {
  const { request: match, per: key } = [config.expect ?? []].flat()[index]!
  const written = { name: 'expectation', limit: 1, window: '1m', match, key }
  const { policies } = parseConfig({ use: config.use, policies: [written] }, defaultFields)
  return { ...config, policies, allow: [], deny: [] }
}

/** The policy that bounds an expectation. */
interface Bounding {
  name: string
  /** The cost of the request. */
  cost: number
  /** The most requests that it admits in the interval. */
  requests: number
  /** The policies of which each alone admits no more than the expectation. */
  enough: string[]
}

/** The policy that bounds an expectation, among those that apply to a request. It need not hold: that is for the deployment to show. */
function boundingOn(
  expectation: Expectation,
  config: Config,
  matches: Match[],
): Bounding | undefined {
  const bounds = matches
    .flatMap(({ terms, cost }) => {
      const own = config.policies.find(({ name }) => name === terms.name)!
      // Another request of the expectation may have a policy of its own: this one shows that of its part.
      const bound = boundOf(own, expectation, config, true)
      return bound.gap ? [] : [{ name: own.name, cost, requests: bound.requests }]
    })
    .sort((one, other) => one.requests - other.requests)
  const [best] = bounds
  if (!best) return undefined
  const enough = bounds.filter(({ requests }) => requests <= expectation.atMost)
  return { ...best, enough: enough.map(({ name }) => name) }
}
