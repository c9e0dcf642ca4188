import * as v from 'valibot'
import { parseDuration } from '../../base/duration.ts'
import { type FindingCode, findingCodes } from '../findings.ts'
import { type KeyPart, key } from './key.ts'
import { list, object, oneOf, pattern, whole } from './shapes.ts'

/** A first layer in front of the store, parsed. */
export interface Shield {
  /** The name of its binding in the Worker's environment. */
  binding: string
  limit: number
  periodMs: number
  key: KeyPart[]
  accept: FindingCode[]
}

/** Those that Cloudflare has. */
const isPeriod = (ms: number | undefined) => ms === 10_000 || ms === 60_000

export const shield = v.pipe(
  object(
    {
      binding: pattern('the name of a binding like "SHIELD"', /^[A-Za-z_]\w*$/),
      limit: whole(1),
      period: v.pipe(
        v.custom((input) => isPeriod(parseDuration(input)), '"10s" or "60s"'),
        v.transform((input) => parseDuration(input)!),
      ),
      key: v.optional(key, 'ip'),
      accept: v.optional(list(oneOf(...findingCodes), 0), []),
    },
    ({ key }, problem) => {
      if (!Array.isArray(key)) return
      key.forEach(({ source }: KeyPart, index) => {
        if (source.startsWith('path')) problem(['key', index], 'nothing of the path')
      })
    },
  ),
  v.transform(({ period, ...rest }): Shield => ({ ...rest, periodMs: period })),
)
