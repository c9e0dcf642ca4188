import { contains } from '../../base/contains.ts'

export const usesBody = (parsed: unknown): boolean =>
  contains(
    parsed,
    ({ source, body, graphql }) =>
      source === 'body' || typeof body === 'string' || Array.isArray(body) || graphql === true,
  )

/** True if the cost of a policy is the size of the response. */
export const countsBytes = ({ cost }: { cost: { response?: string | undefined } }): boolean =>
  cost.response === 'bytes'

/** The fields of a condition that need a credential to be verified. */
export const CREDENTIALS = ['jwt', 'apiKey'] as const

export const readsCredential = (parsed: unknown, field: (typeof CREDENTIALS)[number]): boolean =>
  contains(parsed, ({ [field]: wanted }) => typeof wanted === 'boolean')
