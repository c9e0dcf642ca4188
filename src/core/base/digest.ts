const utf8 = new TextEncoder()
const HMAC = { name: 'HMAC', hash: 'SHA-256' }

/** SHA-256 (FIPS 180-4) of the UTF-8 bytes of a string, in lower-case hexadecimal. */
export const sha256 = (text: string): Promise<string> => hexDigest('SHA-256', text)

/** SHA-1 of the UTF-8 bytes of a string, in lower-case hexadecimal: the name by which Redis knows a script. */
export const sha1 = (text: string): Promise<string> => hexDigest('SHA-1', text)

async function hexDigest(name: string, text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest(name, utf8.encode(text)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** A key of HMAC-SHA-256 (RFC 2104). */
export const hmacKey = (secret: string | Uint8Array<ArrayBuffer>): Promise<CryptoKey> => {
  const bytes = typeof secret === 'string' ? utf8.encode(secret) : secret
  return crypto.subtle.importKey('raw', bytes, HMAC, false, ['sign', 'verify'])
}

/** The first bytes of the HMAC of a text, in base64. */
export async function hmac(key: CryptoKey, text: string, length = 32): Promise<string> {
  const digest = await crypto.subtle.sign('HMAC', key, utf8.encode(text))
  return btoa(String.fromCharCode(...new Uint8Array(digest, 0, length)))
}
