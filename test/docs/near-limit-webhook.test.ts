/** The verification on the page about near-limit notices accepts what Sluice sends, and nothing else. */
import { beforeAll, describe, expect, test } from 'vitest'
import { verify } from '../../examples/verify-webhook.ts'
import { createSender } from '../../src/features/observe/webhook.ts'
import { found, pageAt, read } from '../support/pages.ts'
import { SECRET, startReceiver } from '../support/webhook-receiver.ts'

/** The headers and the body of a notice that Sluice sends at a time with these secrets. */
async function send(body: object, secrets: string, clock?: () => number) {
  const receiver = await startReceiver()
  const sender = createSender({ url: receiver.url, log: () => {}, ...(clock && { clock }) })
  sender.isReady({ SLUICE_WEBHOOK_SECRET: secrets })
  await sender.send('name', JSON.stringify(body))
  await receiver.close()
  const [post] = receiver.posts
  return { headers: post!.headers as Record<string, string>, body: post!.body }
}

describe('the verification of a notice', () => {
  let body: string
  let sent: Record<string, string>
  const notice = { type: 'quota.near-limit', subject: 'ü' }
  const next = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

  beforeAll(async () => {
    ;({ body, headers: sent } = await send(notice, `${SECRET} ${next}`))
  })

  const signed = (changes: Record<string, string> = {}) => new Headers({ ...sent, ...changes })

  test.each([
    ['the current secret', SECRET],
    ['the next secret', next],
  ])('A notice with a signature by %s is returned.', (_, secret) => {
    expect(verify(signed(), body, secret)).toEqual(notice)
  })

  test.each([
    ['another secret', {}, `whsec_${Buffer.alloc(32).toString('base64')}`],
    ['another id', { 'webhook-id': 'other' }, SECRET],
    ['a signature of another length', { 'webhook-signature': 'v1,AAAA' }, SECRET],
    ['an empty signature', { 'webhook-signature': '' }, SECRET],
    ['a timestamp that is not a number', { 'webhook-timestamp': 'now' }, SECRET],
  ])('A notice with %s is refused.', (_, changes, secret) => {
    expect(verify(signed(changes as Record<string, string>), body, secret)).toBeUndefined()
  })

  test('A notice with another body, and a request without headers, are refused.', () => {
    expect(verify(signed(), `${body} `, SECRET)).toBeUndefined()
    expect(verify(new Headers(), body, SECRET)).toBeUndefined()
  })

  test('A notice that is older than five minutes is refused.', async () => {
    const { headers } = await send(notice, SECRET, () => Date.now() - 301_000)
    expect(verify(new Headers(headers), body, SECRET)).toBeUndefined()
  })

  test('The page lists each field of the document once.', () => {
    const { text } = pageAt('docs/guides/near-limit-webhook.md')
    const source = read('src/features/observe/near-limit.ts')
    const [, fields] = /interface NearLimitNotice \{\n(.*?)\n\}/s.exec(source)!
    const declared = found(fields!, /^ {2}(\w+)\??: /gm)
    expect(declared.length).toBeGreaterThan(8)
    expect(found(text, /^\| `(\w+)` \|/gm)).toEqual(declared)
  })
})
