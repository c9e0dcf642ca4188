/** The verification of docs/guides/near-limit-webhook.md. */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Returns the notice. Returns undefined if no signature is valid, or if the request is older than five minutes. */
export function verify(headers: Headers, body: string, secret: string) {
  const timestamp = Number(headers.get('webhook-timestamp'))
  if (!(Math.abs(Date.now() / 1000 - timestamp) < 300)) return undefined
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const content = `${headers.get('webhook-id')}.${timestamp}.${body}`
  const expected = Buffer.from(`v1,${createHmac('sha256', key).update(content).digest('base64')}`)
  const isValid = (signature: string) => {
    const received = Buffer.from(signature)
    return received.length === expected.length && timingSafeEqual(received, expected)
  }
  const signatures = headers.get('webhook-signature')?.split(' ') ?? []
  return signatures.some(isValid) ? JSON.parse(body) : undefined
}
