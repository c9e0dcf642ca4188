const utf8 = new TextEncoder()

/** The digest (FIPS 180-4) of a text's UTF-8 in lower-case hexadecimal digits. */
export async function hexDigest(algorithm: 'SHA-1' | 'SHA-256', text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest(algorithm, utf8.encode(text)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export const sha256 = (text: string): Promise<string> => hexDigest('SHA-256', text)
