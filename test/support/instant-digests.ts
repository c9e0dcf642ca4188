import { createHash, createHmac } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'

/**
 * Lets HMACs and digests of Web Crypto be ready in the turn of the event loop that asks for them, in place of a thread whose end no virtual time knows.
 * The digests are the same. It holds for the tests of this file.
 */
export function useInstantDigests() {
  const subtle: Partial<SubtleCrypto> = crypto.subtle
  beforeAll(() => {
    subtle.importKey = (async (_: string, secret: Uint8Array) => secret) as never
    subtle.sign = (async (_: string, secret: unknown, data: Uint8Array) =>
      new Uint8Array(
        createHmac('sha256', secret as Uint8Array)
          .update(data)
          .digest(),
      ).buffer) as never
    subtle.digest = (async (name: string, data: Uint8Array) =>
      new Uint8Array(createHash(name.replace('-', '')).update(data).digest()).buffer) as never
  })
  // The methods of the prototype are in force again.
  afterAll(() => {
    delete subtle.importKey
    delete subtle.sign
    delete subtle.digest
  })
}
