import type { Results } from '../results.ts'
import { type VariantId, variants } from '../variants.ts'
import { table } from './table.ts'

/** Over- and under-admission, false refusals, and the soak test. */
export function legsText({ exactness, waits, greedy, soak }: Results): string {
  const ids = new Set([...exactness, ...waits, ...greedy].map(({ id }) => id))
  const of = <One extends { id: VariantId }>(list: One[], id: VariantId) =>
    list.find((one) => one.id === id)
  const lines = [...ids].map((id) => {
    const exact = of(exactness, id)
    const waited = of(waits, id)
    const share = of(greedy, id)?.share
    return [
      variants[id].name,
      exact?.over ?? '–',
      exact?.under ?? '–',
      exact?.failed ?? '–',
      waited ? `${waited.falsely} of ${waited.waited}` : '–',
      share === undefined ? '–' : `${(share * 100).toFixed(0)} %`,
    ]
  })
  const head = [
    'limiter',
    'over-admitted',
    'under-admitted',
    'failed',
    'refused after the reported wait',
    'admitted share of the limit',
  ]
  const text = ['### Exactness', ...(lines.length > 0 ? [table(head, lines)] : [])]
  if (soak) {
    const { seconds, requests, admitted, refused, hangUps, failed } = soak
    text.push(
      `Soak test, 64 connections for ${seconds} s: ${requests} requests, ${admitted} admitted, ${refused} refused, ${hangUps} canceled by the client, **${failed}** without a valid response.`,
    )
  }
  return text.join('\n\n')
}
