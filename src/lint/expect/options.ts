import * as v from 'valibot'
import type { ConfigOptions } from '../../core/config/options.ts'
import { type Checked, checked } from '../../core/config/schema/checked.ts'
import { condition } from '../../core/config/schema/condition.ts'
import type { ExpectOptions, PlainKey } from '../../core/config/schema/config.ts'
import { type KeyPart, key } from '../../core/config/schema/key.ts'
import { duration, list, named, object, whole } from '../../core/config/schema/shapes.ts'

const fields = () => ({
  request: v.optional(condition, {}),
  per: v.optional(
    v.pipe(
      key as v.GenericSchema<PlainKey | PlainKey[], KeyPart[]>,
      v.check(
        (parts) => parts.every(({ source }) => source !== 'function'),
        'a key part that is not a function',
      ),
    ),
    'ip',
  ),
  atMost: whole(0),
  in: duration,
})

export const expectation = named<ExpectOptions>()(
  v.pipe(
    object(fields),
    v.transform(({ in: inMs, ...rest }) => ({ ...rest, inMs })),
  ),
)

export type Expectation = v.InferOutput<typeof expectation>

const inConfig = object(() => ({ expect: v.optional(list(expectation, 0), []) }))

export const expectationsOf = ({
  expect,
}: Pick<ConfigOptions, 'expect'>): Checked<Expectation[]> => {
  const { output, problems } = checked(inConfig, { expect }, 'expect')
  return problems ? { problems } : { output: output.expect }
}
