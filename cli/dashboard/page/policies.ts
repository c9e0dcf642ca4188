/** The policies of the Worker. */
import type { PolicyReport } from '../../../src/api/policies.ts'
import { byId, showRows } from './dom.ts'
import { durationText, numberText } from './text.ts'

export type ListedPolicy = PolicyReport

/** The client of an operation: by its label, or by the values of the policy's key. */
export type Target = { subject: string } | { key: (string | null)[]; plan?: string }

/** The name of a client in Redis. */
export const HASHED = /^[\w-]{16}$/

/** What an operation names the client by: its label, or the values of its key. Undefined for a label that stands for several clients. */
export function targetOf(subject: string, key: readonly string[]): Target | undefined {
  if (HASHED.test(subject)) return { subject }
  const parts = subject.split(',').map((part) => part.split('='))
  const isKey =
    parts.length === key.length &&
    parts.every(([label, value], index) => label === key[index] && value !== undefined)
  return isKey ? { key: parts.map(([, value]) => value!) } : undefined
}

export const limitText = ({ algorithm, limit, windowMs }: ListedPolicy): string =>
  algorithm === 'concurrency'
    ? `${numberText(limit)} in flight`
    : `${numberText(limit)} per ${durationText(windowMs)}`

export function showPolicies(policies: ListedPolicy[]) {
  showRows(byId('policies'), policies, {
    key: ({ name }) => name,
    cells: (policy) => [
      policy.name,
      limitText(policy),
      policy.algorithm,
      policy.key.join(' + '),
      policy.mode,
      policy.bans ? 'yes' : 'no',
      policy.onStoreError,
    ],
  })
}
