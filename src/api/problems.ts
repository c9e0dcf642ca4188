import { type ConfigProblem, lineOf, type StoreError } from '../core/base/errors.ts'
import type { Policy } from '../core/config/parse.ts'
import { problem } from '../core/respond/response.ts'

export const badRequest = (detail: string): Response =>
  problem(400, { title: 'Bad Request', detail })

export const conflict = (detail: string, more?: object): Response =>
  problem(409, { title: 'Conflict', detail, ...more })

export const noBans = ({ name }: Policy): Response =>
  conflict(`The policy ${name} has no bans. Set penalty, for example to 'manual'.`)

export const noList = (policy: Policy): Response =>
  policy.penalty
    ? conflict(
        `The bans of the policy ${policy.name} are not listed. Set penalty.list: true, beside after, within and ban. With penalty: 'manual', set it in any policy.`,
      )
    : noBans(policy)

export const noCounts = (): Response =>
  problem(404, { title: 'Not Found', detail: 'Nothing is counted. Add observe() to use.' })

export const noOverrides = ({ name }: Policy): Response =>
  conflict(`The limits of the policy ${name} cannot be set for single keys. Set overrides: true.`)

/** The problem of an invalid JSON body, with each error. @param detail defaults to the first one */
export const unprocessable = (errors: ConfigProblem[], detail = lineOf(errors[0]!)): Response =>
  problem(422, { title: 'Unprocessable Content', detail, errors })

/** The problem of an endpoint that has no fallback if the store fails. */
export const storeFailed = ({ code, message }: StoreError): Response =>
  problem(503, { title: 'Service Unavailable', detail: message, code })
