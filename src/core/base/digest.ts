const utf8 = new TextEncoder()

/** SHA-256 (FIPS 180-4) of the UTF-8 bytes of a string, in lower-case hexadecimal. */
export async function sha256(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', utf8.encode(text)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
