import type { IncomingMessage, ServerResponse } from 'node:http'
import { exportJWK, exportPKCS8, generateKeyPair, importPKCS8, type JWK, SignJWT } from 'jose'
import { startLoopback } from './loopback.ts'
import { viewOnCloudflare } from './view-on-cloudflare.ts'

/** Answers a request for the keys of an issuer. */
export type Answer = (response: ServerResponse, request: IncomingMessage) => unknown

export const json =
  (document: unknown): Answer =>
  (response) =>
    response.end(JSON.stringify(document))

/** Starts a server on loopback that answers with `answer` and counts the requests in `fetches`. */
export async function startIssuer(answer: Answer = json({ keys: [] })) {
  const { url, close } = await startLoopback((request, response) => {
    issuer.fetches += 1
    issuer.answer(response, request)
  })
  const issuer = { url: `${url}/jwks.json`, fetches: 0, answer, close }
  return issuer
}

export type Issuer = Awaited<ReturnType<typeof startIssuer>>

/** Makes a key pair. `jwk` is the public key as a key set contains it. */
export async function signer(alg: string, kid: string | undefined, jwk: object = {}) {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  const pkcs8 = await exportPKCS8(privateKey)
  const named = kid === undefined ? {} : { kid }
  return {
    jwk: { ...(await exportJWK(publicKey)), ...named, alg, use: 'sig', ...jwk } as JWK,
    privateJwk: { ...(await exportJWK(privateKey)), ...named, alg },
    sign: async (claims: object = {}, header: object = {}) =>
      sign(claims, { alg, ...named, ...header }, await importPKCS8(pkcs8, alg)),
  }
}

export type Signer = Awaited<ReturnType<typeof signer>>

export const sign = (claims: object, header: object, key: CryptoKey | Uint8Array) =>
  new SignJWT(claims as never).setProtectedHeader(header as never).sign(key)

const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url')

/** A token of any header, claims and signature. */
export const forge = (header: unknown, claims: unknown, signature = '') =>
  `${encode(header)}.${encode(claims)}.${signature}`

/** A request view. Its background work is in `background`. */
export function seenWith(
  headers: Record<string, string> = {},
  { env = {}, query = '' }: { env?: Record<string, unknown>; query?: string } = {},
) {
  const background: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void background.push(promise)
  const request = new Request(`https://www.example.com/${query}`, { headers })
  const view = viewOnCloudflare(
    request,
    { env, waitUntil, context: undefined },
    { caseSensitivePaths: false },
  )
  return Object.assign(view, { background })
}

export const bearing = (token: string, env: Record<string, unknown> = {}) =>
  seenWith({ authorization: `Bearer ${token}` }, { env })
