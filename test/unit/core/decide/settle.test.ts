/** What a response keeps of a charge, as requests to the store. */
import { expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { PolicyLimit } from '../../../../src/core/decide/limit.ts'
import { refundsOf } from '../../../../src/core/decide/settle.ts'

function limitWith(options: Partial<PolicyOptions>): PolicyLimit {
  const [policy] = parseConfig({
    policies: [{ name: 'a', limit: 9, window: '1m', ...options }],
  }).policies
  return { policy: policy!, partitionKey: [], cost: 3, terms: policy!, subject: 's' }
}

const priced = { cost: { response: 'x-price' } }
test.each<[string, Partial<PolicyOptions>, number, string, number | undefined, unknown[]]>([
  ['a status that counts', { countOnly: '4xx' }, 401, '', undefined, []],
  ['the last status that counts', { countOnly: '400-404' }, 404, '', undefined, []],
  ['a status that does not count', { countOnly: '4xx' }, 200, '', undefined, ['refund', 3, 1000]],
  ['a lower price', priced, 200, '1', undefined, ['refund', 2, 1000]],
  ['a higher price', priced, 200, '9', undefined, []],
  ['a malformed price', priced, 200, '-1', undefined, []],
  ['the end of a slot', { algorithm: 'concurrency' }, 200, '', undefined, ['refund', 3, 1000]],
  ['a lower cost in its body', {}, 200, '', 1, ['refund', 2, 1000]],
  ['a higher cost in its body', {}, 200, '', 8, ['debt', 5, undefined]],
])('A response with %s settles its charge.', (_, options, status, price, metered, expected) => {
  const limit = limitWith(options)
  const response = { status, headers: new Headers({ 'x-price': price }) }
  const kept = new Map(metered === undefined ? [] : [[limit, metered]])
  const requests = refundsOf([limit], new Map([[limit, 1000]]), response, kept)
  expect(
    requests.flatMap(({ mode, limits, ...rest }) => [
      mode,
      limits[0]!.cost,
      Object.values(rest)[0],
    ]),
  ).toEqual(expected)
  expect(refundsOf([limit], new Map(), response, kept)).toEqual([])
})
