/** Many connections must share one quota. */
import { type Client, newNonce } from './client.ts'
import { type Finding, ok, problem, unknown } from './finding.ts'
import type { Plan } from './round.ts'
import { refill, windowsEnded } from './round.ts'

const CONNECTIONS = 20

/** @param plans the policies whose proofs have succeeded */
export async function checkShared(plans: Plan[], client: Client): Promise<Finding[]> {
  const name = 'shared'
  const [plan] = plans
    .filter(({ expected, policy }) => expected < CONNECTIONS && policy.algorithm !== 'concurrency')
    .toSorted((one, other) => other.policy.windowMs - one.policy.windowMs)
  if (!plan) return [unknown(name, 'not checked: no policy could be used up')]
  const { policy, request, cost, states, expected } = plan
  const terms = { nonce: newNonce(), policy: policy.name, ...(states && { cost }) }
  const startedAt = performance.now()
  const answers = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => client.send(request, terms)),
  )
  const passed = answers.filter(({ decision }) => decision?.allowed).length
  const refilled = refill(plan, performance.now() - startedAt)
  const most = expected + Math.max(refilled, expected * windowsEnded(policy, answers))
  const text = `${CONNECTIONS} connections share one quota`
  if (passed === 0) return [unknown(name, `not checked: none of ${CONNECTIONS} requests passed`)]
  if (passed <= most) return [ok(name, text)]
  return [
    problem(
      name,
      `${CONNECTIONS} connections do not share one quota: ${passed} requests passed, and ${policy.name} holds ${expected}. Instances count by themselves, or in different databases`,
    ),
  ]
}
