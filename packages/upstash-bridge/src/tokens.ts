import { createHash, timingSafeEqual } from 'node:crypto'
import type { Database } from './database.ts'

/** A token that clients may send. */
export type Token = {
  token: string
  /** The token may only read, like the read-only token of Upstash. Defaults to false. */
  readOnly?: boolean
}

/** The rights of a token. */
export type Access = { database: Database; readOnly: boolean }

/** The tokens of all databases. */
export class Tokens {
  readonly #known: { hash: Buffer; access: Access }[] = []

  add(token: string, access: Access): void {
    const hash = sha256(token)
    if (token === '') throw new Error('token: expected at least one character')
    if (this.#known.some((one) => one.hash.equals(hash))) {
      throw new Error('tokens: expected different tokens, got the same one twice')
    }
    this.#known.push({ hash, access })
  }

  /** Compares with each token in constant time, so that the time of a refusal reveals nothing about the tokens. */
  find(token: string): Access | undefined {
    const hash = sha256(token)
    let found: Access | undefined
    for (const one of this.#known) if (timingSafeEqual(one.hash, hash)) found = one.access
    return found
  }
}

/**
 * Reads a file of tokens: one on each line, followed by `read-only` if it may only read. Skips empty lines and lines
 * that begin with `#`.
 *
 * @throws Error that names the line, and not its content.
 */
export function readTokens(text: string): Token[] {
  const tokens = text.split('\n').flatMap((line, index): Token[] => {
    const [token, mode, ...rest] = line.trim().split(/\s+/)
    if (!token || token.startsWith('#')) return []
    if ((mode !== undefined && mode !== 'read-only') || rest.length > 0) {
      throw new Error(`line ${index + 1}: expected a token, or a token and "read-only"`)
    }
    return [{ token, readOnly: mode !== undefined }]
  })
  if (tokens.length === 0) throw new Error('expected at least one token')
  return tokens
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
