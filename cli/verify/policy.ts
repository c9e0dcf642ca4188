/** Proves that a deployment enforces one policy. */
import type { Policy } from '../../src/core/config/parse.ts'
import type { VerifiedDecision, VerifiedPolicy } from '../../src/features/verify/verified.ts'
import { type Answer, newNonce, type SampleRequest } from './client.ts'
import { type Finding, ok, problem, unknown } from './finding.ts'
import type { PolicyContext } from './policy-context.ts'
import { type Plan, playRound, type Round } from './round.ts'
import { sampleFor } from './sample.ts'
import { checkSpellings } from './spelling.ts'
import { checkWait } from './wait.ts'
import { countText, listed, ordinal, uncovered, whyUnmet } from './words.ts'

/** The result for one policy, with what other checks read. */
export interface PolicyResult {
  finding: Finding
  /** The first answer with a decision. */
  decision?: VerifiedDecision
  /** How the quota was used up, if the proof has succeeded. */
  plan?: Plan
}

/** The most requests that use up a quota. For a larger one the requests state a cost. */
const MAX_REQUESTS = 20
/** The requests of a quota with a stated cost. */
const FEW_REQUESTS = 10
const MAX_ROUNDS = 3

export async function checkPolicy(policy: Policy, context: PolicyContext): Promise<PolicyResult> {
  const { name } = policy
  const { client, config, host, headers, match, known } = context
  const sample = await sampleFor(policy, config, host, headers, match, known)
  if ('why' in sample) return { finding: unknown(name, `not checked: ${sample.why}`) }
  const { request, madeUp, others } = sample
  const first = await client.send(request, { nonce: newNonce(), policy: name })
  const { decision } = first
  if (!decision) return { finding: uncovered(name, first, request, context) }
  const found = decision.policy!
  const unfit = unfitness(policy, found, decision, sample.match !== undefined, request)
  if (unfit) return { finding: unfit, decision }
  const deployed = found as Extract<VerifiedPolicy, { applies: true }>
  const proof = await prove(policy, request, deployed, context)
  if (proof.finding.status !== 'ok') return { ...proof, decision }
  for (const other of others) {
    const answer = await client.send(other, { nonce: newNonce(), policy: name })
    if (!answer.decision) return { finding: uncovered(name, answer, other, context), decision }
  }
  const sent = [request, ...others].map(({ method, path }) => `${method} ${path}`)
  const isNamed = policy.match.path?.includes(request.path) && others.length === 0
  if (isNamed) return { ...proof, decision }
  const text = `${proof.finding.text}; as ${listed(sent)}${madeUp ? ', a path that is made up' : ''}`
  return { ...proof, finding: { ...proof.finding, text, ...(madeUp && { madeUp }) }, decision }
}

/** Why the quota cannot be used up. */
function unfitness(
  { name, mode, onStoreError }: Policy,
  found: VerifiedPolicy,
  { by, reason }: VerifiedDecision,
  isExpected: boolean,
  request: SampleRequest,
): Finding | undefined {
  if (!found.applies) return whyUnmet(name, found, isExpected, request)
  if (found.mode === 'shadow') {
    const remedy =
      mode === 'shadow'
        ? "Remove mode: 'shadow' to enforce it"
        : "This folder has no mode: 'shadow': deploy it"
    return problem(name, `in shadow mode: it counts, and refuses nobody. ${remedy}`)
  }
  if (reason === 'store-error') {
    return problem(
      name,
      `the database did not decide: onStoreError: '${onStoreError}' answered (${by})`,
    )
  }
  if (found.cost === 0) return unknown(name, 'not checked: the request costs nothing')
  return undefined
}

async function prove(
  policy: Policy,
  request: SampleRequest,
  { limit, cost: own }: Extract<VerifiedPolicy, { applies: true }>,
  context: PolicyContext,
): Promise<{ finding: Finding; plan?: Plan }> {
  const { name } = policy
  const { client } = context
  const planOf = (stated?: number) =>
    planFor(policy, request, limit, own, client.fastestMs(), stated)
  let plan = planOf()
  if (plan.expected === 0) {
    return {
      finding: problem(
        name,
        `one request costs ${own}, and the quota holds ${limit}: none can pass`,
      ),
    }
  }
  let round: Round | undefined
  for (let played = 0; played < MAX_ROUNDS; played += 1) {
    if (round) plan = nextPlan(plan, round, planOf)
    round = await playRound(client, plan)
    const lost = round.answers.find(({ decision }) => !decision)
    if (lost) return { finding: uncovered(name, lost, request, context) }
    const failed = round.answers.find(({ decision }) => decision!.reason === 'store-error')
    if (failed) {
      const text = `the database did not decide all requests: onStoreError: '${policy.onStoreError}' answered`
      return { finding: problem(name, text) }
    }
    if (round.refusal && round.passed === plan.expected) break
  }
  return conclude(plan, round!, limit, context)
}

/** The plan after a round that proved nothing. */
function nextPlan(plan: Plan, round: Round, planOf: (stated: number) => Plan): Plan {
  const { passed, refusal, refilled, ended } = round
  if (refusal || ended > 0) return plan
  // Another policy has refused first. With this cost, the requests that it admits use up the quota.
  if (passed < plan.expected) return planOf(Math.ceil(plan.limit / Math.max(1, passed)))
  return passed > plan.expected && refilled > 0 ? { ...plan, together: true } : plan
}

/** @param stated a cost to state. Defaults to none, or to a tenth of a quota that needs too many requests without it */
function planFor(
  policy: Policy,
  request: SampleRequest,
  limit: number,
  own: number,
  latencyMs: number,
  stated = limit / own > MAX_REQUESTS ? Math.floor(limit / FEW_REQUESTS) : own,
): Plan {
  const cost = Math.max(own, stated)
  const expected = Math.floor(limit / cost)
  // A unit that comes back before the next request arrives would never be missed.
  const { algorithm, windowMs } = policy
  const isFast =
    algorithm === 'token-bucket'
      ? (windowMs * cost) / policy.limit < 2 * latencyMs
      : windowMs < 4 * latencyMs * (expected + 1)
  return {
    policy,
    request,
    cost,
    states: cost > own,
    limit,
    expected,
    together: isFast && algorithm !== 'concurrency',
  }
}

async function conclude(
  plan: Plan,
  round: Round,
  limit: number,
  context: PolicyContext,
): Promise<{ finding: Finding; plan?: Plan }> {
  const { policy, expected, cost, states, together } = plan
  const { passed, refusal, refilled, answers } = round
  const { name } = policy
  // The deployment counts each request as another value, or as `cost` of them.
  const unit = policy.distinct ? 'requests with another value' : 'requests'
  const counted = states ? `requests of cost ${cost}` : unit
  if (!refusal) {
    if (passed <= expected && answers.length > passed) {
      return {
        finding: unknown(
          name,
          `not checked: another policy refuses the request first, after ${countText(passed, 'request')}`,
        ),
      }
    }
    if (together || refilled > 0) {
      return {
        finding: unknown(
          name,
          'not checked: its units come back faster than requests arrive from here',
        ),
      }
    }
    const text = `not limited: ${passed} ${counted} passed, and the quota holds ${expected}. ${whyLoose(answers)}`
    return { finding: problem(name, text) }
  }
  if (passed > expected + refilled) {
    const text = `limits too late: ${passed} ${counted} passed, and the quota holds ${expected}. ${whyLoose(answers)}`
    return { finding: problem(name, text) }
  }
  if (passed < expected) {
    const text = `limits too early: ${passed} of ${expected} ${counted} passed. The isolates or apps of this deployment do not count alike, or another program counts in the same database`
    return { finding: problem(name, text) }
  }
  const deviation =
    policyLimit(policy) !== undefined && limit > policyLimit(policy)! ? limit : undefined
  if (deviation !== undefined) {
    return {
      finding: problem(
        name,
        `the deployment admits ${limit}, and this folder ${policyLimit(policy)}`,
      ),
    }
  }
  const results = together
    ? []
    : [
        await checkSpellings(plan, round, context),
        await checkWait(plan, round, context.client, context.maxWaitMs),
      ]
  const wrong = results.find((one) => one?.isWrong)
  if (wrong) return { finding: problem(name, wrong.text) }
  const summary = `${passed} of ${answers.length} ${counted} passed${
    together ? ', all sent at once' : `, the ${ordinal(passed + 1)} was refused`
  }`
  const texts = [summary, ...results.flatMap((one) => one?.text ?? [])]
  return { finding: ok(name, texts.join('; ')), plan }
}

/** The largest quota that the policy of this folder gives a client. Undefined if a plan or a claim sets it. */
const policyLimit = ({
  plan,
  claim,
  overrides,
  algorithm,
  burst,
  limit,
}: Policy): number | undefined =>
  plan || claim || overrides ? undefined : algorithm === 'token-bucket' ? burst : limit

/** Why more requests pass than the quota holds. */
function whyLoose(answers: Answer[]): string {
  const left = answers.flatMap(({ decision }) => {
    const { policy } = decision ?? {}
    return policy?.applies && policy.state && decision!.allowed ? policy.state.remaining : []
  })
  const falls = left.every((one, index) => index === 0 || one < left[index - 1]!)
  return falls
    ? 'The deployed limit is another one'
    : 'The requests did not reach one counter: several databases answer, or an instance counts by itself'
}
