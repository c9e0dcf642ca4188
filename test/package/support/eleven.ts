import { expect } from 'vitest'

/** Sends eleven requests one after the other, to a limit of ten in a minute. Exactly the last one must get a 429 with its fields. */
export async function expectOneRefusal(send: () => Promise<Response>): Promise<void> {
  const responses: Response[] = []
  for (let sent = 0; sent < 11; sent++) responses.push(await send())
  expect(responses.map(({ status }) => status)).toEqual([...Array(10).fill(200), 429])
  expect(responses[0]!.headers.get('ratelimit')).toMatch(/^"ten";r=9;t=\d+$/)
  const refusal = responses[10]!
  expect(refusal.headers.get('ratelimit-policy')).toBe('"ten";q=10;w=60')
  expect(refusal.headers.get('ratelimit')).toMatch(/^"ten";r=0;t=\d+$/)
  expect(Number(refusal.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refusal.headers.get('content-type')).toBe('application/problem+json')
  expect(await refusal.json()).toMatchObject({ status: 429, 'violated-policies': ['ten'] })
}
