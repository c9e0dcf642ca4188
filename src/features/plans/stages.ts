import type { Part } from '../../core/base/part.ts'
import { whenKnown } from '../../core/base/when-known.ts'
import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { compileKey, labelOf } from '../../core/program/key.ts'
import { type CompilePlan, ofPlan, smallest } from '../../core/program/plan.ts'

const compilePlan: CompilePlan = (policy, config, readers) => {
  const { plan } = policy
  if (!plan) return undefined
  const { path = [] } = policy.match
  const read = compileKey([plan.key], path, config, readers, labelOf, plan.key)
  const sizes = new Map(Object.keys(plan.limits).map((name) => [name, ofPlan(policy, name)!]))
  const table =
    plan.table === undefined ? undefined : new Map(Object.entries(config.tables![plan.table]!))
  const least = smallest([policy, ...sizes.values()])
  const sizeOf = ([part]: Part[]) => {
    const [, value, fault] = part!
    if (fault === 'unreadable') return least
    const name = table && value !== undefined ? table.get(value) : value
    return (name !== undefined && sizes.get(name)) || policy
  }
  return (view) => whenKnown(read(view), sizeOf)
}

export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ plan }) => plan) ? { compilePlan } : {}
