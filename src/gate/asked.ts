import type { Description } from '../descriptor.ts'
import type { ConfigProblem } from '../errors.ts'
import type { Policy } from '../policy.ts'
import type { Rules } from '../rules.ts'
import { show } from '../schema/checked.ts'
import type { Ask, GiveBack } from '../schema/gate.ts'
import { byHand } from './by-hand.ts'
import { type Around, describedRequest } from './described.ts'

export const policyOf = ({ config }: Rules, name: string): Policy | undefined =>
  config.policies.find((policy) => policy.name === name)

/** The policies that a caller asks about, by hand or by a request, at the price that the caller names; or what is wrong. */
async function describedBy(
  asked: Ask | GiveBack,
  rules: Rules,
  around: Around,
): Promise<Description | ConfigProblem> {
  const description =
    'request' in asked
      ? await describedRequest(asked.request, rules, around)
      : await byPolicy(asked, rules)
  const { cost } = asked
  if ('expected' in description || cost === undefined) return description
  const policies = description.policies.map((one) => ('unmet' in one ? one : { ...one, cost }))
  return { ...description, policies }
}

async function byPolicy(
  { policy: name, key, plan }: Extract<Ask | GiveBack, { policy: string }>,
  rules: Rules,
): Promise<Description | ConfigProblem> {
  const policy = policyOf(rules, name)
  if (!policy) return { path: 'policy', expected: 'the name of a policy', got: show(name) }
  const found = await byHand(policy, key, plan, rules.config)
  return 'expected' in found ? found : { policies: [found] }
}

/** All that a body asks: one or a list of them, each described; or all that is wrong, with its place. */
export async function describedEach<A extends Ask | GiveBack>(
  body: A | A[],
  rules: Rules,
  around: Around,
): Promise<{ asked: A; description: Description }[] | { problems: ConfigProblem[] }> {
  const list = Array.isArray(body) ? body : [body]
  const described = await Promise.all(
    list.map(async (asked) => ({ asked, description: await describedBy(asked, rules, around) })),
  )
  const problems = described.flatMap(({ description }, index) =>
    'expected' in description
      ? [
          {
            ...description,
            path: Array.isArray(body) ? `[${index}].${description.path}` : description.path,
          },
        ]
      : [],
  )
  if (problems.length > 0) return { problems }
  return described as { asked: A; description: Description }[]
}
