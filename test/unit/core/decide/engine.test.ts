import { expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { createEngine } from '../../../../src/core/decide/engine.ts'

const url = 'https://redis.example.com'
const envWith = (token: string, secret?: string) => ({
  UPSTASH_REDIS_REST_URL: url,
  UPSTASH_REDIS_REST_TOKEN: token,
  ...(secret && { SLUICE_SECRET: secret }),
})

test('The parts are kept until a credential changes, and the secret names the subjects.', async () => {
  const { partsOf } = createEngine(parseConfig({ policies: [], denialCache: false }), () => {})
  const first = partsOf(envWith('one'))
  expect(partsOf(envWith('one'))).toBe(first)
  expect(partsOf(envWith('two'))).not.toBe(first)
  const subject = (token: string, secret?: string) =>
    partsOf(envWith(token, secret)).nameSubject([['ip', 'a']])
  expect(await subject('one', 'secret')).toBe(await subject('two', 'secret'))
  expect(await subject('one')).not.toBe(await subject('two'))
})

test('Errors of the store are logged, except calls that the open circuit has refused.', () => {
  const lines: string[] = []
  const log = (event: string, code: string) => void lines.push(`${event} ${code}`)
  const { onStoreError } = createEngine(
    parseConfig({ policies: [], denialCache: false }),
    log,
  ).partsOf(envWith('one'))
  for (const code of ['circuit-open', 'timeout'] as const) onStoreError(new StoreError(code))
  expect(lines).toEqual(['store-error timeout'])
})
