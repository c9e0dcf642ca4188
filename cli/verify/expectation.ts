/** Checks on a deployment what the configuration expects (`expect`). */

import { spanText } from '../../src/core/base/duration.ts'
import { type Config, type Policy, parseConfig } from '../../src/core/config/parse.ts'
import { inGateway } from '../../src/features/in-gateway.ts'
import { boundOf } from '../../src/lint/expect/bound.ts'
import { type Expectation, expectationsOf } from '../../src/lint/expect/options.ts'
import { titleOf } from '../../src/lint/expect/text.ts'
import { newNonce } from './client.ts'
import { type Finding, ok, problem, unknown } from './finding.ts'
import type { PolicyContext } from './policy.ts'
import { createLocalMatcher, sampleFor } from './sample.ts'
import { countText, whyUncovered } from './words.ts'

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
  { client, config, host, headers, match, routes }: PolicyContext,
): Promise<Finding> {
  const { atMost, inMs } = expectation
  const expected = `${titleOf(expectation)}: at most ${atMost} in ${spanText(inMs)}`
  const alone = asPolicy(config, index)
  const isMeant = createLocalMatcher(alone, `https://${host}`, headers)
  const sample = await sampleFor(alone.policies[0]!, alone, host, headers, isMeant)
  if ('why' in sample) return unknown(name, `not checked: ${sample.why}`)
  if (!sample.match) return unknown(name, 'not checked: no request of this machine is one of these')
  const { request } = sample
  const each = Math.ceil((atMost + 1) / MAX_REQUESTS)
  const bounding = each === 1 ? undefined : boundingOn(expectation, config, await match(request))
  if (each > 1 && !bounding) {
    return unknown(name, `not checked: no policy of this folder bounds it (npx sluice check)`)
  }
  const terms = {
    nonce: newNonce(),
    ...(bounding && { policy: bounding.name, cost: each * bounding.cost }),
  }
  const count = Math.ceil((atMost + 1) / each)
  const startedAt = performance.now()
  let passed = 0
  while (passed < count) {
    const answer = await client.send(request, terms)
    if (!answer.decision) return problem(name, whyUncovered(answer, request, routes))
    if (!answer.decision.allowed) break
    passed += 1
  }
  const tookMs = performance.now() - startedAt
  const units = each > 1 ? `, each for ${each}` : ''
  if (passed < count) {
    return ok(
      name,
      `${expected}: ${countText(passed, 'request')} passed${units}, the next was refused`,
    )
  }
  const text = `${countText(passed, 'request')} passed${units} in ${Math.ceil(tookMs)} ms`
  return tookMs >= inMs
    ? unknown(name, `not checked: ${text}, which is longer than the interval`)
    : problem(
        name,
        `${expected}, and ${text}. Deploy the policies of this folder, and run npx sluice check`,
      )
}

/** The requests of an expectation, as those of the only policy of a configuration. */
function asPolicy(config: Config, index: number) {
  const { request: match, per: key } = [config.expect ?? []].flat()[index]!
  const written = { name: 'expectation', limit: 1, window: '1m', match, key }
  const { policies } = parseConfig({ use: config.use, policies: [written] }, inGateway)
  return { ...config, policies, allow: [], deny: [] }
}

/** The policy that bounds an expectation, among those that apply to a request, and the cost of that request. */
function boundingOn(
  expectation: Expectation,
  config: Config,
  matches: { policy: Policy; cost: number }[],
): { name: string; cost: number } | undefined {
  const bounds = matches.flatMap(({ policy, cost }) => {
    const own = config.policies.find(({ name }) => name === policy.name)!
    const bound = boundOf(own, expectation, config)
    return bound.gap ? [] : [{ name: own.name, cost, requests: bound.requests }]
  })
  return bounds.sort((one, other) => one.requests - other.requests)[0]
}
