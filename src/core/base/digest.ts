const utf8 = new TextEncoder()

/** SHA-256 (FIPS 180-4) of the UTF-8 bytes of a string, in lower-case hexadecimal. */
export const sha256 = (text: string): Promise<string> => hexDigest('SHA-256', text)

/** SHA-1 of the UTF-8 bytes of a string, in lower-case hexadecimal: the name by which Redis knows a script. */
export const sha1 = (text: string): Promise<string> => hexDigest('SHA-1', text)

async function hexDigest(name: string, text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest(name, utf8.encode(text)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
