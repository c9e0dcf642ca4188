/** The verification on the page about near-limit notices accepts what Sluice sends, and nothing else. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { verify } from '../../examples/verify-webhook.ts'
import { createSender } from '../../src/observe/webhook.ts'
import { blocksOf, pages, root } from '../support/pages.ts'
import { SECRET, startReceiver } from '../support/webhook-receiver.ts'

const page = pages.find(({ path }) => path === 'docs/guides/near-limit-webhook.md')!

test('The example verify-webhook equals examples/verify-webhook.ts.', async () => {
  const file = await readFile(join(root, 'examples/verify-webhook.ts'), 'utf8')
  const shown = blocksOf(page).find(({ name }) => name === 'verify-webhook')
  expect(shown?.code).toBe(file.replace(/^\/\*\*.*\n/, ''))
})

describe('the verification of a notice', () => {
  let body: string
  let sent: Record<string, string>
  const notice = { type: 'quota.near-limit', subject: 'ü' }
  const next = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

  beforeAll(async () => {
    const receiver = await startReceiver()
    const sender = createSender({ url: receiver.url, log: () => {} })
    sender.isReady({ SLUICE_WEBHOOK_SECRET: `${SECRET} ${next}` })
    await sender.send('name', JSON.stringify(notice))
    await receiver.close()
    const [post] = receiver.posts
    body = post!.body
    sent = post!.headers as Record<string, string>
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

  test('A notice with another body is refused.', () => {
    expect(verify(signed(), `${body} `, SECRET)).toBeUndefined()
  })

  test('A request without headers is refused.', () => {
    expect(verify(new Headers(), body, SECRET)).toBeUndefined()
  })

  test('A notice that is older than five minutes is refused.', async () => {
    const receiver = await startReceiver()
    const clock = () => Date.now() - 301_000
    const sender = createSender({ url: receiver.url, log: () => {}, clock })
    sender.isReady({ SLUICE_WEBHOOK_SECRET: SECRET })
    await sender.send('name', body)
    await receiver.close()
    const headers = new Headers(receiver.posts[0]!.headers as Record<string, string>)
    expect(verify(headers, body, SECRET)).toBeUndefined()
  })

  test('The page lists each field of the document once.', async () => {
    const source = await readFile(join(root, 'src/observe/near-limit.ts'), 'utf8')
    const [, fields] = /interface NearLimitNotice \{\n(.*?)\n\}/s.exec(source)!
    const declared = [...fields!.matchAll(/^ {2}(\w+): /gm)].map(([, name]) => name!)
    const rows = [...page.text.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!)
    expect(declared.length).toBeGreaterThan(8)
    expect(rows).toEqual(declared)
  })
})
