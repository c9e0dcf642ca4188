const utf8 = new TextEncoder()

/** Digest (FIPS 180-4) of the UTF-8 bytes of a string, in lower-case hexadecimal. */
export async function hexDigest(algorithm: 'SHA-1' | 'SHA-256', text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest(algorithm, utf8.encode(text)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export const sha256 = (text: string): Promise<string> => hexDigest('SHA-256', text)
