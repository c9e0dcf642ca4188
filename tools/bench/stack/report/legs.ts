import type { Results } from '../results.ts'
import { type VariantId, variants } from '../variants.ts'
import { table } from './table.ts'

/** Over- and under-admission, false refusals, and the soak test. */
export function legsText({ exactness = [], clients = [], soak }: Results): string {
  const ids = new Set([...exactness, ...clients].map(({ id }) => id))
  const of = <One extends { id: VariantId }>(list: One[], id: VariantId) =>
    list.find((one) => one.id === id)
  const lines = [...ids].map((id) => {
    const exact = of(exactness, id)
    const client = of(clients, id)
    return [
      variants[id].name,
      exact?.over ?? '–',
      exact?.under ?? '–',
      exact?.failed ?? '–',
      client ? `${client.falsely} of ${client.waited}` : '–',
      client ? `${(client.share * 100).toFixed(0)} %` : '–',
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
