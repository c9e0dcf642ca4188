/** Finds rules of `reserve` that refuse every request, and rules without effect. */
import { floorUnits } from '../core/base/units.ts'
import { covers } from './covers.ts'
import { type PolicyRule, smallestCapacity } from './facts.ts'

export const reserveTakesAll: PolicyRule = (policy, at) => {
  const { name, algorithm, cost } = policy
  const { field, capacity } = smallestCapacity(policy)
  const prices = [cost.otherwise, ...cost.rules.map((rule) => rule.cost)].filter((one) => one > 0)
  const cheapest = cost.header === undefined && prices.length > 0 ? Math.min(...prices) : 1
  if (cheapest > capacity) return [] // cost-never-fits reports it
  return policy.reserve.flatMap(({ share }, index) => {
    const floor = floorUnits({ algorithm, limit: capacity, burst: capacity }, share)
    const left = capacity - floor
    if (left >= cheapest) return []
    return {
      path: `${at}.reserve[${index}].share`,
      message: `"${name}" refuses every request of this rule: it must leave ${floor} of ${capacity} units free, and costs at least ${cheapest}.`,
      hint: `Lower the share, or raise ${field}.`,
    }
  })
}

export const reserveUnreachable: PolicyRule = ({ name, match, reserve }, at) =>
  reserve.flatMap(({ condition }, index) => {
    const first = reserve
      .slice(0, index)
      .findIndex((earlier) => [condition, match].some((some) => covers(earlier.condition, some)))
    if (first === -1) return []
    return {
      path: `${at}.reserve[${index}]`,
      message: `This rule of "${name}" never counts: reserve[${first}] matches the same requests and comes first.`,
      hint: 'Put the rule for fewer requests first.',
    }
  })
